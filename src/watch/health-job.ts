import { setTimeout as sleep } from 'node:timers/promises';
import type { Sql } from '../platform/postgres.ts';
import type { UpstreamClient } from '../upstream/index.ts';
import { ask } from './ask.ts';
import { type Due, deleteOldHours, takeDue, writeChecks } from './watch-sql.ts';

/** How often a service is asked. */
const INTERVAL_MS = 60_000;
/** How long this process waits before it looks again for services whose time has come, after it has found none. */
const LOOK_MS = 5_000;
/**
 * Maximum services asked at a time. Each takes 5 s at most, so 768 hanging services are asked in a minute, and many more that answer.
 * With more than that the time between two checks grows.
 */
const MAX_ASKING = 64;
/** Of one account. */
const MAX_ASKING_PER_ACCOUNT = 8;
const DELETE_MS = 3_600_000;

type Log = { warn(fields: object, message: string): void };

export type HealthJobOptions = {
  readonly client: UpstreamClient;
  readonly sql: Sql;
  readonly log: Log;
  readonly intervalMs?: number | undefined;
  readonly lookMs?: number | undefined;
};

/**
 * Asks the health path of every active listing that has one, once a minute. Any number of processes may run it: a service is asked by
 * the one that takes it in Postgres.
 *
 * Tested by test/integration/watched-services.test.ts.
 */
export class HealthJob {
  readonly #options: HealthJobOptions;
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> = Promise.resolve();
  readonly #stopping = new AbortController();
  #deletedAt = Number.NEGATIVE_INFINITY;

  constructor(options: HealthJobOptions) {
    this.#options = options;
  }

  start(): void {
    this.#lookIn(this.#options.lookMs ?? LOOK_MS);
  }

  /** Gives up the questions under way: their services are asked again a minute after they were taken. Takes `ms` at most. */
  async stop(ms: number): Promise<void> {
    this.#stopping.abort();
    clearTimeout(this.#timer);
    // Postgres may not answer.
    const tooLate = new AbortController();
    await Promise.race([this.#round, sleep(ms, undefined, { signal: tooLate.signal }).catch(() => {})]);
    tooLate.abort();
  }

  #lookIn(ms: number): void {
    if (this.#stopping.signal.aborted) return;
    this.#timer = setTimeout(() => {
      this.#round = this.#look();
    }, ms);
    this.#timer.unref();
  }

  async #look(): Promise<void> {
    const { sql, log, intervalMs = INTERVAL_MS, lookMs = LOOK_MS } = this.#options;
    let taken = 0;
    try {
      const due = await takeDue(sql, intervalMs, MAX_ASKING, MAX_ASKING_PER_ACCOUNT);
      taken = due.length;
      if (taken > 0) await this.#askAll(due);
      if (!this.#stopping.signal.aborted) await this.#deleteOld();
    } catch (error) {
      if (!this.#stopping.signal.aborted)
        log.warn({ err: error }, 'watch: the health of services cannot be checked now');
    }
    this.#lookIn(taken > 0 ? 0 : lookMs);
  }

  async #askAll(due: readonly Due[]): Promise<void> {
    const up = await Promise.all(due.map((service) => this.#isUp(service)));
    if (this.#stopping.signal.aborted) return;
    await writeChecks(
      this.#options.sql,
      due.map(({ id }) => id),
      up,
    );
  }

  async #isUp({ id, endpoint, healthPath }: Due): Promise<boolean> {
    const question = { serviceId: id, endpoint, method: 'GET', path: healthPath } as const;
    const status = await ask(this.#options.client, question, this.#stopping.signal);
    return status !== null && status >= 200 && status < 400;
  }

  async #deleteOld(): Promise<void> {
    if (performance.now() - this.#deletedAt < DELETE_MS) return;
    this.#deletedAt = performance.now();
    await deleteOldHours(this.#options.sql);
  }
}
