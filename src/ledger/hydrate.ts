import { PostgresSession, type Sql } from '../platform/postgres.ts';
import type { RedisClient } from '../platform/redis.ts';
import { freeField, type RedisKeys } from '../platform/redis-keys.ts';
import { Coalescer } from './coalescer.ts';
import { FLUSH_LOCK } from './locks.ts';
import { hydrateWalletScript } from './scripts.ts';

/** Wallets or keys loaded in one go. A Redis that lost everything is asked for all of them at once. */
const MAX_BATCH = 500;
/** Callers wait for this: what takes longer is answered 503. */
const TIMEOUT_MS = 2_000;
const SESSION_SETTINGS = {
  lock_timeout: 1_000,
  idle_in_transaction_session_timeout: TIMEOUT_MS,
};
/** Limit of a key that does not exist: it is revoked, and a limit of 0 is not a number of requests. */
const NO_LIMIT = 1;

export type HydratorOptions = {
  /** For a connection of its own: transactions that wait for Redis in the middle. */
  readonly databaseUrl: string;
  readonly sql: Sql;
  readonly redis: RedisClient;
  readonly keys: RedisKeys;
  readonly log: { info(fields: object, message: string): void };
};

type WalletRow = { id: string; creditSeq: number; balance: number; free: Record<string, number> | null };
type KeyRow = { keyId: string; limit: number; status: 'active' | 'revoked' };

/**
 * Loads keys and wallets from Postgres into Redis, where they are absent. What is asked for while a load is under way
 * goes into the next one together.
 *
 * A wallet is absent only when its shard's Redis lost everything, or when it was never there: nothing removes single
 * wallets, so no open hold and no event in the stream belongs to one that is absent, and the settled balance in Postgres
 * is all there is to know.
 */
export class Hydrator {
  readonly #options: HydratorOptions;
  readonly #wallets = new Coalescer<string>(MAX_BATCH, (batch) => this.#loadWallets(Array.from(batch.keys())));
  readonly #states = new Coalescer<string>(MAX_BATCH, (batch) => this.#loadKeys(batch));
  #session: PostgresSession | null = null;
  #loaded = 0;

  constructor(options: HydratorOptions) {
    this.#options = options;
  }

  /** Loads the limit and status of a key unless Redis has them. A key nobody knows, or of a suspended account, is revoked. */
  loadKey(keyId: string, accountId: string): Promise<void> {
    return this.#states.ask(keyId, accountId);
  }

  /** Loads a wallet unless Redis has it. Rejects within seconds when Postgres or Redis is away. */
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

  async #loadKeys(accountOfKey: ReadonlyMap<string, string>): Promise<void> {
    const { sql, redis, keys } = this.#options;
    const ids = Array.from(accountOfKey.keys());
    const query = sql<KeyRow[]>`
      SELECT k.key_id AS "keyId", k.rate_limit AS "limit",
             CASE WHEN a.status = 'active' THEN k.status ELSE 'revoked' END AS "status"
      FROM api_keys k JOIN accounts a ON a.id = k.account_id
      WHERE k.key_id = ANY(${ids}::text[])`;
    const rows = new Map((await withDeadline(query, () => {})).map((row) => [row.keyId, row]));
    const commands: Promise<unknown>[] = [];
    for (const [keyId, accountId] of accountOfKey) {
      const row = rows.get(keyId) ?? { limit: NO_LIMIT, status: 'revoked' };
      const name = keys.key(keys.shardOf(accountId), keyId);
      // Set if absent: a change that reached Redis since the SELECT is newer than what we read.
      commands.push(redis.command('hsetnx', [name, 'limit', String(row.limit)]));
      commands.push(redis.command('hsetnx', [name, 'status', row.status]));
    }
    await Promise.all(commands);
  }

  async #loadWallets(accountIds: readonly string[]): Promise<void> {
    const { keys } = this.#options;
    const session = this.#openSession();
    const shards = Array.from(new Set(accountIds.map((id) => keys.shardOf(id)))).sort((a, b) => a - b);
    const work = session.transaction(async () => {
      // Shared: no flush of these shards is between its reading and its commit now, nor begins until ours.
      await session.query(
        'SELECT count(pg_advisory_xact_lock_shared($1::int, shard)) FROM (SELECT unnest($2::int[]) AS shard) AS shards',
        [FLUSH_LOCK, `{${shards.join(',')}}`],
      );
      const rows = await session.query<WalletRow>(SELECT_WALLETS, [`{${accountIds.join(',')}}`]);
      // Before the commit, that is under the lock.
      await Promise.all(rows.map((row) => this.#fill(row)));
    });
    await withDeadline(work, () => session.close());
  }

  async #fill({ id, balance, creditSeq, free }: WalletRow): Promise<void> {
    const { redis, keys } = this.#options;
    const args = [keys.wallet(keys.shardOf(id), id), String(balance), String(creditSeq)];
    for (const [serviceId, used] of Object.entries(free ?? {})) args.push(freeField(serviceId), String(used));
    if ((await redis.script(hydrateWalletScript, 1, args)) === 1) this.#loaded++;
  }

  #openSession(): PostgresSession {
    if (this.#session?.open) return this.#session;
    this.#session = new PostgresSession(
      { url: this.#options.databaseUrl, applicationName: 'tollgate-hydrate', settings: SESSION_SETTINGS },
      TIMEOUT_MS,
    );
    return this.#session;
  }
}

/** One statement, so one snapshot: the balance is that of exactly these credits. An unknown account has nothing. */
const SELECT_WALLETS = `
SELECT asked.id, coalesce(a.credit_seq, 0) AS "creditSeq", coalesce(b.balance, 0) AS balance,
       (SELECT json_object_agg(f.service_id, f.used) FROM free_usage f WHERE f.account_id = asked.id) AS free
FROM unnest($1::uuid[]) AS asked (id)
LEFT JOIN accounts a ON a.id = asked.id
LEFT JOIN balances b ON b.account_id = asked.id AND b.ledger = 'wallet'`;

/** The result of `work`, or a rejection after `TIMEOUT_MS`, when `abort` is called as well. */
async function withDeadline<T>(work: PromiseLike<T>, abort: () => void): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      abort();
      reject(new Error(`no answer within ${TIMEOUT_MS} ms`));
    }, TIMEOUT_MS);
  });
  try {
    return await Promise.race([work, deadline]);
  } finally {
    clearTimeout(timer);
  }
}
