import { isUuid } from '../../platform/ids.ts';
import { isWrongType } from '../../platform/redis.ts';
import { Sleeper } from '../../platform/timing.ts';
import { readRedisRun, readRedisTime } from '../redis-run.ts';
import { agrees, type Comparison, compare } from './identity.ts';
import { obstacleOf } from './provable.ts';
import { saveReport, selectBegunRepairs, selectReports } from './reconcile-sql.ts';
import { Repairer } from './repairer.ts';
import { type Drift, hadAgreed, newDrift, newReport, notCompared, ReportSums, type ShardReport } from './report.ts';
import { type ReconcileStores, ShardView, StreamTooLong } from './shard-view.ts';

/** Accounts read under one lock: some milliseconds. */
const PAGE = 500;
const SCAN_COUNT = 1_000;
/** Of the time, a gentle run works this share: 100 000 accounts took Postgres 2 s in a row, and calls waited. */
const GENTLE_SHARE = 0.1;
const LONGEST_PAUSE_MS = 200;
/** Repairs in one run, at a few milliseconds each; the rest has its turn in the next. */
const MAX_REPAIRS = 2_000;

export type RunResult = {
  readonly reports: readonly ShardReport[];
  /** Accounts of which the next run may say whether they can be repaired. */
  readonly undecided: number;
  readonly endedAtMs: number;
};

/** What was learnt of one Redis process. */
type Learnt = {
  readonly redisRunId: string;
  /** Compared whole, with every account decided. */
  readonly shards: Set<number>;
  /** Accounts that cannot be repaired, with the reason. Nothing proves later what is not proved then. */
  readonly unproven: Map<string, string>;
};

/** Which Redis process this is, where it began, what there is in it, and what was known before. Times by its own clock. */
type Scene = {
  readonly redisRunId: string;
  readonly redisStartedAtMs: number;
  readonly nowMs: number;
  readonly accounts: ReadonlyMap<number, string[]>;
  readonly before: ReadonlyMap<number, ShardReport>;
  readonly begunRepairs: ReadonlyMap<string, readonly number[]>;
  repairsLeft: number;
  undecided: number;
};

/**
 * Compares the wallets in Redis with Postgres, shard by shard and page by page, repairs what provably came of a Redis that
 * is older than Postgres, and keeps the reports. One run at a time in this process; runs of several do each other no harm.
 */
export class Reconciler {
  readonly #stores: ReconcileStores;
  readonly #repairer: Repairer;
  readonly #maxRepairs: number;
  #learnt: Learnt = { redisRunId: '', shards: new Set(), unproven: new Map() };
  #running: Promise<RunResult> | null = null;
  #last: RunResult | null = null;
  #stopping = false;
  readonly #sleeper = new Sleeper();

  constructor(stores: ReconcileStores, maxRepairs = MAX_REPAIRS) {
    this.#stores = stores;
    this.#maxRepairs = maxRepairs;
    this.#repairer = new Repairer(stores);
  }

  /** The last run that went through here; null before the first. */
  get last(): RunResult | null {
    return this.#last;
  }

  /** Wallets repaired since the start. */
  get repaired(): number {
    return this.#repairer.repaired;
  }

  /** Whether a run has compared the shard in this Redis process, and left nothing there that it could still repair. */
  hasCompared(shard: number, redisRunId: string): boolean {
    return this.#learnt.redisRunId === redisRunId && this.#learnt.shards.has(shard);
  }

  /**
   * @param by who is written beside its repairs
   * @param pace gently: with pauses, in shards that were compared in this Redis process before. Nobody waits for those
   * @throws when a store is away or Redis restarts: then nothing is known of what is left
   */
  run(by: string, pace: 'at once' | 'gently' = 'at once'): Promise<RunResult> {
    this.#running ??= this.#runOnce(by, pace === 'gently').finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /** Ends the run under way before its next step; it rejects. */
  stop(): void {
    this.#stopping = true;
    this.#sleeper.wake();
  }

  async #runOnce(by: string, isGentle: boolean): Promise<RunResult> {
    const { keys, sql } = this.#stores;
    const before = await selectReports(sql);
    const scene: Scene = {
      ...(await readStart(this.#stores)),
      accounts: await this.#scanWallets(),
      before: new Map(before.map((report) => [report.shard, report])),
      begunRepairs: await selectBegunRepairs(sql),
      repairsLeft: this.#maxRepairs,
      undecided: 0,
    };
    const { redisRunId } = scene;
    if (this.#learnt.redisRunId !== redisRunId) {
      this.#learnt = { redisRunId, shards: new Set(), unproven: new Map() };
    }
    const reports: ShardReport[] = [];
    for (let shard = 0; shard < keys.shards; shard++) {
      const report = await this.#compareShard(shard, scene, by, isGentle && this.#learnt.shards.has(shard));
      await saveReport(sql, report);
      reports.push(report);
    }
    this.#last = { reports, undecided: scene.undecided, endedAtMs: Date.now() };
    return this.#last;
  }

  async #compareShard(shard: number, scene: Scene, by: string, isGentle: boolean): Promise<ShardReport> {
    const view = new ShardView(this.#stores, shard, scene.redisRunId);
    const sums = new ReportSums();
    const disagreeing: Comparison[] = [];
    const accounts = scene.accounts.get(shard) ?? [];
    const { redisRunId, nowMs } = scene;
    try {
      await view.readAhead();
      for (let from = 0; from < accounts.length; from += PAGE) {
        this.#checkStopping();
        const beganAt = performance.now();
        const { states } = await view.read(accounts.slice(from, from + PAGE), async (reading) => reading);
        for (const state of states) {
          const comparison = compare(state);
          sums.add(comparison);
          if (!agrees(comparison)) disagreeing.push(comparison);
          else await this.#repairer.resolve(scene.begunRepairs.get(state.accountId) ?? [], state.wallet);
          if (state.settled.lostCreditsMicros > 0) await this.#repairer.restoreCredits(state, by);
        }
        if (isGentle) await this.#pauseAfter(performance.now() - beganAt);
      }
      const drifts: Drift[] = [];
      const undecidedBefore = scene.undecided;
      for (const comparison of disagreeing) {
        const drift = await this.#repair(view, shard, comparison, scene, by);
        if (drift !== null) drifts.push(drift);
      }
      if (scene.undecided === undecidedBefore) this.#learnt.shards.add(shard);
      return newReport({ shard, checkedAtMs: nowMs, redisRunId }, sums, drifts);
    } catch (error) {
      if (error instanceof StreamTooLong || isWrongType(error))
        return notCompared(shard, nowMs, scene.before.get(shard));
      throw error;
    }
  }

  /** @returns what is left of the drift */
  async #repair(
    view: ShardView,
    shard: number,
    found: Comparison,
    scene: Scene,
    madeBy: string,
  ): Promise<Drift | null> {
    this.#checkStopping();
    const { accountId } = found;
    const { redisStartedAtMs, redisRunId, nowMs } = scene;
    const before = scene.before.get(shard);
    const driftingSinceMs = before?.driftingSince[accountId] ?? null;
    const agreedSinceStart = before?.redisRunId === redisRunId && hadAgreed(before, accountId);
    const since = driftingSinceMs ?? nowMs;
    // Neither learnt nor undecided: an operator will mend it while this Redis process runs, and the sweep need not wait for that.
    const obstacle = obstacleOf(found);
    if (obstacle !== null) return newDrift(found, since, obstacle);
    const { unproven } = this.#learnt;
    const known = unproven.get(accountId);
    if (known !== undefined) return newDrift(found, since, known);
    if (scene.repairsLeft <= 0) {
      scene.undecided++;
      return newDrift(found, since, 'not tried yet: too many repairs in one run');
    }
    scene.repairsLeft--;
    const evidence = { redisStartedAtMs, driftingSinceMs, agreedSinceStart };
    const begun = scene.begunRepairs.get(accountId) ?? [];
    const left = await this.#repairer.repair({ view, shard, accountId, madeBy, begun, ...evidence });
    if (left === null) return null;
    if (left.isFinal) unproven.set(accountId, left.unproven);
    else if (obstacleOf(left.comparison) === null) scene.undecided++;
    return newDrift(left.comparison, since, left.unproven);
  }

  /** Accounts with a loaded wallet, by shard. What is loaded meanwhile comes fresh from Postgres. */
  async #scanWallets(): Promise<Map<number, string[]>> {
    const { redis, keys } = this.#stores;
    const accounts = new Map<number, Set<string>>();
    let cursor = '0';
    do {
      this.#checkStopping();
      const args = [cursor, 'MATCH', 'wallet:*', 'COUNT', String(SCAN_COUNT)];
      const [next, names] = (await redis.command('scan', args)) as [string, string[]];
      cursor = next;
      for (const name of names) {
        const id = name.slice(name.lastIndexOf(':') + 1);
        const shard = keys.shardOf(id);
        if (!isUuid(id) || name !== keys.wallet(shard, id)) continue;
        // A scan may name a key twice.
        accounts.set(shard, (accounts.get(shard) ?? new Set()).add(id));
      }
    } while (cursor !== '0');
    return new Map(Array.from(accounts, ([shard, ids]) => [shard, Array.from(ids)]));
  }

  /** Ends early when the end has come. */
  #pauseAfter(workedMs: number): Promise<void> {
    const pauseMs = Math.min(workedMs * (1 / GENTLE_SHARE - 1), LONGEST_PAUSE_MS);
    return this.#sleeper.sleep(pauseMs);
  }

  #checkStopping(): void {
    if (this.#stopping) throw new Error('the reconciliation was told to stop');
  }
}

/** Its start is exact to a second. */
async function readStart({ redis }: ReconcileStores) {
  const { runId, uptimeSeconds } = await readRedisRun(redis);
  const nowMs = await readRedisTime(redis);
  return { redisRunId: runId, redisStartedAtMs: nowMs - uptimeSeconds * 1000, nowMs };
}
