import { Job, type JobOptions } from './job.ts';

/** How long counts wait in memory. They are lost with a process that dies. */
const STORE_MS = 5_000;
/** Maximum number of things whose counts wait. Further ones are not counted. */
const MAX_WAITING = 10_000;

/**
 * Counts that a process adds to Postgres every few seconds, all of them in one statement. They are as good as best effort is: they may lack
 * what a killed process had, and may have twice what Postgres stored without being able to say so. No money may depend on them.
 *
 * Tested by test/platform/late-counts.test.ts.
 */
export abstract class LateCounts<Count> extends Job {
  readonly #log: JobOptions['log'];
  /** As in 'calls that budgets refused'. */
  readonly #what: string;
  #waiting = new Map<string, Count>();

  constructor(what: string, log: JobOptions['log']) {
    super({
      everyMs: STORE_MS,
      messages: {
        failing: `${what} cannot be counted in Postgres; trying again`,
        again: `${what} are counted in Postgres again`,
      },
      log,
    });
    this.#log = log;
    this.#what = what;
  }

  /** @param id  of what is counted */
  protected add(id: string, count: Count): void {
    const waiting = this.#waiting.get(id);
    if (waiting !== undefined) this.#waiting.set(id, this.merged(waiting, count));
    else if (this.#waiting.size < MAX_WAITING) this.#waiting.set(id, count);
  }

  /** @returns both counts of the same thing as one */
  protected abstract merged(earlier: Count, later: Count): Count;

  /** Adds the counts to those in Postgres, by id. */
  protected abstract store(counts: ReadonlyMap<string, Count>): Promise<void>;

  /** Stores what waits. Call it after the last thing was counted. */
  override async stop(): Promise<void> {
    await super.stop();
    try {
      await this.round();
    } catch (err) {
      this.#log.warn({ err, waiting: this.#waiting.size }, `${this.#what} are not counted`);
    }
  }

  protected override async round(): Promise<void> {
    if (this.#waiting.size === 0) return;
    const taken = this.#waiting;
    this.#waiting = new Map();
    try {
      await this.store(taken);
    } catch (error) {
      const since = this.#waiting;
      this.#waiting = taken;
      for (const [id, count] of since) this.add(id, count);
      throw error;
    }
  }
}
