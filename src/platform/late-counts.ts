import { Job, type JobOptions } from './job.ts';

/** How long counts wait in memory. If the process dies, they are lost. */
const STORE_MS = 5_000;
/** Maximum number of things whose counts wait. Others are not counted, and a log line says how often that happened. */
const MAX_WAITING = 10_000;

/**
 * Counts that a process adds to Postgres every few seconds, all of them in one statement. They are best effort: they may lack the
 * counts of a killed process, and may include counts twice if Postgres stored them but could not confirm it. No money may depend on
 * them.
 *
 * Tested by test/platform/late-counts.test.ts.
 */
export abstract class LateCounts<Count> extends Job {
  readonly #log: JobOptions['log'];
  /** What is counted, for example 'calls that budgets refused'. */
  readonly #what: string;
  #waiting = new Map<string, Count>();
  /** Counts since the last successful round for which there was no room. */
  #dropped = 0;

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

  /** @param id of the thing that is counted */
  protected add(id: string, count: Count): void {
    const waiting = this.#waiting.get(id);
    if (waiting !== undefined) this.#waiting.set(id, this.merged(waiting, count));
    else if (this.#waiting.size < MAX_WAITING) this.#waiting.set(id, count);
    else this.#dropped += 1;
  }

  /** @returns both counts of the same thing as one */
  protected abstract merged(earlier: Count, later: Count): Count;

  /** Adds the counts to those in Postgres, by id. */
  protected abstract store(counts: ReadonlyMap<string, Count>): Promise<void>;

  /** Stores the waiting counts. Call it after the last thing was counted. */
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
    if (this.#dropped > 0) {
      this.#log.warn({ dropped: this.#dropped }, `some ${this.#what} were not counted: too many waited for Postgres`);
      this.#dropped = 0;
    }
  }
}
