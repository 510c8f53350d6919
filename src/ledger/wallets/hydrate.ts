import { Coalescer, type End } from '../../platform/coalescer.ts';
import { isPostgresUnavailable, PostgresSession, type Sql, sqlState, standby } from '../../platform/postgres.ts';
import { byStore, isRedisUnavailable, type RedisStore } from '../../platform/redis.ts';
import type { RedisKeys } from '../../platform/redis-keys.ts';
import { within } from '../../platform/timing.ts';
import { type Judged, judgeShards, refuseOlder } from '../history/histories-sql.ts';
import type { Seen } from '../history/judge.ts';
import { markText, type Sight, seeShards } from '../history/marks.ts';
import { hasLayoutSql, layoutOf, WrongLayout } from '../layout.ts';
import { FLUSH_LOCK } from '../locks.ts';
import { loadKeyScript } from '../scripts.ts';
import { LAST_ENDED_DEBIT_SQL } from './debits-sql.ts';
import { fillWallet, type Permit, type WalletContent } from './fill-wallet.ts';
import { fieldsOf, type KeyTerms } from './key-terms.ts';
import { latestBudgetsSql } from './latest-budgets-sql.ts';

/**
 * Maximum number of wallets, or of keys, in one batch; others wait for the next. The limit matters after Redis lost everything:
 * then the wallets and keys of all callers are requested at the same time.
 */
const MAX_BATCH = 500;
/** Maximum number of accounts, and of keys, that wait to be loaded. Callers of further ones get 503 at once. */
const MAX_WAITING = 10_000;
/** How long a caller waits for its wallet or key. After that the caller gets 503. */
const TIMEOUT_MS = 2_000;
/**
 * Minimum time between the beginnings of two batches, because a batch of wallets takes four round trips to Postgres. A first call
 * waits for the gap only if another one was made within it.
 */
const GAP_MS = 5;
/** Maximum wait for a shard that is being flushed. After it, callers of all shards that are then locked get 503. */
const LOCK_WAIT_MS = 1_000;
const SESSION_SETTINGS = {
  lock_timeout: LOCK_WAIT_MS,
  idle_in_transaction_session_timeout: TIMEOUT_MS,
  // The session keeps a query plan for its whole life. A plan made for small tables would go on to scan them when they are large.
  enable_seqscan: 'off',
};
const LOCK_NOT_AVAILABLE = '55P03';
/**
 * Redis accepts the wallets of a batch for this long after the batch began, by Redis's own clock. The flush locks, under which the
 * wallets were read, last for at least `TIMEOUT_MS`: after that this process closes the session, or Postgres does if this process
 * is suspended. The half second between them allows for clocks that run at different speeds.
 */
const FILL_MS = TIMEOUT_MS - 500;
/**
 * Rate limit of a key that Postgres does not know, which is loaded as revoked. It is not 0, because batch.lua treats 0 as damaged.
 */
const NO_LIMIT = 1;

const BOUNDS = {
  maxBatch: MAX_BATCH,
  maxWaiting: MAX_WAITING,
  timeoutMs: TIMEOUT_MS,
  isAwayForAll: true,
  isAway: (error: unknown) => isPostgresUnavailable(error) || isRedisUnavailable(error),
};

type HydratorOptions = {
  /** For the hydrator's own connection, because its transactions stay open while they wait for Redis. */
  readonly databaseUrl: string;
  /** Id of the installation that the database must belong to; if absent, this is not checked. */
  readonly installation?: string;
  readonly sql: Sql;
  readonly redis: RedisStore;
  readonly keys: RedisKeys;
  /** MAX_RATE_LIMIT, of a process that loads keys. */
  readonly maxRateLimit?: number;
  readonly log: { info(fields: object, message: string): void };
};

/** What the transactions of one batch of wallets share. */
type Batch = {
  readonly session: PostgresSession;
  readonly beganAt: { readonly monotonic: number; readonly wall: number };
  readonly finish: Finish<boolean>;
};
/** What the Redis of some shards said. `untilMs`: until when their wallets may be filled (by its clock). */
type Look = Sight & { readonly untilMs: number };
/** By shard. A shard's promise rejects if its Redis is away; this must not delay the wallets of other nodes. */
type Looks = ReadonlyMap<number, Promise<Look>>;
/** Ends the wait for one key or wallet before its batch ends. */
type Finish<Result> = (key: string, end: End<Result>) => void;
const LOADED = { result: true };
type WalletRow = WalletContent & { id: string; hasLayout: boolean };
/** A requested key, or one above it. */
type KeyRow = KeyTerms & { askedId: string; keyId: string };

/**
 * Copies from Postgres to Redis the keys and wallets that Redis does not have. Requests that arrive while a batch is loading are
 * loaded together in the next batches (`MAX_BATCH`).
 *
 *   loadWallet ──► #wallets: shards that nobody flushes ──────────────► loaded
 *                      └─ the shard is locked, or Redis refused the wallet ──► #locked: waits ──► loaded
 *
 * Wallets that have to wait for a flush have their own batches and connection, so they delay nobody else.
 *
 * For a wallet that Redis lacks, the settled balance in Postgres is the whole truth, because Redis then has no open hold and no
 * event of that account. Either the wallet was never loaded, or the comparison dropped it because there were none, or Redis lost
 * the load together with everything written after it. (An operator who deletes a damaged wallet must wait until the account's holds
 * and events are gone: docs/operating.md.)
 */
export class Hydrator {
  readonly #options: HydratorOptions;
  /**
   * Resolves with whether the wallet is loaded. It is not if its shard is locked, if it comes after `FILL_MS`, or if Redis has
   * another mark.
   */
  readonly #wallets = new Coalescer<string, boolean>({
    ...BOUNDS,
    gapMs: GAP_MS,
    load: (batch, finish) => this.#loadWallets(Array.from(batch.keys()), finish),
  });
  readonly #locked = new Coalescer<string, boolean>({
    ...BOUNDS,
    load: (batch, finish) => this.#loadLocked(Array.from(batch.keys()), finish),
  });
  readonly #states = new Coalescer<string, boolean>({
    ...BOUNDS,
    gapMs: GAP_MS,
    load: (batch, finish) => this.#loadKeys(batch, finish),
  });
  readonly #sessions: Record<'wallets' | 'locked', PostgresSession | null> = { wallets: null, locked: null };
  /** Shards that stayed locked for as long as `#loadLocked` waited. */
  readonly #stuck = new Set<number>();
  #loaded = 0;

  constructor(options: HydratorOptions) {
    this.#options = options;
  }

  /** Loads the state of a key, and of those above it, unless Redis has it. A key that Postgres does not know is loaded as revoked. */
  async loadKey(keyId: string, accountId: string): Promise<void> {
    await this.#states.ask(keyId, accountId);
  }

  /** Loads a wallet unless Redis has it. Rejects within `TIMEOUT_MS` if too many wait, its shard stays locked or a store is away. */
  async loadWallet(accountId: string): Promise<void> {
    const deadline = performance.now() + TIMEOUT_MS;
    if (await this.#wallets.ask(accountId, accountId)) return;
    const leftMs = Math.max(0, deadline - performance.now());
    if (!(await this.#locked.ask(accountId, accountId, leftMs)))
      throw timedOut('redis refused the wallet: it came too late, or postgres was read at the time of another flush');
  }

  /** Number of wallets that this process has loaded since it started. */
  get loadedWallets(): number {
    return this.#loaded;
  }

  /** Closes the hydrator's connections. A later load opens new ones. */
  close(): void {
    for (const session of Object.values(this.#sessions)) session?.close();
  }

  async #loadKeys(accountOfKey: ReadonlyMap<string, string>, finish: Finish<boolean>): Promise<() => boolean> {
    const { sql } = this.#options;
    const ids = Array.from(accountOfKey.keys());
    const query = sql<KeyRow[]>`
      SELECT asked.key_id AS "askedId", k.key_id AS "keyId", k.rate_limit AS "limit",
             CASE WHEN k.status = 'active' AND a.status <> 'closed' THEN a.status ELSE 'revoked' END AS "status",
             k.ancestors, k.expires_at AS "expiresAt", k.budget_amount AS "budgetMicros", k.budget_period AS "budgetPeriod",
             k.budget_number AS "budgetNumber"
      FROM api_keys asked JOIN api_keys k ON k.key_id = ANY(asked.ancestors || asked.key_id)
      JOIN accounts a ON a.id = k.account_id
      WHERE asked.key_id = ANY(${ids}::text[])
      -- One more row if this is a standby, to which a pooler may have moved the connection.
      UNION ALL SELECT '', '', 0, 'revoked', '{}', NULL, NULL, NULL, 0 WHERE pg_is_in_recovery()`;
    const chains = new Map<string, KeyRow[]>();
    for (const row of await withDeadline(query, () => {})) {
      const chain = chains.get(row.askedId);
      if (chain === undefined) chains.set(row.askedId, [row]);
      else chain.push(row);
    }
    if (chains.has('')) throw standby();
    await eachAlone(accountOfKey, finish, async ([keyId, accountId]) => {
      await this.#putKeys(keyId, chains.get(keyId) ?? [], accountId);
    });
    return () => true;
  }

  /** @param chain the key and those above it; empty: Postgres does not know the key */
  async #putKeys(keyId: string, chain: readonly KeyRow[], accountId: string): Promise<void> {
    const { redis, keys, maxRateLimit = Number.MAX_SAFE_INTEGER } = this.#options;
    const rootId = chain.find((row) => row.keyId === keyId)?.ancestors[0] ?? keyId;
    const fields = chain.flatMap((row) => fieldsOf(row.keyId, row, maxRateLimit));
    const unknown = ['limit', String(NO_LIMIT), 'status', 'revoked'];
    const name = keys.key(keys.shardOf(accountId), rootId);
    // The script sets only absent fields: if Redis got a change after the SELECT, that change is newer than what was read here.
    await redis.script(loadKeyScript, 1, [name, ...(chain.length === 0 ? unknown : fields)]);
  }

  /** Loads the wallets of all shards that no writer has locked for a flush now. @returns which were loaded */
  async #loadWallets(accountIds: readonly string[], finish: Finish<boolean>): Promise<(id: string) => boolean> {
    const session = this.#openSession('wallets');
    const batch = { session, beganAt: readClocks(), finish };
    const loaded = await withDeadline(this.#loadUnlocked(batch, accountIds, null), () => session.close());
    return (id) => loaded.has(id);
  }

  /**
   * Loads wallets of shards that were locked. As soon as a shard is free, loads its wallets and those of all others that are free
   * by then. A shard that stayed locked the last time is waited for last, so that it does not use up the time of the others.
   */
  async #loadLocked(accountIds: readonly string[], finish: Finish<boolean>): Promise<() => boolean> {
    const shardOf = (id: string): number => this.#options.keys.shardOf(id);
    const waiting = new Set(accountIds);
    const session = this.#openSession('locked');
    const batch = { session, beganAt: readClocks(), finish };
    const load = async (waitFor: number | null): Promise<void> => {
      for (const id of await this.#loadUnlocked(batch, Array.from(waiting), waitFor)) {
        finish(id, LOADED);
        waiting.delete(id);
        this.#stuck.delete(shardOf(id));
      }
    };
    const work = async (): Promise<void> => {
      const rank = (shard: number): number => (this.#stuck.has(shard) ? 1 : 0);
      const shards = Array.from(new Set(accountIds.map(shardOf))).sort((a, b) => rank(a) - rank(b));
      try {
        for (const shard of shards) if (Array.from(waiting).some((id) => shardOf(id) === shard)) await load(shard);
      } catch (error) {
        if (sqlState(error) !== LOCK_NOT_AVAILABLE) throw error;
        // There is no time for another wait, but other shards may have become free during this one.
        await load(null);
        for (const id of waiting) {
          this.#stuck.add(shardOf(id));
          finish(id, { error });
        }
      }
    };
    await withDeadline(work(), () => session.close());
    // The wallets that still wait were refused by Redis.
    return () => false;
  }

  /**
   * Loads the wallets of all shards that no writer has locked for a flush now.
   *
   * @param waitFor a shard whose flush lock is waited for first; null: none
   * @returns the loaded wallets, and those that were rejected individually
   */
  #loadUnlocked(
    { session, beganAt, finish }: Batch,
    accountIds: readonly string[],
    waitFor: number | null,
  ): Promise<ReadonlySet<string>> {
    const { keys } = this.#options;
    return session.transaction(async () => {
      // A flush holds this lock exclusively from its check of the stream until its commit. So no flush gets there before this
      // transaction commits.
      if (waitFor !== null) {
        await session.query('SELECT pg_advisory_xact_lock_shared($1::int, $2::int)', [FLUSH_LOCK, waitFor]);
      }
      const shards = Array.from(new Set(accountIds.map((id) => keys.shardOf(id))));
      const locking = session.query<{ shard: number; locked: boolean }>(
        `SELECT shard, pg_try_advisory_xact_lock_shared($1::int, shard) AS locked
         FROM (SELECT unnest($2::int[]) AS shard) AS shards`,
        [FLUSH_LOCK, `{${shards.join(',')}}`],
      );
      const looks = this.#look(shards, beganAt);
      const [locks, seen] = await Promise.all([locking, seenBy(looks)]);
      const judging = judgeShards(session.query.bind(session), seen);
      // Read after the locks, with its own snapshot, so it sees what the last flush has committed.
      const locked = new Set(locks.filter(({ locked }) => locked).map(({ shard }) => shard));
      const ids = accountIds.filter((id) => locked.has(keys.shardOf(id)));
      const { shards: count, layout } = layoutOf(this.#options);
      const reading = session.query<WalletRow>(SELECT_WALLETS, [`{${ids.join(',')}}`, count, layout]);
      const [judged, rows] = await Promise.all([judging, reading]);
      // A wallet from an older Postgres would lack calls that were charged.
      refuseOlder(judged);
      // `reshard` takes the flush locks before it removes wallets, so the layout seen under a lock remains until the lock is
      // released.
      if (rows.some((row) => !row.hasLayout)) throw new WrongLayout();
      const loaded = new Set(ids);
      // Redis is filled before the commit, which releases the locks that keep flushes out.
      await eachAlone(
        rows.map((row) => [row.id, row] as const),
        finish,
        async ([id, row]) => {
          const shard = keys.shardOf(id);
          const { untilMs } = (await looks.get(shard)) as Look;
          const filled = await fillWallet(this.#options, id, row, permit(judged.get(shard) as Judged, untilMs));
          if (filled === 'filled') this.#loaded++;
          if (filled === 'refused') loaded.delete(id);
        },
      );
      return loaded;
    });
  }

  /**
   * Asks Redis for the marks before Postgres is read, and computes until when the batch's wallets may be filled (`FILL_MS`).
   * Redis's time counts as if it had been read when the batch began, however long the reply took.
   */
  #look(shards: readonly number[], beganAt: Batch['beganAt']): Looks {
    const { redis, keys } = this.#options;
    const look = async (store: RedisStore, its: readonly number[]): Promise<Look> => {
      const sight = await seeShards(store, keys, its);
      // The monotonic clock stands still while the host is suspended, and the wall clock may be set back.
      const now = readClocks();
      const tookMs = Math.max(now.monotonic - beganAt.monotonic, now.wall - beganAt.wall);
      return { ...sight, untilMs: Math.floor(sight.nowMs - tookMs) + FILL_MS };
    };
    const looks = new Map<number, Promise<Look>>();
    // A single Redis is asked for all marks: any of them shows that Postgres is older.
    const asked = redis.isCluster ? shards : Array.from(keys.mark.keys());
    for (const [store, its] of byStore(redis, asked)) {
      const looking = look(store, its);
      // The transaction may fail before it awaits this promise.
      looking.catch(() => {});
      for (const shard of its) looks.set(shard, looking);
    }
    return looks;
  }

  #openSession(of: 'wallets' | 'locked'): PostgresSession {
    const present = this.#sessions[of];
    if (present?.open) return present;
    const { databaseUrl, installation } = this.#options;
    const options = { url: databaseUrl, applicationName: 'tollgate-hydrate', settings: SESSION_SETTINGS };
    const session = new PostgresSession({ ...options, ...(installation && { installation }) }, TIMEOUT_MS);
    this.#sessions[of] = session;
    return session;
  }
}

/**
 * One statement, and so one snapshot: the balance includes exactly the credits up to `creditSeq` and the debits up to `debitSeq`.
 * An account that does not exist gets zeros. Sub-selects, because a join without statistics of `balances` would read the whole table
 * for each batch.
 */
const SELECT_WALLETS = `
SELECT asked.id,
       coalesce((SELECT a.credit_seq FROM accounts a WHERE a.id = asked.id), 0) AS "creditSeq",
       coalesce((SELECT b.balance FROM balances b WHERE b.account_id = asked.id AND b.ledger = 'wallet'), 0) AS balance,
       coalesce(debit.seq, 0) AS "debitSeq", coalesce(debit.total, 0) AS debited,
       (SELECT json_object_agg(f.service_id, f.used) FROM free_usage f WHERE f.account_id = asked.id) AS free,
       ${latestBudgetsSql('asked.id')} AS budgets,
       ${hasLayoutSql('$2', '$3')} AS "hasLayout"
FROM unnest($1::uuid[]) AS asked (id) LEFT JOIN LATERAL (${LAST_ENDED_DEBIT_SQL}) debit ON true`;

const readClocks = (): Batch['beganAt'] => ({ monotonic: performance.now(), wall: Date.now() });

/** What was seen in the shards whose Redis answers. */
async function seenBy(looks: Looks): Promise<ReadonlyMap<number, Seen>> {
  const seen = new Map<number, Seen>();
  await Promise.allSettled(
    Array.from(looks, async ([shard, looking]) => {
      seen.set(shard, (await looking).seen.get(shard) as Seen);
    }),
  );
  return seen;
}

const permit = ({ seen, lastFlush }: Judged, untilMs: number): Permit => ({
  untilMs,
  seen: markText(seen.mark),
  lastFlush: markText(lastFlush),
});

/** Calls `work` for each item. A failure rejects only that item. If Redis is away, the whole call rejects instead. */
async function eachAlone<Item extends readonly [key: string, ...rest: unknown[]]>(
  items: Iterable<Item>,
  finish: Finish<boolean>,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const away: unknown[] = [];
  await Promise.all(
    Array.from(items, (item) =>
      work(item).catch((error: unknown) => {
        if (isRedisUnavailable(error)) away.push(error);
        else finish(item[0], { error });
      }),
    ),
  );
  if (away.length > 0) throw away[0];
}

/** Resolves with the result of `work`. After `TIMEOUT_MS`, calls `abort` and rejects. */
function withDeadline<T>(work: PromiseLike<T>, abort: () => void): Promise<T> {
  return within(work, TIMEOUT_MS, () => {
    abort();
    return timedOut(`no answer within ${TIMEOUT_MS} ms`);
  });
}

/** By this code `isPostgresUnavailable` recognises the error. */
const timedOut = (message: string): Error => Object.assign(new Error(message), { code: 'ETIMEDOUT' });
