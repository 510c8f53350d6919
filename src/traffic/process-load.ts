import { type IntervalHistogram, monitorEventLoopDelay, performance } from 'node:perf_hooks';
import process from 'node:process';

/** Of the last second. */
export type ProcessLoad = {
  /** Resident memory. */
  readonly memoryBytes: number;
  /** Cores in use: 0.5 is half a core. Null in the first report, which covers no time. */
  readonly cpu: number | null;
  /** Largest delay of the event loop in milliseconds. */
  readonly loopDelayMs: number;
};

/** Node counts the interval of its timer as part of each delay. */
const RESOLUTION_MS = 10;
/** CPU usage is not computed over less time than this: it would mean nothing. */
const SHORTEST_US = 200_000;

/** Measures this process between `start` and `stop`, and does nothing outside of them. */
export class LoadMeter {
  #delays: IntervalHistogram | null = null;
  #cpu = process.cpuUsage();
  #at = 0;

  start(): void {
    this.#delays ??= monitorEventLoopDelay({ resolution: RESOLUTION_MS });
    this.#delays.reset();
    this.#delays.enable();
    this.#cpu = process.cpuUsage();
    this.#at = performance.now();
  }

  stop(): void {
    this.#delays?.disable();
  }

  /** Since `start` or the last `read`. */
  read(): ProcessLoad {
    const now = performance.now();
    const { user, system } = process.cpuUsage(this.#cpu);
    const elapsedUs = (now - this.#at) * 1_000;
    const longestMs = (this.#delays?.max ?? 0) / 1e6 - RESOLUTION_MS;
    this.#cpu = process.cpuUsage();
    this.#at = now;
    this.#delays?.reset();
    return {
      memoryBytes: process.memoryUsage.rss(),
      cpu: elapsedUs < SHORTEST_US ? null : Math.round(((user + system) / elapsedUs) * 1_000) / 1_000,
      loopDelayMs: Math.max(0, Math.round(longestMs * 10) / 10),
    };
  }
}
