import { isUuid } from '../../platform/ids.ts';
import { readRedisRun, readRedisTime } from '../redis-run.ts';
import { agrees, type Comparison, compare } from './identity.ts';
import { saveReport, selectReports } from './reconcile-sql.ts';
import { Repairer } from './repairer.ts';
import { type Drift, newDrift, newReport, ReportSums, type ShardReport } from './report.ts';
import { type ReconcileStores, ShardView, StreamTooLong } from './shard-view.ts';

/** Accounts read under one lock: some milliseconds. */
const PAGE = 500;
const SCAN_COUNT = 1_000;
/** Repairs in one run, at a few milliseconds each; the rest has its turn in the next. */
const MAX_REPAIRS = 2_000;

export type RunResult = { readonly reports: readonly ShardReport[]; readonly endedAtMs: number };

/** Where this Redis process began, and what there is in it. */
type Scene = {
  readonly redisRunId: string;
  readonly redisStartedAtMs: number;
  readonly accounts: ReadonlyMap<number, string[]>;
  readonly driftingSince: ReadonlyMap<string, number>;
  repairsLeft: number;
};

/**
 * Compares the wallets in Redis with Postgres, shard by shard and page by page, repairs what provably came of a Redis that
 * is older than Postgres, and keeps the reports. One run at a time in this process; runs of several do each other no harm.
 */
export class Reconciler {
  readonly #stores: ReconcileStores;
  readonly #repairer: Repairer;
  #running: Promise<RunResult> | null = null;
  #last: RunResult | null = null;
  #stopping = false;

  constructor(stores: ReconcileStores) {
    this.#stores = stores;
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

  /** @param by who is written beside its repairs. @throws when a store is away or Redis restarts: then nothing is known of what is left */
  run(by: string): Promise<RunResult> {
    this.#running ??= this.#runOnce(by).finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /** Ends the run under way before its next step; it rejects. */
  stop(): void {
    this.#stopping = true;
  }

  async #runOnce(by: string): Promise<RunResult> {
    const { keys, sql } = this.#stores;
    const before = await selectReports(sql);
    const scene: Scene = {
      ...(await readStart(this.#stores)),
      accounts: await this.#scanWallets(),
      driftingSince: new Map(before.flatMap((report) => Object.entries(report.driftingSince))),
      repairsLeft: MAX_REPAIRS,
    };
    const reports: ShardReport[] = [];
    for (let shard = 0; shard < keys.shards; shard++) {
      const report = await this.#compareShard(shard, scene, by);
      await saveReport(sql, report);
      reports.push(report);
    }
    this.#last = { reports, endedAtMs: Date.now() };
    return this.#last;
  }

  async #compareShard(shard: number, scene: Scene, by: string): Promise<ShardReport> {
    const view = new ShardView(this.#stores, shard, scene.redisRunId);
    const sums = new ReportSums();
    const disagreeing: Comparison[] = [];
    const accounts = scene.accounts.get(shard) ?? [];
    const now = Date.now();
    try {
      await view.readAhead();
      for (let from = 0; from < accounts.length; from += PAGE) {
        this.#checkStopping();
        const { states } = await view.read(accounts.slice(from, from + PAGE), async (reading) => reading);
        for (const state of states) {
          const comparison = compare(state);
          sums.add(comparison);
          if (!agrees(comparison)) disagreeing.push(comparison);
          if (state.settled.lostCreditsMicros > 0) await this.#repairer.restoreCredits(state, by);
        }
      }
      const drifts: Drift[] = [];
      for (const comparison of disagreeing) {
        const drift = await this.#repair(view, shard, comparison, scene, by, now);
        if (drift !== null) drifts.push(drift);
      }
      return newReport(shard, now, sums, drifts);
    } catch (error) {
      if (error instanceof StreamTooLong) return newReport(shard, now, new ReportSums(), [], false);
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
    now: number,
  ): Promise<Drift | null> {
    this.#checkStopping();
    const { accountId } = found;
    const { redisStartedAtMs } = scene;
    const driftingSinceMs = scene.driftingSince.get(accountId) ?? null;
    const since = driftingSinceMs ?? now;
    if (scene.repairsLeft <= 0) return newDrift(found, since, 'not tried yet: too many repairs in one run');
    scene.repairsLeft--;
    const left = await this.#repairer.repair({ view, shard, accountId, madeBy, redisStartedAtMs, driftingSinceMs });
    return left === null ? null : newDrift(left.comparison, since, left.unproven);
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

  #checkStopping(): void {
    if (this.#stopping) throw new Error('the reconciliation was told to stop');
  }
}

/** Which Redis process this is, and when it began, by its own clock: exact to a second. */
async function readStart({ redis }: ReconcileStores) {
  const { runId, uptimeSeconds } = await readRedisRun(redis);
  return { redisRunId: runId, redisStartedAtMs: (await readRedisTime(redis)) - uptimeSeconds * 1000 };
}
