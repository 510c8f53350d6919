import type { Log } from '../observability/log.ts';
import type { MetricFamily } from '../observability/metrics.ts';
import { Sleeper } from '../platform/timing.ts';
import { Backoff } from './backoff.ts';
import type { Child } from './child.ts';

/**
 * A process that is not ready after this time is killed. It is longer than all timeouts of a start together, so that no process is
 * killed because of slow stores.
 */
const START_TIMEOUT_MS = 60_000;
/**
 * A scrape waits this long for the metrics of a process, then goes on without them: a process whose event loop is stuck must not
 * delay the metrics of the others.
 */
const METRICS_TIMEOUT_MS = 1_000;

type SlotOptions = {
  /** The name in logs and metrics: `writer`, or the number of the worker. */
  readonly name: string;
  readonly fork: () => Child;
  /** A process that was asked to stop is killed if it has not ended after this time. */
  readonly stopTimeoutMs: number;
  readonly log: Log;
};

/**
 * Keeps one process running. When it ends, the slot starts another.
 *
 *   empty ──start──► filled ──the process ends by itself──► empty ──back-off──► filled
 *                    filled ──replace──► filled by another process that is ready, while the old one drains
 *   any ──stop──► empty for good
 */
export class Slot {
  readonly #options: SlotOptions;
  readonly #backoff = new Backoff();
  /** All processes of this slot that have not ended: the current one, its replacement, those that drain. */
  readonly #children = new Set<Child>();
  #current: Child | null = null;
  #replacing = false;
  #stopping = false;
  readonly #sleeper = new Sleeper();
  /** How often the slot has started a process again after one had ended by itself. Attempts that failed count too. */
  restarts = 0;

  constructor(options: SlotOptions) {
    this.#options = options;
  }

  get name(): string {
    return this.#options.name;
  }

  /** Whether the slot's process is ready. */
  get isFilled(): boolean {
    return this.#current !== null;
  }

  /** Rejects when the process ends before it is ready. */
  async start(): Promise<void> {
    this.#fill(await this.#spawn());
  }

  /** Starts another process. Once it is ready, drains the old one. If the start fails, rejects and keeps the old process. */
  async replace(): Promise<void> {
    const old = this.#current;
    // Without a process, a new one is being started anyway.
    if (old === null || this.#stopping) return;
    this.#replacing = true;
    try {
      this.#fill(await this.#spawn());
    } finally {
      this.#replacing = false;
      if (this.#current === null) void this.#refill(0);
    }
    await this.#end(old, true);
  }

  /** Drains and ends all processes of the slot, and starts no more. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#sleeper.wake();
    await Promise.all(Array.from(this.#children, (child) => this.#end(child, false)));
  }

  kill(): void {
    for (const child of this.#children) child.kill();
  }

  /** @returns null when there is no process, or it does not answer in time */
  async metrics(): Promise<readonly MetricFamily[] | null> {
    return this.#current === null ? null : this.#current.metrics(METRICS_TIMEOUT_MS);
  }

  async #spawn(): Promise<Child> {
    if (this.#stopping) throw new Error('the slot is stopping');
    const child = this.#options.fork();
    this.#children.add(child);
    void child.exited.then(() => this.#children.delete(child));
    await child.untilReady(START_TIMEOUT_MS);
    this.#say('info', { pid: child.pid }, 'process is ready');
    return child;
  }

  #fill(child: Child): void {
    this.#current = child;
    void child.exited.then((end) => {
      if (this.#current !== child) return;
      this.#current = null;
      if (this.#stopping) return;
      this.#say('error', { pid: child.pid, end }, 'process ended by itself');
      if (!this.#replacing) void this.#refill(child.readyMs);
    });
  }

  async #refill(livedMs: number): Promise<void> {
    let lastedMs = livedMs;
    while (!this.#stopping) {
      const pauseMs = this.#backoff.next(lastedMs);
      await this.#sleeper.sleep(pauseMs);
      if (this.#stopping) return;
      this.restarts++;
      try {
        this.#fill(await this.#spawn());
        return;
      } catch (error) {
        if (!this.#stopping) this.#say('error', { err: error }, 'process could not be started again');
        lastedMs = 0;
      }
    }
  }

  async #end(child: Child, replaced: boolean): Promise<void> {
    const { stopTimeoutMs } = this.#options;
    if (await child.stop(replaced, stopTimeoutMs)) return;
    this.#say('warn', { pid: child.pid, after_ms: stopTimeoutMs }, 'process did not end in time and was killed');
  }

  #say(level: 'info' | 'warn' | 'error', fields: object, message: string): void {
    this.#options.log[level]({ process: this.name, ...fields }, message);
  }
}
