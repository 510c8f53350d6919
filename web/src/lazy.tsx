import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { ApiFailure } from './api/client.ts';
import { begin, FailureNote } from './design/index.ts';
import { loadedEarly, reloadIfReplaced } from './replaced.ts';

type Loaded<P, M> = M & { readonly default: ComponentType<P> };

export type Lazy<P, M = object> = ComponentType<P> & {
  /** Loads the file in advance. After a failure, drawing the component asks again. */
  preload(): Promise<Loaded<P, M>>;
};

/**
 * A component whose file is loaded when it is first drawn, or before by `preload`. If the file does not arrive, a note says so, and
 * it can be requested again.
 *
 * @param Waiting the placeholder until then
 * @param frame class of the element around that note
 */
export function lazy<P extends object, M extends object = object>(
  load: () => Promise<Loaded<P, M>>,
  Waiting: ComponentType,
  frame = '',
): Lazy<P, M> {
  let loaded: Loaded<P, M> | null = null;
  let loading: Promise<Loaded<P, M>> | null = null;
  let hasFailed = false;

  const loadOnce = async (): Promise<Loaded<P, M>> => {
    try {
      // Vite asks for each style sheet once.
      if (hasFailed) await failedStyles();
      loaded = await load();
      hasFailed = false;
      return loaded;
    } catch (error) {
      hasFailed = true;
      throw error;
    } finally {
      loading = null;
    }
  };
  const start = (): Promise<Loaded<P, M>> => {
    if (loaded !== null) return Promise.resolve(loaded);
    loading ??= loadOnce();
    return loading;
  };

  function Lazy(props: P) {
    const [Page, setPage] = useState(() => loaded?.default ?? null);
    const [failed, setFailed] = useState(false);
    useEffect(() => {
      if (Page !== null || failed) return;
      let isCurrent = true;
      const end = begin();
      start()
        .then(
          (module) => isCurrent && setPage(() => module.default),
          () => {
            if (!isCurrent) return;
            // The file may have been requested early, when nobody wanted the page yet.
            void reloadIfReplaced();
            setFailed(true);
          },
        )
        .finally(end);
      return () => {
        isCurrent = false;
        end();
      };
    }, [Page, failed]);
    if (Page !== null) return <Page {...props} />;
    if (!failed) return <Waiting />;
    return (
      <div class={frame}>
        <FailureNote failure={NOT_LOADED} retry={() => setFailed(false)} />
      </div>
    );
  }
  Lazy.preload = () => loadedEarly(start);
  return Lazy;
}

const NOT_LOADED = new ApiFailure(
  'network',
  'A part of this page did not arrive. Check the connection, and try again.',
  0,
  null,
);

/** Reloads the style sheets that failed. */
async function failedStyles(): Promise<void> {
  const failed = [...document.querySelectorAll<HTMLLinkElement>('link[rel=stylesheet]')].filter(isUnread);
  await Promise.all(
    failed.map(
      (old) =>
        new Promise((resolve, reject) => {
          const link = old.cloneNode() as HTMLLinkElement;
          link.onload = resolve;
          link.onerror = reject;
          old.replaceWith(link);
        }),
    ),
  );
}

/** All our sheets can be read; for a failed one, Chromium has a sheet that cannot be read. */
function isUnread({ sheet }: HTMLLinkElement): boolean {
  try {
    return (sheet?.cssRules.length ?? 0) === 0;
  } catch {
    return true;
  }
}
