/**
 * Work that a process does every five seconds or less often begins on the same full five seconds of its clock, so that an idle
 * process wakes up once for all of it. Each wake-up costs it 0.2 to 0.5 ms, mostly because its caches are cold (decision 0076).
 */
const BEAT_MS = 5_000;
/** A timer may fire this much too early or too late, and its work takes time: it still counts as on the beat. */
const OFF_BEAT_MS = 100;

/**
 * The pause, made up to `BEAT_MS` shorter or `OFF_BEAT_MS` longer, so that it ends on a beat. Pauses shorter than `BEAT_MS` are not
 * changed.
 */
export function onBeat(pauseMs: number): number {
  if (pauseMs < BEAT_MS) return pauseMs;
  const now = performance.now();
  return Math.floor((now + pauseMs + OFF_BEAT_MS) / BEAT_MS) * BEAT_MS - now;
}

/** Calls `work` on each beat. The beat does not keep the process alive. @returns a function that ends it */
export function everyBeat(work: () => void): () => void {
  let timer: NodeJS.Timeout;
  const next = (): void => {
    timer = setTimeout(() => {
      next();
      work();
    }, onBeat(BEAT_MS)).unref();
  };
  next();
  return () => clearTimeout(timer);
}
