import { isPostgresUnavailable, PostgresSession, type Sql, sqlState } from '../../platform/postgres.ts';
import { isRedisUnavailable, type RedisClient } from '../../platform/redis.ts';
import { freeField, type RedisKeys } from '../../platform/redis-keys.ts';
import { within } from '../../platform/timing.ts';
import { FLUSH_LOCK } from '../locks.ts';
import { hydrateWalletScript, loadKeyScript } from '../scripts.ts';
import { Coalescer } from './coalescer.ts';

/** Wallets or keys loaded in one go. A Redis that lost everything is asked for all of them at once. */
const MAX_BATCH = 500;
/** Accounts or keys that may wait for a load: what 2 s can bring, with room to spare. Beyond it callers get their 503 at once. */
const MAX_WAITING = 10_000;
/** Callers wait for this: what takes longer is answered 503. */
const TIMEOUT_MS = 2_000;
/** Of which for shards that are being flushed or compared. */
const LOCK_WAIT_MS = 1_000;
const SESSION_SETTINGS = {
  lock_timeout: LOCK_WAIT_MS,
  idle_in_transaction_session_timeout: TIMEOUT_MS,
  // A plan made while tables are small is kept for as long as the session lasts: it must not read all of them.
  enable_seqscan: 'off',
};
const LOCK_NOT_AVAILABLE = '55P03';
/** Limit of a key that does not exist: it is revoked, and a limit of 0 is not a number of requests. */
const NO_LIMIT = 1;

const BOUNDS = {
  maxBatch: MAX_BATCH,
  maxWaiting: MAX_WAITING,
  timeoutMs: TIMEOUT_MS,
  isAway: (error: unknown) => isPostgresUnavailable(error) || isRedisUnavailable(error),
};

export type HydratorOptions = {
  /** For a connection of its own: transactions that wait for Redis in the middle. */
  readonly databaseUrl: string;
  /** Whose database that must be; without it nothing is compared. */
  readonly installation?: string;
  readonly sql: Sql;
  readonly redis: RedisClient;
  readonly keys: RedisKeys;
  readonly log: { info(fields: object, message: string): void };
};

/** Tells of one key or wallet before its batch is over. */
type Finish = (key: string, error?: unknown) => void;
type WalletRow = { id: string; creditSeq: number; balance: number; free: Record<string, number> | null };
type KeyRow = { keyId: string; limit: number; status: 'active' | 'suspended' | 'revoked' };

/**
 * Loads keys and wallets from Postgres into Redis, where they are absent. What is asked for while a load is under way
 * goes into the next one together.
 *
 * A wallet is absent only when its shard's Redis lost everything, or when it was never there: nothing removes single
 * wallets, so no open hold and no event in the stream belongs to one that is absent, and the settled balance in Postgres
 * is all there is to know. (An operator who deletes a damaged one has to wait for these: README, Limits.)
 */
export class Hydrator {
  readonly #options: HydratorOptions;
  readonly #wallets = new Coalescer<string>({
    ...BOUNDS,
    load: (batch, finish) => this.#loadWallets(Array.from(batch.keys()), finish),
  });
  readonly #states = new Coalescer<string>({ ...BOUNDS, load: (batch, finish) => this.#loadKeys(batch, finish) });
  #session: PostgresSession | null = null;
  #loaded = 0;

  constructor(options: HydratorOptions) {
    this.#options = options;
  }

  /** Loads the limit and status of a key unless Redis has them. A key nobody knows is revoked. */
  loadKey(keyId: string, accountId: string): Promise<void> {
    return this.#states.ask(keyId, accountId);
  }

  /** Loads a wallet unless Redis has it. Rejects within 2 s, as `isPostgresUnavailable` when many wait or a store is away. */
  loadWallet(accountId: string): Promise<void> {
    return this.#wallets.ask(accountId, accountId);
  }

  /** Wallets loaded since the start. */
  get loadedWallets(): number {
    return this.#loaded;
  }

  /** Ends its connection; it opens another should it be asked again. */
  close(): void {
    this.#session?.close();
  }

  async #loadKeys(accountOfKey: ReadonlyMap<string, string>, finish: Finish): Promise<void> {
    const { sql } = this.#options;
    const ids = Array.from(accountOfKey.keys());
    const query = sql<KeyRow[]>`
      SELECT k.key_id AS "keyId", k.rate_limit AS "limit",
             CASE WHEN k.status = 'active' THEN a.status ELSE k.status END AS "status"
      FROM api_keys k JOIN accounts a ON a.id = k.account_id
      WHERE k.key_id = ANY(${ids}::text[])`;
    const rows = new Map((await withDeadline(query, () => {})).map((row) => [row.keyId, row]));
    await eachAlone(accountOfKey, finish, async ([keyId, accountId]) => {
      await this.#putKey(rows.get(keyId) ?? { keyId, limit: NO_LIMIT, status: 'revoked' }, accountId);
    });
  }

  async #putKey({ keyId, limit, status }: KeyRow, accountId: string): Promise<void> {
    const { redis, keys } = this.#options;
    const name = keys.key(keys.shardOf(accountId), keyId);
    // Set if absent: a change that reached Redis since the SELECT is newer than what we read.
    await redis.script(loadKeyScript, 1, [name, String(limit), status]);
  }

  /** First the shards that nobody has locked, then the others: one that stays locked keeps only its own accounts waiting. */
  async #loadWallets(accountIds: readonly string[], finish: Finish): Promise<void> {
    const byShard = new Map<number, string[]>();
    for (const id of accountIds) {
      const shard = this.#options.keys.shardOf(id);
      byShard.set(shard, [...(byShard.get(shard) ?? []), id]);
    }
    const session = this.#openSession();
    const work = async (): Promise<void> => {
      const startedAt = performance.now();
      let waitFor: number | null = null;
      while (byShard.size > 0) {
        try {
          const loaded = await this.#loadUnlocked(session, byShard, waitFor, finish);
          for (const shard of loaded) {
            for (const id of byShard.get(shard) ?? []) finish(id);
            byShard.delete(shard);
          }
        } catch (error) {
          if (sqlState(error) !== LOCK_NOT_AVAILABLE) throw error;
          const late = performance.now() - startedAt >= LOCK_WAIT_MS;
          for (const shard of late ? Array.from(byShard.keys()) : [waitFor as number]) {
            for (const id of byShard.get(shard) ?? []) finish(id, error);
            byShard.delete(shard);
          }
        }
        waitFor = byShard.keys().next().value ?? null;
      }
    };
    await withDeadline(work(), () => session.close());
  }

  /**
   * Loads the accounts of those shards that nobody has locked for a flush now.
   *
   * @param waitFor a shard whose lock is waited for; null waits for none
   * @returns the shards that were loaded
   */
  #loadUnlocked(
    session: PostgresSession,
    byShard: ReadonlyMap<number, readonly string[]>,
    waitFor: number | null,
    finish: Finish,
  ): Promise<number[]> {
    return session.transaction(async () => {
      // Shared: no flush of these shards is between its reading and its commit now, nor begins until ours.
      if (waitFor !== null) {
        await session.query('SELECT pg_advisory_xact_lock_shared($1::int, $2::int)', [FLUSH_LOCK, waitFor]);
      }
      const locks = await session.query<{ shard: number; locked: boolean }>(
        `SELECT shard, pg_try_advisory_xact_lock_shared($1::int, shard) AS locked
         FROM (SELECT unnest($2::int[]) AS shard) AS shards`,
        [FLUSH_LOCK, `{${Array.from(byShard.keys()).join(',')}}`],
      );
      const shards = locks.filter(({ locked }) => locked).map(({ shard }) => shard);
      const ids = shards.flatMap((shard) => byShard.get(shard) ?? []);
      const rows = await session.query<WalletRow>(SELECT_WALLETS, [`{${ids.join(',')}}`]);
      // Before the commit, that is under the lock.
      await eachAlone(
        rows.map((row) => [row.id, row] as const),
        finish,
        ([, row]) => this.#fill(row),
      );
      return shards;
    });
  }

  async #fill({ id, balance, creditSeq, free }: WalletRow): Promise<void> {
    const { redis, keys } = this.#options;
    const args = [keys.wallet(keys.shardOf(id), id), String(balance), String(creditSeq)];
    for (const [serviceId, used] of Object.entries(free ?? {})) args.push(freeField(serviceId), String(used));
    if ((await redis.script(hydrateWalletScript, 1, args)) === 1) this.#loaded++;
  }

  #openSession(): PostgresSession {
    if (this.#session?.open) return this.#session;
    const { databaseUrl, installation } = this.#options;
    const options = { url: databaseUrl, applicationName: 'tollgate-hydrate', settings: SESSION_SETTINGS };
    this.#session = new PostgresSession({ ...options, ...(installation && { installation }) }, TIMEOUT_MS);
    return this.#session;
  }
}

/**
 * One statement, so one snapshot: the balance is that of exactly these credits. An unknown account has nothing. Look-ups
 * instead of joins: without statistics of `balances` the planner would read all of it for each batch.
 */
const SELECT_WALLETS = `
SELECT asked.id,
       coalesce((SELECT a.credit_seq FROM accounts a WHERE a.id = asked.id), 0) AS "creditSeq",
       coalesce((SELECT b.balance FROM balances b WHERE b.account_id = asked.id AND b.ledger = 'wallet'), 0) AS balance,
       (SELECT json_object_agg(f.service_id, f.used) FROM free_usage f WHERE f.account_id = asked.id) AS free
FROM unnest($1::uuid[]) AS asked (id)`;

/** Does `work` for each; a failure is that item's alone, unless Redis is away. */
async function eachAlone<Item extends readonly [key: string, ...rest: unknown[]]>(
  items: Iterable<Item>,
  finish: Finish,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const away: unknown[] = [];
  await Promise.all(
    Array.from(items, (item) =>
      work(item).catch((error: unknown) => {
        if (isRedisUnavailable(error)) away.push(error);
        else finish(item[0], error);
      }),
    ),
  );
  if (away.length > 0) throw away[0];
}

/** The result of `work`, or a rejection after `TIMEOUT_MS`, when `abort` is called as well. */
function withDeadline<T>(work: PromiseLike<T>, abort: () => void): Promise<T> {
  return within(work, TIMEOUT_MS, () => {
    abort();
    // As `isPostgresUnavailable` knows it.
    return Object.assign(new Error(`no answer within ${TIMEOUT_MS} ms`), { code: 'ETIMEDOUT' });
  });
}
