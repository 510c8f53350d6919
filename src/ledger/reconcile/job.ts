import { overWithin } from '../../platform/timing.ts';
import type { Reconciler } from './reconciler.ts';

const TICK_MS = 500;
const EVERY_MS = 60_000;
/** Pause after a run that failed or left repairs to the next run: an older state of Redis must be repaired soon. */
const RETRY_MS = 1_000;
const STOP_MS = 2_000;

export type ReconcileJobOptions = {
  readonly reconciler: Reconciler;
  /** Whether this process does the regular runs: of several writers, the one that has taken shards. */
  readonly isActive: () => boolean;
  readonly onRedisReady: (listener: () => void) => void;
  /** Default: one minute. */
  readonly everyMs?: number;
  readonly log: { warn(fields: object, message: string): void; info(fields: object, message: string): void };
};

/**
 * Runs the reconciliation every minute, and at once when Redis comes back. If Redis came back with an older state than Postgres,
 * wallets are too high until they are repaired, and one lease later the sweep would refund stored calls. The sweep waits for the
 * comparison in its own process, so a process that is not active also makes one run whenever Redis comes back.
 */
export class ReconcileJob {
  readonly #options: ReconcileJobOptions;
  #timer: NodeJS.Timeout | null = null;
  #running: Promise<void> | null = null;
  #dueAt = Number.NEGATIVE_INFINITY;
  /** No run has finished since Redis came back. */
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

  /** Stops the run under way before its next step. Resolves then, or after `timeoutMs`. */
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
    // Infinity until the run ends. If Redis comes back meanwhile, the listener makes the next run due at once.
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

  /** Ticks again when the next run is due, but at the earliest after `TICK_MS`: this process may become active at any time. */
  #lookAgain(): void {
    if (this.#timer === null) return;
    clearTimeout(this.#timer);
    const waitMs = Math.max(this.#dueAt - performance.now(), TICK_MS);
    this.#timer = setTimeout(() => this.#tick(), waitMs).unref();
  }

  /** @returns whether the run finished and left nothing to the next one */
  async #run(): Promise<boolean> {
    const { reconciler, log } = this.#options;
    const repairedBefore = reconciler.repaired;
    try {
      const { reports, undecided } = await reconciler.run('writer', 'gently');
      const repaired = reconciler.repaired - repairedBefore;
      if (repaired > 0)
        log.warn({ wallets: repaired }, 'repaired wallets after redis came back with an older state than postgres');
      this.#reportDrift(reports.reduce((sum, { driftingAccounts }) => sum + driftingAccounts, 0));
      this.#failing = false;
      return undecided === 0;
    } catch (error) {
      if (!this.#failing && this.#timer !== null)
        log.warn({ err: error }, 'cannot compare redis with postgres now: retrying');
      this.#failing = true;
      return false;
    }
  }

  /** Logs one line when the number changes. */
  #reportDrift(accounts: number): void {
    if (accounts !== this.#drifting) {
      this.#options.log.warn(
        { accounts },
        'the number of wallets that disagree with postgres has changed: see /api/v1/admin/reconciliation',
      );
    }
    this.#drifting = accounts;
  }
}
