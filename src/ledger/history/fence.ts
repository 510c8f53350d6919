import { type ApiError, olderPostgresError, unavailableError } from '../../errors.ts';
import {
  isOlderPostgres,
  isUncomparedPostgres,
  type Sql,
  type Tx,
  uncomparedPostgres,
} from '../../platform/postgres.ts';
import { byStore, type RedisStore } from '../../platform/redis.ts';
import type { RedisKeys } from '../../platform/redis-keys.ts';
import { judgeShards, refuseOlder } from './histories-sql.ts';
import type { Seen } from './judge.ts';
import { seeShards } from './marks.ts';

/**
 * Postgres rolls a transaction back when its process sends nothing for this long, perhaps because it is suspended, since flushes
 * wait for the balances that it has locked. Shorter than their `lock_timeout` of 5 s, so that a flush that meets such a transaction
 * waits and does not fail. Between two statements, only this process's event loop can cause a delay; a correction, which asks Redis
 * as well, sets its own limit with its flush lock (reconcile/shard-view.ts).
 */
const IDLE_MS = 3_000;

declare const isCompared: unique symbol;
/** A transaction in a Postgres that is not older than Redis. Code that moves money requires one, and only a `Fence` makes it. */
export type MoneyTx = Tx & { readonly [isCompared]: true };

/** Opens transactions that move money of these accounts. */
export type MoneyTransactions = {
  begin<T>(accountIds: readonly string[], work: (tx: MoneyTx) => Promise<T>): Promise<T>;
};

/**
 * Lets no money move while Postgres is older than Redis: the right Postgres would lack the movement when it is back.
 *
 * Redis's marks are read first, then the transaction looks them up in its journal. So a flush that was trimmed by then is one that
 * this server has stored, whichever server the session leads to. One older shard is enough, because a Postgres goes back as a
 * whole. A shard of a cluster that does not answer says nothing, and blocks only its own accounts.
 *
 * Tested by test/ledger/history/fence.test.ts.
 */
export class Fence implements MoneyTransactions {
  readonly #sql: Sql;
  readonly #redis: RedisStore;
  readonly #keys: RedisKeys;

  constructor({ sql, redis, keys }: { readonly sql: Sql; readonly redis: RedisStore; readonly keys: RedisKeys }) {
    this.#sql = sql;
    this.#redis = redis;
    this.#keys = keys;
  }

  /**
   * @throws an error that `isPostgresUnavailable` recognises, when Postgres is older, or when the Redis of one of these accounts does
   *   not answer: then nobody knows whether it is
   */
  async begin<T>(accountIds: readonly string[], work: (tx: MoneyTx) => Promise<T>): Promise<T> {
    const seen = await this.#see(new Set(accountIds.map((id) => this.#keys.shardOf(id))));
    return this.#sql.begin(async (tx) => {
      await tx.unsafe(`SET LOCAL idle_in_transaction_session_timeout = ${IDLE_MS}`);
      refuseOlder(await judgeShards(tx.unsafe, seen));
      return work(tx as MoneyTx);
    });
  }

  /** For actions that only Redis carries out, based on what Postgres says. @throws as `begin` does */
  async check(): Promise<void> {
    await this.begin([], async () => {});
  }

  async #see(needed: ReadonlySet<number>): Promise<ReadonlyMap<number, Seen>> {
    const { seen, away } = await seeAll(this.#redis, this.#keys);
    for (const [shard, reason] of away) if (needed.has(shard)) throw uncomparedPostgres(reason);
    return seen;
  }
}

/** What callers are told when the fence has refused; it refuses before anything has begun. Null: the error was another one. */
export function refusalByFence(error: unknown): ApiError | null {
  if (isOlderPostgres(error)) return olderPostgresError(error);
  return isUncomparedPostgres(error) ? unavailableError(error, 'Nothing was moved: Redis does not answer.') : null;
}

/** Looks at all shards. @returns the replies, and the errors of those that did not answer */
export async function seeAll(
  redis: RedisStore,
  keys: RedisKeys,
): Promise<{ readonly seen: ReadonlyMap<number, Seen>; readonly away: ReadonlyMap<number, unknown> }> {
  const [seen, away] = [new Map<number, Seen>(), new Map<number, unknown>()];
  const look = async ([store, shards]: readonly [RedisStore, readonly number[]]): Promise<void> => {
    try {
      for (const [shard, its] of (await seeShards(store, keys, shards)).seen) seen.set(shard, its);
    } catch (reason) {
      for (const shard of shards) away.set(shard, reason);
    }
  };
  await Promise.all(Array.from(byStore(redis, Array.from(keys.mark.keys())), look));
  return { seen, away };
}
