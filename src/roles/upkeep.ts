import type { Damage } from '../ledger/damage-log.ts';
import { ReconcileJob } from '../ledger/reconcile/reconcile-job.ts';
import { saveReport, selectReports } from '../ledger/reconcile/reconcile-sql.ts';
import { Reconciler, type RunResult } from '../ledger/reconcile/reconciler.ts';
import { notCompared } from '../ledger/reconcile/report.ts';
import { Sweeper } from '../ledger/sweep/sweeper.ts';
import type { Log } from '../observability/log.ts';
import { limit } from '../platform/limit.ts';
import { isPostgresUnavailable, type Sql } from '../platform/postgres.ts';
import { byStore, isRedisUnavailable, type RedisStore } from '../platform/redis.ts';
import type { Stores } from './stores.ts';

/**
 * Maximum at the same time: each needs up to two connections to Postgres. With all shards at once, pages and the reconcilers
 * themselves would wait for connections.
 */
const RECONCILERS_AT_ONCE = 3;

type UpkeepStores = Pick<Stores, 'sql' | 'redis' | 'keys'>;

/** A Redis that fails independently, and the shards that are compared and swept in it. */
type Part = { readonly redis: RedisStore; readonly shards: readonly number[] };

/**
 * A single Redis is one part. In a cluster each shard is one, because nodes fail independently, and slots move from node to node:
 * then only the shards concerned wait for a comparison before their holds are swept.
 */
export function partsOf({ redis, keys }: Pick<Stores, 'redis' | 'keys'>): Part[] {
  return Array.from(byStore(redis, Array.from(keys.open.keys())), ([store, shards]) => ({ redis: store, shards }));
}

/** The messages of clients name their own options, which tells an operator nothing. */
function inWords(error: unknown): unknown {
  if (isRedisUnavailable(error)) return 'Redis was away or too slow';
  return isPostgresUnavailable(error) ? 'Postgres was away or too slow' : error;
}

/** The reconcilers of all parts, as one. */
export class Reconcilers {
  readonly parts: readonly (Part & { readonly reconciler: Reconciler })[];
  readonly #sql: Sql;

  constructor(stores: UpkeepStores) {
    this.#sql = stores.sql;
    const inTurn = limit(RECONCILERS_AT_ONCE);
    this.parts = partsOf(stores).map((part) => ({
      ...part,
      reconciler: new Reconciler({ ...stores, redis: part.redis }, { shards: part.shards, inTurn }),
    }));
  }

  /** Compares all parts. Rejects if none could be compared; the reports of a part that could not be say why. */
  async run(by: string): Promise<void> {
    const results = await Promise.allSettled(this.parts.map(({ reconciler }) => reconciler.run(by)));
    const failed = results.flatMap((result, i) =>
      result.status === 'rejected' ? [{ why: result.reason as unknown, shards: this.parts[i]?.shards ?? [] }] : [],
    );
    const isNone = failed.length === results.length;
    if (failed.length > 0) {
      const told = this.#tellWhy(failed);
      // A Postgres that cannot store it is away, and so is the first reason.
      await (isNone ? Promise.allSettled([told]) : told);
    }
    if (isNone) throw failed[0]?.why;
  }

  async #tellWhy(failed: readonly { readonly why: unknown; readonly shards: readonly number[] }[]): Promise<void> {
    const before = new Map((await selectReports(this.#sql)).map((report) => [report.shard, report]));
    const checkedAtMs = Date.now();
    for (const { why, shards } of failed) {
      for (const shard of shards)
        await saveReport(this.#sql, notCompared({ shard, checkedAtMs, why: inWords(why) }, before.get(shard)));
    }
  }

  /** The last finished runs, combined; null before the first. The combined run ended when the oldest of them did. */
  get last(): Pick<RunResult, 'reports' | 'endedAtMs'> | null {
    const runs = this.parts.flatMap(({ reconciler: { last } }) => last ?? []);
    if (runs.length === 0) return null;
    return {
      reports: runs.flatMap(({ reports }) => reports),
      endedAtMs: Math.min(...runs.map((run) => run.endedAtMs)),
    };
  }

  /** Shards for which Postgres was older at the last comparison. */
  get olderShards(): readonly number[] {
    return this.parts.flatMap(({ reconciler }) => reconciler.olderShards);
  }

  /** Number of wallets repaired since the start. */
  get repaired(): number {
    return this.parts.reduce((sum, { reconciler }) => sum + reconciler.repaired, 0);
  }
}

/** With several parts, the log lines of each say which shards they concern. */
function logOf(log: Log, parts: number, shards: readonly number[]): Pick<Log, 'info' | 'warn'> {
  if (parts === 1) return log;
  return {
    info: (fields, message) => log.info({ shards, ...fields }, message),
    warn: (fields, message) => log.warn({ shards, ...fields }, message),
  };
}

/** The background work that keeps Redis right: the sweep of dead gateways' holds, and the regular comparison with Postgres. */
export class Upkeep {
  readonly reconcilers: Reconcilers;
  readonly sweepers: readonly Sweeper[];
  readonly reconcileJobs: readonly ReconcileJob[];

  constructor(options: {
    readonly stores: UpkeepStores;
    readonly leaseSeconds: number;
    readonly isActive: () => boolean;
    readonly log: Log;
  }) {
    const { stores, leaseSeconds, isActive, log } = options;
    this.reconcilers = new Reconcilers(stores);
    const { parts } = this.reconcilers;
    this.sweepers = parts.map(
      ({ redis, shards, reconciler }) =>
        new Sweeper({
          redis,
          keys: stores.keys,
          shards,
          leaseSeconds,
          log: logOf(log, parts.length, shards),
          isReconciled: (shard, dataId) => reconciler.hasCompared(shard, dataId),
        }),
    );
    const failing = new Set<ReconcileJob>();
    this.reconcileJobs = parts.map(
      ({ redis, shards, reconciler }) =>
        new ReconcileJob({
          reconciler,
          isActive,
          log: logOf(log, parts.length, shards),
          failing,
          onRedisReady: (listener) => redis.onReady(listener),
        }),
    );
  }

  /** Number of holds swept since the start. */
  get swept(): number {
    return this.sweepers.reduce((sum, { swept }) => sum + swept, 0);
  }

  /** Number of holds that the last rounds left alone. */
  get leftAlone(): number {
    return this.sweepers.reduce((sum, { leftAlone }) => sum + leftAlone, 0);
  }

  get damage(): ReadonlyMap<Damage, number> {
    const counts = new Map<Damage, number>();
    for (const { damage } of this.sweepers) {
      for (const [what, count] of damage) counts.set(what, (counts.get(what) ?? 0) + count);
    }
    return counts;
  }
}
