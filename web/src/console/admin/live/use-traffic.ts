import { useEffect, useState } from 'preact/hooks';
import { ApiFailure, dataOf } from '../../../api/client.ts';
import { eventsIn } from '../../../calls/event-stream.ts';
import { api } from '../../../session.ts';
import { type Point, type Traffic, withSnapshot } from './rates.ts';

/** After this long without an event the figures are not live any more. */
const SILENCE_MS = 4_000;
/** Pauses between attempts; the last one repeats. */
const PAUSES_MS = [1_000, 2_000, 5_000, 10_000] as const;

export type Live = {
  readonly state: 'connecting' | 'live' | 'lost' | 'refused';
  readonly traffic: Traffic | null;
  readonly points: readonly Point[];
  /** Why the figures are not live. */
  readonly failure: unknown;
};

const FIRST: Live = { state: 'connecting', traffic: null, points: [], failure: null };

/** The traffic as it arrives. Reconnects by itself, and requests nothing while the tab is hidden. */
export function useTraffic(): Live {
  const [live, setLive] = useState<Live>(FIRST);
  useEffect(() => {
    const ended = new AbortController();
    void follow(ended.signal, (change) => setLive((before) => ({ ...before, ...change(before) })));
    return () => ended.abort();
  }, []);
  return live;
}

type Tell = (change: (before: Live) => Partial<Live>) => void;

async function follow(ended: AbortSignal, tell: Tell): Promise<void> {
  for (let failures = 0; !ended.aborted; ) {
    await whenVisible(ended);
    try {
      if (await stream(ended, tell)) failures = 0;
      else failures++;
    } catch (failure) {
      if (ended.aborted) return;
      failures++;
      const known = failure instanceof ApiFailure ? failure : null;
      const isRefused = known !== null && (known.status === 401 || known.status === 403);
      tell(() => ({ state: isRefused ? 'refused' : 'lost', failure }));
      if (isRefused) return;
      const pause = Math.max(
        (known?.retryAfter ?? 0) * 1_000,
        PAUSES_MS[Math.min(failures, PAUSES_MS.length) - 1] ?? 0,
      );
      await sleep(pause, ended);
    }
  }
}

/** One connection, until it ends. @returns whether an event came */
async function stream(ended: AbortSignal, tell: Tell): Promise<boolean> {
  const mine = new AbortController();
  const stop = (): void => mine.abort();
  const onVisibility = (): void => {
    if (document.hidden) stop();
  };
  ended.addEventListener('abort', stop);
  document.addEventListener('visibilitychange', onVisibility);
  let silence = setTimeout(stop, SILENCE_MS * 2);
  let isSeen = false;
  try {
    const body = await dataOf(
      api.value.GET('/api/v1/admin/traffic', {
        headers: { Accept: 'text/event-stream' },
        parseAs: 'stream',
        signal: mine.signal,
      }),
    );
    for await (const { name, data } of eventsIn(body as unknown as ReadableStream<Uint8Array>)) {
      clearTimeout(silence);
      silence = setTimeout(stop, SILENCE_MS);
      isSeen = true;
      if (name === 'traffic') {
        const traffic = JSON.parse(data) as Traffic;
        tell(({ traffic: previous, points }) => ({
          state: 'live',
          traffic,
          failure: null,
          points: withSnapshot(points, previous, traffic),
        }));
      } else if (name === 'unavailable') {
        const failure = new ApiFailure('unavailable', 'The gateway cannot reach Redis at the moment.', 503, null);
        tell(() => ({ state: 'lost', failure }));
      }
    }
    // The gateway drains, or five minutes have passed: the next connection follows at once.
    return isSeen;
  } catch (error) {
    if (ended.aborted || document.hidden) return isSeen;
    if (mine.signal.aborted) {
      throw new ApiFailure('network', 'The gateway has sent nothing for some seconds.', 0, null);
    }
    if (error instanceof ApiFailure) throw error;
    throw new ApiFailure('network', 'The connection to the gateway was lost.', 0, null);
  } finally {
    clearTimeout(silence);
    ended.removeEventListener('abort', stop);
    document.removeEventListener('visibilitychange', onVisibility);
  }
}

function whenVisible(ended: AbortSignal): Promise<void> {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve) => {
    document.addEventListener('visibilitychange', () => resolve(), { once: true, signal: ended });
    ended.addEventListener('abort', () => resolve(), { once: true });
  });
}

function sleep(ms: number, ended: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    ended.addEventListener(
      'abort',
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}
