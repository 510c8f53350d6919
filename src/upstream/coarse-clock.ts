/**
 * The clock of the hot path, which counts sweeps. To stamp an event is to copy an integer; calling `performance.now()` for each
 * took 0.03 to 0.05 µs, and a timer per call about 0.5.
 *
 * `elapsedMs` is a lower bound: a timeout of T fires between T and T + 2 sweep intervals, never early. A process that was blocked
 * for a while counts it as one sweep, so no burst of false timeouts follows.
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
