import type { Sql } from '../../platform/postgres.ts';
import { overWithin, Sleeper } from '../../platform/timing.ts';
import { rollUpStep, type Step } from './backlog.ts';

/**
 * How many calls a step looks at. 10 000 took 0.1 to 0.3 s; for so long a flush may wait for the rows that the step has changed.
 */
const STEP_CALLS = 10_000;
/** Pause between steps, so that the back-fill takes at most about half the time of one Postgres process. */
const BETWEEN_STEPS_MS = 100;
/** Time from one look at an empty backlog to the next. Until then pages read sums from `calls`. */
const IDLE_MS = 10_000;
const LOG_EVERY_MS = 10_000;
const STOP_MS = 2_000;

export type BacklogJobOptions = {
  readonly sql: Sql;
  readonly stepCalls?: number;
  readonly idleMs?: number;
  readonly betweenStepsMs?: number;
  readonly log: { warn(fields: object, message: string): void; info(fields: object, message: string): void };
};

/** Adds the calls that writers of the version before stored to the sums by hour, step by step, as long as there are any. */
export class BacklogJob {
  readonly #options: BacklogJobOptions;
  readonly #sleeper = new Sleeper();
  #running: Promise<void> | null = null;
  #stopping = false;
  #failing = false;
  #added = 0;
  #loggedAt = Number.NEGATIVE_INFINITY;

  constructor(options: BacklogJobOptions) {
    this.#options = options;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Ends after the step under way, or after `timeoutMs`. A step that did not commit is made again by the next process. */
  async stop(timeoutMs = STOP_MS): Promise<void> {
    this.#stopping = true;
    this.#sleeper.wake();
    if (this.#running !== null) await overWithin(this.#running, timeoutMs);
  }

  async #run(): Promise<void> {
    while (!this.#stopping) {
      const isMore = await this.#step();
      if (!this.#stopping) await this.#sleeper.sleep(isMore ? this.#betweenMs : this.#idleMs);
    }
  }

  get #idleMs(): number {
    return this.#options.idleMs ?? IDLE_MS;
  }

  get #betweenMs(): number {
    return this.#options.betweenStepsMs ?? BETWEEN_STEPS_MS;
  }

  /** @returns whether there may be more to do at once */
  async #step(): Promise<boolean> {
    const { sql, log, stepCalls = STEP_CALLS } = this.#options;
    try {
      const step = await sql.begin((tx) => rollUpStep(tx, stepCalls));
      this.#failing = false;
      this.#report(step);
      return step.state === 'more' || step.state === 'over';
    } catch (error) {
      if (!this.#failing && !this.#stopping)
        log.warn({ err: error }, 'cannot add older calls to the sums by hour now: retrying');
      this.#failing = true;
      return false;
    }
  }

  #report({ state, day, added }: Step): void {
    this.#added += added;
    const now = performance.now();
    if (state === 'over') {
      this.#options.log.info({ calls: this.#added }, 'calls stored by an older version are now in the sums by hour');
      this.#added = 0;
    } else if (state === 'more' && now - this.#loggedAt >= LOG_EVERY_MS) {
      this.#loggedAt = now;
      this.#options.log.info(
        { calls: this.#added, day },
        'adding calls stored by an older version to the sums by hour',
      );
    }
  }
}
