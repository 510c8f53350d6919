import { overWithin } from '../../platform/timing.ts';
import type { Reconciler } from './reconciler.ts';

const TICK_MS = 500;
const EVERY_MS = 60_000;
/** A store is away, or there was more to repair than one run does: whoever comes back older must be looked at soon. */
const RETRY_MS = 1_000;
const STOP_MS = 2_000;

export type ReconcileJobOptions = {
  readonly reconciler: Reconciler;
  /** Whether this process is the one that works: of several writers the one that holds shards. */
  readonly isActive: () => boolean;
  readonly onRedisReady: (listener: () => void) => void;
  /** Default: a minute. */
  readonly everyMs?: number;
  readonly log: { warn(fields: object, message: string): void; info(fields: object, message: string): void };
};

/**
 * Runs the reconciliation every minute, and at once when Redis is back: if it came back older than Postgres, wallets are
 * too high until then, and the sweep would refund stored calls a lease later. It waits for that: so a process that does not
 * work makes one run too whenever Redis is back.
 */
export class ReconcileJob {
  readonly #options: ReconcileJobOptions;
  #timer: NodeJS.Timeout | null = null;
  #running: Promise<void> | null = null;
  #dueAt = Number.NEGATIVE_INFINITY;
  /** No run came to its end since Redis was away. */
  #isOwed = true;
  #failing = false;
  #drifting = 0;

  constructor(options: ReconcileJobOptions) {
    this.#options = options;
    options.onRedisReady(() => {
      this.#isOwed = true;
      this.#dueAt = Number.NEGATIVE_INFINITY;
      this.#tick();
    });
  }

  start(): void {
    this.#timer ??= setTimeout(() => this.#tick(), TICK_MS).unref();
  }

  /** Ends before the next step of a run under way, or after `timeoutMs`. */
  async stop(timeoutMs = STOP_MS): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#options.reconciler.stop();
    if (this.#running !== null) await overWithin(this.#running, timeoutMs);
  }

  #tick(): void {
    if (this.#timer === null || this.#running !== null) return;
    if (performance.now() < this.#dueAt || !(this.#isOwed || this.#options.isActive())) {
      this.#lookAgain();
      return;
    }
    // Redis's return during the run makes it due at once.
    this.#dueAt = Number.POSITIVE_INFINITY;
    this.#isOwed = false;
    this.#running = this.#run().then((isDone) => {
      this.#isOwed ||= !isDone;
      const waitMs = isDone ? (this.#options.everyMs ?? EVERY_MS) : RETRY_MS;
      this.#dueAt = Math.min(this.#dueAt, performance.now() + waitMs);
      this.#running = null;
      this.#lookAgain();
    });
  }

  /** When the next run is due, or soon: a process that holds no shards now may be the one that works then. */
  #lookAgain(): void {
    if (this.#timer === null) return;
    clearTimeout(this.#timer);
    const waitMs = Math.max(this.#dueAt - performance.now(), TICK_MS);
    this.#timer = setTimeout(() => this.#tick(), waitMs).unref();
  }

  /** @returns whether it came to its end, with nothing left for the next */
  async #run(): Promise<boolean> {
    const { reconciler, log } = this.#options;
    const repairedBefore = reconciler.repaired;
    try {
      const { reports, undecided } = await reconciler.run('writer', 'gently');
      const repaired = reconciler.repaired - repairedBefore;
      if (repaired > 0)
        log.warn({ wallets: repaired }, 'repaired wallets of a redis that came back older than postgres');
      this.#reportDrift(reports.reduce((sum, { driftingAccounts }) => sum + driftingAccounts, 0));
      this.#failing = false;
      return undecided === 0;
    } catch (error) {
      if (!this.#failing && this.#timer !== null) log.warn({ err: error }, 'cannot reconcile now');
      this.#failing = true;
      return false;
    }
  }

  /** One line when the number changes. */
  #reportDrift(accounts: number): void {
    if (accounts !== this.#drifting) {
      this.#options.log.warn({ accounts }, 'wallets that do not agree with postgres: see /api/v1/admin/reconciliation');
    }
    this.#drifting = accounts;
  }
}
