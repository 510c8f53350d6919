import { Job, type JobOptions } from '../platform/job.ts';
import type { Sql } from '../platform/postgres.ts';
import type { UpstreamClient } from '../upstream/index.ts';
import { askHealth, INTERVAL_MS, type Watched } from './health.ts';
import { type Check, deleteOldHours, takeDue, writeChecks } from './watch-sql.ts';

/** How long this process waits, after it has found no service that is due, before it looks again. */
const LOOK_MS = 5_000;
/**
 * Maximum services asked at the same time. Each takes at most 5 s, so 768 services that hang can be asked in a minute, and many
 * more that answer. With more services the time between two checks grows.
 */
const MAX_ASKING = 64;
/** Maximum services of one account asked at the same time. */
const MAX_ASKING_PER_ACCOUNT = 8;
const DELETE_MS = 3_600_000;

export type HealthJobOptions = {
  readonly client: UpstreamClient;
  readonly sql: Sql;
  readonly log: JobOptions['log'];
  readonly intervalMs?: number | undefined;
  readonly lookMs?: number | undefined;
};

/**
 * Asks the health path of every active listing that has one, once a minute. Any number of processes may run it: a service is asked
 * by the process that takes it in Postgres. `stop` aborts the questions under way: their services are asked again a minute after
 * they were taken.
 *
 * Tested by test/integration/watched-services.test.ts.
 */
export class HealthJob extends Job {
  readonly #options: HealthJobOptions;
  #deletedAt = Number.NEGATIVE_INFINITY;

  constructor(options: HealthJobOptions) {
    const { lookMs = LOOK_MS, log } = options;
    super({
      everyMs: lookMs,
      firstMs: lookMs,
      messages: {
        failing: 'watch: the health of services cannot be checked now',
        again: 'watch: the health of services is checked again',
      },
      log,
    });
    this.#options = options;
  }

  protected override async round(): Promise<void> {
    const { sql, intervalMs = INTERVAL_MS } = this.#options;
    const due = await takeDue(sql, intervalMs, MAX_ASKING, MAX_ASKING_PER_ACCOUNT);
    if (due.length > 0) {
      this.nextIn(0);
      await this.#askAll(due);
    }
    if (!this.stopping.aborted) await this.#deleteOld();
  }

  async #askAll(due: readonly Watched[]): Promise<void> {
    const { client, sql } = this.#options;
    const checks = await Promise.all(
      due.map(async (watched): Promise<Check | null> => {
        const answer = await askHealth(client, watched, this.stopping);
        return answer === null ? null : { ...watched, ...answer };
      }),
    );
    if (this.stopping.aborted) return;
    await writeChecks(
      sql,
      checks.filter((check) => check !== null),
    );
  }

  async #deleteOld(): Promise<void> {
    if (performance.now() - this.#deletedAt < DELETE_MS) return;
    this.#deletedAt = performance.now();
    await deleteOldHours(this.#options.sql);
  }
}
