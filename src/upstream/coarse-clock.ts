/**
 * Time as the hot path sees it: the number of sweeps so far. Stamping an exchange copies an integer, where
 * `performance.now()` per event measured 0.03 to 0.05 µs and a timer per call about 0.5.
 *
 * `elapsedMs` is a lower bound, so a timeout of T fires between T and T + 2 sweep intervals, never early; and a process that
 * was blocked for a while does not come back to a burst of false timeouts.
 */
export class CoarseClock {
  readonly intervalMs: number;
  ticks = 0;

  constructor(intervalMs: number) {
    this.intervalMs = intervalMs;
  }

  elapsedMs(sinceTicks: number): number {
    return (this.ticks - sinceTicks - 1) * this.intervalMs;
  }
}
