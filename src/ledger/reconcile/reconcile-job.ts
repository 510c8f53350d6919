import { overWithin } from '../../platform/timing.ts';
import type { Reconciler } from './reconciler.ts';

const TICK_MS = 500;
const EVERY_MS = 60_000;
/**
 * One of this many regular runs is always made. The others are skipped while nothing has changed: comparing 1 000 wallets every
 * minute took more CPU (150 to 235 ms) than everything else in the writer of an installation that nobody calls.
 */
const ALWAYS_ONE_OF = 10;
/**
 * Pause after a run that failed or left repairs to the next run. It is short, because wallets may have too much money until then.
 */
const RETRY_MS = 1_000;
/**
 * Pause after a run that could not compare a shard because the writer was behind. The writer stores the events of a shard in
 * seconds, and the sweep may wait for the comparison. It is not shorter, because a run compares the other shards again.
 */
const BEHIND_MS = 5_000;
const STOP_MS = 2_000;

type ReconcileJobOptions = {
  readonly reconciler: Reconciler;
  /** Whether this process makes the regular runs. Only one of several writers does. */
  readonly isActive: () => boolean;
  readonly onRedisReady: (listener: () => void) => void;
  /** Time from the end of a regular run to the next. Default: one minute. */
  readonly everyMs?: number;
  /**
   * The jobs that are failing. All jobs of a process share it: the first one that fails writes a line, and the others write none,
   * because most likely the same store is away.
   */
  readonly failing?: Set<ReconcileJob>;
  readonly log: { warn(fields: object, message: string): void; info(fields: object, message: string): void };
};

/**
 * Runs the reconciliation every minute, and at once when Redis comes back. If the last two runs found nothing wrong and nothing was
 * posted since, it only checks every minute whether this is still so and whether Postgres is older, and compares all wallets every
 * tenth time. A Redis that came back with an older state than Postgres has wallets with too much money until they are repaired, and
 * holds of stored calls, which the sweep must not refund. So the sweep waits until the reconciliation of its own process has
 * compared them. That is why every writer makes a run when Redis comes back, even one that is not active.
 */
export class ReconcileJob {
  readonly #options: ReconcileJobOptions;
  #timer: NodeJS.Timeout | null = null;
  #running: Promise<void> | null = null;
  #dueAt = Number.NEGATIVE_INFINITY;
  /**
   * Whether this process must make a run even if it is not active: Redis came back, or the last run failed or left repairs undone.
   */
  #isOwed = true;
  readonly #failing: Set<ReconcileJob>;
  #drifting = 0;
  #leftOut = 0;

  constructor(options: ReconcileJobOptions) {
    this.#options = options;
    this.#failing = options.failing ?? new Set();
    options.onRedisReady(() => this.soon());
  }

  /** Makes a run at once, or after the run under way, even if this process is not active. */
  soon(): void {
    this.#isOwed = true;
    this.#dueAt = Number.NEGATIVE_INFINITY;
    this.#tick();
  }

  start(): void {
    this.#timer ??= setTimeout(() => this.#tick(), TICK_MS).unref();
  }

  /** Tells the run under way to end before its next step. Resolves when it has ended, or after `timeoutMs`. */
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
    // The next run is not scheduled until this one ends, unless Redis comes back: the listener then makes it due at once.
    this.#dueAt = Number.POSITIVE_INFINITY;
    const isOwed = this.#isOwed;
    this.#isOwed = false;
    this.#running = this.#run(isOwed).then((left) => {
      this.#isOwed ||= left !== 'nothing';
      const { everyMs = EVERY_MS } = this.#options;
      const waitMs = { nothing: everyMs, 'shards behind': Math.min(BEHIND_MS, everyMs), unfinished: RETRY_MS }[left];
      this.#dueAt = Math.min(this.#dueAt, performance.now() + waitMs);
      this.#running = null;
      this.#lookAgain();
    });
  }

  /**
   * Ticks again when the next run is due. If a run is due but this process is not active, ticks every `TICK_MS`: it may become
   * active at any time.
   */
  #lookAgain(): void {
    if (this.#timer === null) return;
    clearTimeout(this.#timer);
    const waitMs = Math.max(this.#dueAt - performance.now(), TICK_MS);
    this.#timer = setTimeout(() => this.#tick(), waitMs).unref();
  }

  /** @returns what the run left to the next one */
  async #run(isOwed: boolean): Promise<'nothing' | 'shards behind' | 'unfinished'> {
    const { reconciler, log } = this.#options;
    const { repaired: repairedBefore, dropped: droppedBefore } = reconciler;
    try {
      if (!isOwed && (await this.#mayLeaveOut())) return 'nothing';
      const { reports, undecided, behind } = await reconciler.run('writer', 'gently');
      const repaired = reconciler.repaired - repairedBefore;
      const dropped = reconciler.dropped - droppedBefore;
      if (repaired > 0) log.warn({ wallets: repaired }, 'repaired wallets: redis had other data than postgres');
      if (dropped > 0)
        log.info({ wallets: dropped }, 'dropped idle wallets, to be loaded again: redis may have changed');
      this.#reportDrift(reports.reduce((sum, { driftingAccounts }) => sum + driftingAccounts, 0));
      this.#failing.delete(this);
      if (undecided > 0) return 'unfinished';
      return behind.length > 0 ? 'shards behind' : 'nothing';
    } catch (error) {
      if (this.#failing.size === 0 && this.#timer !== null)
        log.warn({ err: error }, 'cannot compare redis with postgres now: retrying');
      this.#failing.add(this);
      return 'unfinished';
    }
  }

  async #mayLeaveOut(): Promise<boolean> {
    const isUnchanged = await this.#options.reconciler.isUnchanged();
    this.#leftOut = isUnchanged && this.#leftOut < ALWAYS_ONE_OF - 1 ? this.#leftOut + 1 : 0;
    return this.#leftOut > 0;
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
