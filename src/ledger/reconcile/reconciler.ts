import { isWrongType } from '../../platform/redis.ts';
import { Sleeper } from '../../platform/timing.ts';
import { olderShards, refuseOlder, storeVerified } from '../history/histories-sql.ts';
import { isInDoubt } from '../history/judge.ts';
import { mayLeaveOut, type Run } from '../history/may-leave-out.ts';
import { staysInDoubt } from '../history/may-repair.ts';
import { readRedisRun, readRedisTime } from '../redis-run.ts';
import { chunksOf } from './chunks.ts';
import { type Decision, decide, isAhead } from './decision.ts';
import { dropIdle } from './drop-idle.ts';
import { type AccountState, agrees, type Comparison, compare } from './identity.ts';
import { loadedAccounts } from './loaded-accounts.ts';
import { lookAtStores, type StoresLook } from './look-at-stores.ts';
import { saveReport, selectBegunRepairs, selectReports } from './reconcile-sql.ts';
import { Repairer } from './repairer.ts';
import { type Drift, newDrift, newReport, notCompared, ReportSums, type ShardReport } from './report.ts';
import { type Reading, type ReconcileStores, ShardView, type StreamBounds, StreamTooLong } from './shard-view.ts';

/**
 * Maximum number of accounts read while the shard's flush lock is held, which takes some milliseconds. The lock is released between
 * two pages, so that flushes of the shard do not wait for all its accounts.
 */
const PAGE = 500;
/**
 * Maximum number of accounts in a page of a shard with more than MANY_HOLDS open holds. For each page Redis reads all of them, 1.3 µs
 * each, so fewer and larger pages take less of its time in total; the same is true of dropping wallets. With this many accounts the
 * flush lock is held for some 20 ms.
 */
const LARGE_PAGE = 2_000;
const MANY_HOLDS = 1_000;
/**
 * Maximum number of accounts whose idle wallets are dropped while the flush lock is held, for some 100 ms; meanwhile other shards
 * are flushed, and wallets are loaded. With 2 000 accounts, and so more steps that wait for each other, everything took a fifth
 * longer.
 */
const DROP_PAGE = 10_000;
/**
 * Share of the time for which a 'gently' paced run works. Without pauses, 100 000 accounts kept Postgres busy for 2 s, and calls
 * waited.
 */
const GENTLE_SHARE = 0.1;
const LONGEST_PAUSE_MS = 200;
/** Maximum number of accounts that one run tries to repair, at a few milliseconds each; the next run tries the rest. */
const MAX_REPAIRS = 2_000;

export type RunResult = {
  readonly reports: readonly ShardReport[];
  /** Number of drifting accounts that this run neither repaired nor found impossible to repair: the next run tries them. */
  readonly undecided: number;
  /** For each shard that was not compared because the writer is behind: how many events wait in its stream. */
  readonly behind: readonly number[];
  readonly endedAtMs: number;
};

/**
 * The shards that were compared completely with the present data of one Redis (`RedisRun`), and in which no account was left
 * undecided; each with the doubt at that time, which also grows when an operator accepts an older Postgres.
 */
type Compared = { readonly dataId: string; readonly shards: Map<number, number> };

/** What a run knows when it begins, and what it counts. */
type Scene = {
  readonly by: string;
  /** Identifies the data that are compared (`RedisRun`). It was read before anything else. */
  readonly dataId: string;
  /** Redis's clock. */
  readonly nowMs: number;
  readonly accounts: ReadonlyMap<number, string[]>;
  readonly before: ReadonlyMap<number, ShardReport>;
  readonly begunRepairs: ReadonlyMap<string, readonly number[]>;
  repairsLeft: number;
  undecided: number;
  readonly behind: number[];
};

/** What is known about a shard while it is compared. */
type Shard = {
  readonly shard: number;
  readonly view: ShardView;
  readonly scene: Scene;
  /** The doubt with which its comparison began. */
  readonly began: number;
  /** Whether the shard or one of its accounts is in doubt. */
  readonly isAnyInDoubt: boolean;
  /** The accounts that stay in doubt when the shard is verified. */
  readonly left: Set<string>;
  /**
   * Whether idle wallets and trees of keys are dropped: if there are any, and this process compares these data with this doubt for
   * the first time.
   */
  readonly drops: boolean;
  /** Set if an account cannot be judged until somebody removes an obstacle: the shard stays in doubt. */
  hasObstacle: boolean;
  readonly sums: ReportSums;
};

/** An account that does not agree. */
type Found = { readonly comparison: Comparison; readonly decision: Decision };

type ReconcilerOptions = {
  readonly maxRepairs?: number;
  /** The shards to compare, all in one Redis, which is asked for its process and its time. Default: all. */
  readonly shards?: readonly number[];
  /** Runs the work when it is this reconciler's turn. Default: at once. */
  readonly inTurn?: InTurn;
  readonly bounds?: Partial<StreamBounds>;
};

type InTurn = <T>(work: () => Promise<T>) => Promise<T>;

/**
 * Compares the wallets in Redis with Postgres, shard by shard and page by page; repairs what may be the effect of a Redis that has
 * changed, or drops it to be loaded again; and stores the reports. This process makes one run at a time. Runs of several processes
 * do not harm each other, but remove each other's tickets.
 */
export class Reconciler {
  readonly #stores: ReconcileStores;
  readonly #repairer: Repairer;
  readonly #maxRepairs: number;
  readonly #shards: readonly number[];
  readonly #inTurn: InTurn;
  readonly #bounds: Partial<StreamBounds>;
  #compared: Compared = { dataId: '', shards: new Map() };
  #dropped = 0;
  #running: Promise<RunResult> | null = null;
  #last: RunResult | null = null;
  /** The youngest row of the journal when each of the last two runs began. */
  #newest: Pick<Run, 'newestPosting' | 'newestBefore'> = { newestPosting: -1, newestBefore: -1 };
  #olderShards: readonly number[] = [];
  #stopping = false;
  readonly #sleeper = new Sleeper();

  constructor(
    stores: ReconcileStores,
    {
      maxRepairs = MAX_REPAIRS,
      shards = Array.from(stores.keys.open.keys()),
      inTurn = (work) => work(),
      bounds = {},
    }: ReconcilerOptions = {},
  ) {
    this.#stores = stores;
    this.#maxRepairs = maxRepairs;
    this.#shards = shards;
    this.#inTurn = inTurn;
    this.#bounds = bounds;
    this.#repairer = new Repairer(stores);
  }

  /** The last run that finished; null before the first. */
  get last(): RunResult | null {
    return this.#last;
  }

  /** Number of wallets repaired since the start. */
  get repaired(): number {
    return this.#repairer.repaired;
  }

  /** Number of wallets dropped since the start. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Shards for which Postgres was older when last checked. */
  get olderShards(): readonly number[] {
    return this.#olderShards;
  }

  /** Whether a run may be left out. @throws when a store is away, or Postgres is older */
  async isUnchanged(): Promise<boolean> {
    const look = await this.#look();
    if (this.#last === null) return false;
    const { reports, undecided } = this.#last;
    const isRight = reports.every(({ compared, driftingAccounts }) => compared && driftingAccounts === 0);
    return mayLeaveOut({ ...this.#newest, isClean: undecided === 0 && isRight }, look);
  }

  /** Whether a run has compared the shard since Redis has had these data, and left nothing there that may still be repaired. */
  hasCompared(shard: number, dataId: string): boolean {
    return this.#compared.dataId === dataId && this.#compared.shards.has(shard);
  }

  /**
   * If a run is already under way, returns that one.
   *
   * @param by recorded with each repair as the one who made it
   * @param pace 'gently': pause within shards for which `hasCompared` is true, since the sweep does not wait for those
   * @throws when a store is away, Redis restarts or `stop` is called. It is then unknown which accounts still need a repair
   */
  run(by: string, pace: 'at once' | 'gently' = 'at once'): Promise<RunResult> {
    this.#running ??= this.#inTurn(() => this.#runOnce(by, pace === 'gently')).finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /** Stops the run under way before its next step; that run rejects. */
  stop(): void {
    this.#stopping = true;
    this.#sleeper.wake();
  }

  async #runOnce(by: string, isGentle: boolean): Promise<RunResult> {
    const { sql, redis } = this.#stores;
    const { newestPosting } = await this.#look();
    const before = await selectReports(sql);
    // Read before the scan, because a Redis that is replaced later may have other wallets.
    const { dataId } = await readRedisRun(redis);
    const scene: Scene = {
      by,
      dataId,
      nowMs: await readRedisTime(redis),
      accounts: await loadedAccounts(this.#stores, this.#shards, () => this.#checkStopping()),
      before: new Map(before.map((report) => [report.shard, report])),
      begunRepairs: await selectBegunRepairs(sql),
      repairsLeft: this.#maxRepairs,
      undecided: 0,
      behind: [],
    };
    if (this.#compared.dataId !== dataId) this.#compared = { dataId, shards: new Map() };
    const reports: ShardReport[] = [];
    for (const shard of this.#shards) {
      const report = await this.#compareShard(shard, scene, isGentle && this.#compared.shards.has(shard));
      await saveReport(sql, report);
      reports.push(report);
    }
    this.#newest = { newestPosting, newestBefore: this.#newest.newestPosting };
    this.#last = { reports, undecided: scene.undecided, behind: scene.behind, endedAtMs: Date.now() };
    return this.#last;
  }

  /** One older shard is enough, because a Postgres goes back as a whole. Checked before the search for all wallets. */
  async #look(): Promise<StoresLook> {
    const look = await lookAtStores(this.#stores, this.#shards);
    this.#olderShards = olderShards(look.judged);
    refuseOlder(look.judged);
    return look;
  }

  async #compareShard(shard: number, scene: Scene, isGentle: boolean): Promise<ShardReport> {
    try {
      const its = await this.#beginShard(shard, scene);
      const found = await this.#comparePages(its, isGentle);
      const undecidedBefore = scene.undecided;
      const drifts: Drift[] = [];
      for (const one of found) {
        const drift = await this.#repair(its, one);
        if (drift !== null) drifts.push(drift);
      }
      if (scene.undecided === undecidedBefore) {
        if (its.isAnyInDoubt && !its.hasObstacle)
          await storeVerified(this.#stores.sql.unsafe, shard, its.began, its.left);
        this.#compared.shards.set(shard, its.began);
      }
      return newReport({ shard, checkedAtMs: scene.nowMs }, its.sums, drifts);
    } catch (error) {
      if (error instanceof StreamTooLong) scene.behind.push(shard);
      if (error instanceof StreamTooLong || isWrongType(error))
        return notCompared({ shard, checkedAtMs: scene.nowMs, why: error }, scene.before.get(shard));
      throw error;
    }
  }

  async #beginShard(shard: number, scene: Scene): Promise<Shard> {
    const view = new ShardView(this.#stores, shard, scene.dataId, this.#bounds);
    const { history, hasLeftInDoubt } = await view.begin();
    const inDoubt = isInDoubt(history);
    const isNew = this.#compared.shards.get(shard) !== history.doubt;
    const drops = inDoubt && isNew && scene.accounts.has(shard);
    // A drop reads the stream while it waits for Postgres.
    if (!drops) await view.readAhead();
    return {
      shard,
      view,
      scene,
      began: history.doubt,
      isAnyInDoubt: inDoubt || hasLeftInDoubt,
      left: new Set(),
      drops,
      hasObstacle: false,
      sums: new ReportSums(),
    };
  }

  /**
   * Compares all wallets of the shard. In doubt, first drops those that have nothing under way. @returns the accounts that do not
   * agree
   */
  async #comparePages(its: Shard, isGentle: boolean): Promise<Found[]> {
    const { shard, view, scene } = its;
    const { redis, keys } = this.#stores;
    const all = scene.accounts.get(shard) ?? [];
    const accounts = new Set(its.drops ? await this.#dropIdle(its, all) : all);
    const holds = Number(await redis.command('hlen', [keys.open[shard] as string]));
    const found: Found[] = [];
    for (const page of chunksOf(Array.from(accounts), holds > MANY_HOLDS ? LARGE_PAGE : PAGE)) {
      this.#checkStopping();
      const beganAt = performance.now();
      const reading = await view.read(page, async (read) => read);
      for (const state of reading.states) found.push(...(await this.#compareAccount(its, state, reading)));
      if (isGentle) await this.#pauseAfter(performance.now() - beganAt);
    }
    return found;
  }

  /**
   * Until this ends, accounts can spend the surplus in their wallets, so it does not pause. @returns the accounts whose wallets
   * stay
   */
  async #dropIdle({ shard, view, scene }: Shard, accounts: readonly string[]): Promise<readonly string[]> {
    const left: string[] = [];
    for (const page of chunksOf(accounts, DROP_PAGE)) {
      this.#checkStopping();
      const dropped = await dropIdle(this.#stores, { view, shard, accountIds: page });
      this.#dropped += dropped.size;
      for (const [accountId, begun] of scene.begunRepairs) {
        const repairId = dropped.get(accountId);
        if (repairId !== undefined) await this.#repairer.resolve(begun, { repairId, damagedFields: [] });
      }
      left.push(...page.filter((id) => !dropped.has(id)));
    }
    return left;
  }

  async #compareAccount(its: Shard, state: AccountState, { historyOf, rejected }: Reading): Promise<Found[]> {
    const { shard, view, scene } = its;
    const { accountId, wallet, settled } = state;
    const history = historyOf(accountId);
    if (staysInDoubt(history, { isAheadOfPostgres: isAhead(state) })) its.left.add(accountId);
    const comparison = compare(state);
    const begun = scene.begunRepairs.get(accountId) ?? [];
    its.sums.add(comparison);
    const isAgreed = agrees(comparison);
    if (isAgreed && comparison.lostDebitsMicros === 0) await this.#repairer.resolve(begun, wallet);
    if (settled.lostCreditsMicros > 0) await this.#repairer.restoreCredits(state, scene.by);
    if (comparison.lostDebitsMicros !== 0) {
      await this.#repairer.restoreDebits({ view, shard, accountId, madeBy: scene.by, begun });
    }
    return isAgreed ? [] : [{ comparison, decision: decide(comparison, state, history, rejected.has(accountId)) }];
  }

  /** @returns the drift that is left; null when the account agrees */
  async #repair(its: Shard, { comparison, decision }: Found): Promise<Drift | null> {
    this.#checkStopping();
    const { shard, view, scene } = its;
    const { accountId } = comparison;
    const since = scene.before.get(shard)?.driftingSince[accountId] ?? scene.nowMs;
    if (decision.part === null) {
      its.hasObstacle ||= decision.isObstacle;
      return newDrift(comparison, since, decision.notRepaired);
    }
    if (scene.repairsLeft <= 0) {
      scene.undecided++;
      return newDrift(comparison, since, 'not tried yet: this run has tried its maximum number of repairs');
    }
    scene.repairsLeft--;
    const begun = scene.begunRepairs.get(accountId) ?? [];
    const left = await this.#repairer.repair({ view, shard, accountId, madeBy: scene.by, begun });
    if (left === null) return null;
    its.hasObstacle ||= left.isObstacle;
    if (!left.isDecided) scene.undecided++;
    return newDrift(left.comparison, since, left.notRepaired);
  }

  /** Pauses for as long as `GENTLE_SHARE` requires, but at most `LONGEST_PAUSE_MS`. `stop` ends the pause early. */
  #pauseAfter(workedMs: number): Promise<void> {
    const pauseMs = Math.min(workedMs * (1 / GENTLE_SHARE - 1), LONGEST_PAUSE_MS);
    return this.#sleeper.sleep(pauseMs);
  }

  #checkStopping(): void {
    if (this.#stopping) throw new Error('the reconciliation was told to stop');
  }
}
