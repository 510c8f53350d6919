import { onBeat } from './beat.ts';
import { overWithin, Sleeper } from './timing.ts';

/** How long `stop` waits by default. */
const STOP_MS = 2_000;
const LONGEST_REST_MS = 30_000;

type JobLog = { warn(fields: object, message: string): void; info(fields: object, message: string): void };

export type JobOptions = {
  /** Pause from the end of a round to the next. One of 5 s or more is shortened to end on a beat (`beat.ts`), and so are the other two. */
  readonly everyMs: number;
  /** Pause before the first round. Default: none. */
  readonly firstMs?: number;
  /** Pause after a round that failed. Default: `everyMs`. */
  readonly retryMs?: number;
  /** Called before each round, which is skipped if this process is not the one that does the work. Default: it is. */
  readonly isActive?: () => boolean;
  /** Share of the time that `paced` work takes. Default: 1. */
  readonly busyShare?: number;
  /** Longest rest after one piece of `paced` work. Default: 30 s. */
  readonly longestRestMs?: number;
  /** What is logged when a round fails after a successful one, and when a round succeeds again. */
  readonly messages: { readonly failing: string; readonly again: string };
  readonly log: JobLog;
};

/**
 * Work that a process does in the background, in rounds that do not overlap. A subclass gives the constructor its pauses and its two
 * log lines, and says in `round` what one round does. The role that makes the job starts it, and stops it before the stores and
 * clients that it uses.
 *
 *   start ──firstMs──► round ──everyMs, or nextIn()──► round ──► …      stop: no more rounds; waits for the one under way
 *                        └─ throws: logged once ──retryMs──► round ──► logged once that it succeeds again
 *
 * In a round:
 * - `this.stopping` says that the process ends: a long round checks `stopping.aborted` between its steps, and passes the signal on.
 * - `this.nextIn(ms)` sets another pause after this round: 0 when there is more to do.
 * - `this.paced(work)` does a piece of work that keeps a store busy, and then rests, because calls and pages come first.
 *
 * A process may die between any two steps, and another may make the same round at the same time. So a round must be correct if it
 * is done twice, or only in part.
 *
 * Tested by test/platform/job.test.ts.
 */
export abstract class Job {
  readonly #options: JobOptions;
  readonly #stopping = new AbortController();
  readonly #pause = new Sleeper();
  readonly #rest = new Sleeper();
  #running: Promise<void> | null = null;
  #pauseMs = 0;
  #isWoken = false;
  #failing = false;

  constructor(options: JobOptions) {
    this.#options = options;
  }

  protected abstract round(): Promise<void>;

  /** Does nothing if the job was already started or stopped. */
  start(): void {
    this.#running ??= this.#run();
  }

  /** Makes a round now: at once, or after the round under way. */
  wake(): void {
    this.#isWoken = true;
    this.#pause.wake();
  }

  /** Resolves when the round under way has ended, or after `timeoutMs`. */
  async stop(timeoutMs = STOP_MS): Promise<void> {
    this.#stopping.abort();
    this.#pause.wake();
    this.#rest.wake();
    if (this.#running !== null) await overWithin(this.#running, timeoutMs);
  }

  /** Aborted by `stop`. */
  protected get stopping(): AbortSignal {
    return this.#stopping.signal;
  }

  protected nextIn(ms: number): void {
    this.#pauseMs = Math.max(0, ms);
  }

  /** Does one piece of work, and then rests for as long as `busyShare` requires. */
  protected async paced<T>(work: () => Promise<T>): Promise<T> {
    const { busyShare = 1, longestRestMs = LONGEST_REST_MS } = this.#options;
    const startedAt = performance.now();
    try {
      return await work();
    } finally {
      const restMs = ((performance.now() - startedAt) * (1 - busyShare)) / busyShare;
      if (!this.stopping.aborted) await this.#rest.sleep(Math.min(restMs, longestRestMs));
    }
  }

  async #run(): Promise<void> {
    const { firstMs = 0 } = this.#options;
    if (firstMs > 0 && !this.stopping.aborted) await this.#pause.sleep(onBeat(firstMs));
    while (!this.stopping.aborted) {
      this.#isWoken = false;
      await this.#tryRound();
      if (!this.#isWoken && !this.stopping.aborted) await this.#pause.sleep(onBeat(this.#pauseMs));
    }
  }

  /** Never rejects. A round that is cut short by `stop` logs nothing. */
  async #tryRound(): Promise<void> {
    const { everyMs, retryMs = everyMs, isActive, messages, log } = this.#options;
    this.#pauseMs = everyMs;
    try {
      if (isActive?.() === false) return;
      await this.round();
      if (this.#failing && !this.stopping.aborted) log.info({}, messages.again);
      this.#failing = false;
    } catch (error) {
      if (!this.#failing && !this.stopping.aborted) log.warn({ err: error }, messages.failing);
      this.#failing = true;
      this.#pauseMs = retryMs;
    }
  }
}
