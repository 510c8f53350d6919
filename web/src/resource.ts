import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { begin } from './design/index.ts';

/** The state of something that a page has requested. The last data stay while newer ones are loading. */
export type Resource<T> = {
  readonly data: T | null;
  readonly failure: unknown;
  readonly loading: boolean;
  readonly reload: () => void;
};

/**
 * Asks again whenever `key` changes, and ignores answers that arrive too late.
 *
 *     const page = useResource(`calls ${cursor}`, (signal) => dataOf(api.value.GET('/api/v1/usage/me', { signal, … })));
 *
 * @param initial  data that the page came with: then the first question is not asked
 */
export function useResource<T>(
  key: string,
  ask: (signal: AbortSignal) => Promise<T>,
  initial: T | null = null,
): Resource<T> {
  const [state, setState] = useState<{ data: T | null; failure: unknown; loading: boolean }>({
    data: initial,
    failure: null,
    loading: initial === null,
  });
  const [round, setRound] = useState(0);
  const skipped = useRef(initial === null);
  const latest = useRef(ask);
  latest.current = ask;
  // The bar on top is for content that somebody asked to see, not for refreshing it.
  const shown = useRef<string | null>(null);
  useEffect(() => {
    if (!skipped.current) {
      skipped.current = true;
      shown.current = key;
      return;
    }
    const controller = new AbortController();
    const end = shown.current === key ? null : begin();
    shown.current = key;
    setState((before) => ({ ...before, loading: true }));
    latest
      .current(controller.signal)
      .then(
        (data) => {
          if (!controller.signal.aborted) setState({ data, failure: null, loading: false });
        },
        (failure: unknown) => {
          if (!controller.signal.aborted) setState((before) => ({ ...before, failure, loading: false }));
        },
      )
      .finally(() => end?.());
    return () => {
      controller.abort();
      end?.();
    };
  }, [key, round]);
  const reload = useCallback(() => setRound((before) => before + 1), []);
  return { ...state, reload };
}
