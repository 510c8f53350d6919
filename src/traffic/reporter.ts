import { performance } from 'node:perf_hooks';
import type { RedisStore } from '../platform/redis.ts';
import { SHARED_TAG } from '../platform/redis-keys.ts';
import { LoadMeter } from './process-load.ts';
import { RecentCallsWindow } from './recent-calls.ts';
import { type CallCounts, encodeReport, type ProcessName } from './report.ts';

/** Interval of the reports while somebody is watching. */
export const REPORT_EVERY_MS = 1_000;
/** How long a process reports after the last look. */
export const LOOKED_AT_MS = 10_000;
/** A report expires after this time: its process has then missed two in a row. */
const REPORT_LIVES_MS = 3_500;

/** Set of the instances that reported. */
export const REPORTING_KEY = `{${SHARED_TAG}}`;
export const reportKey = (instance: string): string => `{${SHARED_TAG}}:${instance}`;

type ReporterOptions = {
  readonly redis: Pick<RedisStore, 'command'>;
  readonly name: ProcessName;
  /** Gateways only. The gateway keeps these counts anyway. */
  readonly calls?: { readonly counts: () => CallCounts; readonly latencies: Float64Array };
  /** Writers only. */
  readonly shards?: () => number;
};

/**
 * Reports to Redis once a second what this process does, while somebody is watching: until LOOKED_AT_MS after the last look.
 *
 *   silent ──looked()──► reports each second ──nobody looked for 10 s──► silent
 *
 * A silent reporter has no timer and writes nothing.
 *
 * Tested by test/traffic/traffic.test.ts.
 */
export class Reporter {
  readonly #options: ReporterOptions;
  readonly #load = new LoadMeter();
  readonly #recent: RecentCallsWindow | null;
  #timer: NodeJS.Timeout | null = null;
  #until = 0;
  #since = 0;
  #isStopped = false;

  constructor(options: ReporterOptions) {
    this.#options = options;
    this.#recent = options.calls === undefined ? null : new RecentCallsWindow(options.calls.latencies);
  }

  /** When it began to report, on the clock of `performance.now()`; null while it is silent. */
  get since(): number | null {
    return this.#timer === null ? null : this.#since;
  }

  /** Called when somebody is watching, at this gateway or another: it starts the reports, or keeps them going. */
  looked(): void {
    if (this.#isStopped) return;
    this.#until = performance.now() + LOOKED_AT_MS;
    if (this.#timer !== null) return;
    this.#since = performance.now();
    this.#load.start();
    this.#recent?.start(performance.now());
    this.#timer = setInterval(this.#onTick, REPORT_EVERY_MS);
    this.#timer.unref();
    void this.#report();
  }

  /** The process ends: its report is removed. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    if (this.#timer === null) return;
    this.#rest();
    await this.#quietly('del', [reportKey(this.#options.name.instance)]);
  }

  readonly #onTick = (): void => {
    if (performance.now() >= this.#until) this.#rest();
    else void this.#report();
  };

  #rest(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    this.#load.stop();
  }

  async #report(): Promise<void> {
    const { name, calls, shards } = this.#options;
    const text = encodeReport({
      ...name,
      load: this.#load.read(),
      calls: calls?.counts() ?? null,
      recent: this.#recent?.read(performance.now()) ?? null,
      shards: shards?.() ?? null,
    });
    await Promise.all([
      this.#quietly('set', [reportKey(name.instance), text, 'PX', String(REPORT_LIVES_MS)]),
      this.#quietly('sadd', [REPORTING_KEY, name.instance]),
      this.#quietly('pexpire', [REPORTING_KEY, String(REPORT_LIVES_MS)]),
    ]);
  }

  /** A lost report is replaced within a second. The connection itself logs that Redis is away. */
  #quietly(command: string, args: readonly string[]): Promise<unknown> {
    return this.#options.redis.command(command, args).catch(() => {});
  }
}
