import { Coalescer } from '../../platform/coalescer.js';
import { isPostgresUnavailable, PostgresSession, sqlState, standby } from '../../platform/postgres.js';
import { byStore, isRedisUnavailable } from '../../platform/redis.js';
import { freeField } from '../../platform/redis-keys.js';
import { within } from '../../platform/timing.js';
import { hasLayoutSql, layoutOf, WrongLayout } from '../layout.js';
import { FLUSH_LOCK } from '../locks.js';
import { readRedisTime } from '../redis-run.js';
import { hydrateWalletScript, loadKeyScript } from '../scripts.js';
import { LAST_ENDED_DEBIT_SQL } from './debits-sql.js';
/**
 * Maximum number of wallets, or of keys, in one batch; others wait for the next. The limit matters after Redis lost
 * everything: then every caller's wallet and key is asked for at the same time.
 */
const MAX_BATCH = 500;
/** Maximum number of accounts, and of keys, that wait to be loaded. Callers of further ones get 503 at once. */
const MAX_WAITING = 10_000;
/** How long a caller waits for its wallet or key. After that the caller gets 503. */
const TIMEOUT_MS = 2_000;
/**
 * Minimum time between the beginnings of two batches. A batch of wallets takes four round trips to Postgres, and a first call waits
 * for the gap only if another one was made within it.
 */
const GAP_MS = 5;
/** Maximum wait for a shard that is being flushed. When it has passed, callers of all shards that are locked then get 503. */
const LOCK_WAIT_MS = 1_000;
const SESSION_SETTINGS = {
    lock_timeout: LOCK_WAIT_MS,
    idle_in_transaction_session_timeout: TIMEOUT_MS,
    // The session keeps a query plan for its whole life. A plan made for small tables would go on to scan them when they are large.
    enable_seqscan: 'off',
};
const LOCK_NOT_AVAILABLE = '55P03';
/**
 * Redis takes the wallets of a batch for this long after the batch began, by Redis's own clock. The flush locks, under which the
 * wallets were read, last for `TIMEOUT_MS` at least: after that this process closes the session, or Postgres does if this process is
 * suspended. The half second between them is for clocks that do not run alike.
 */
const FILL_MS = TIMEOUT_MS - 500;
/** The replies of hydrate-wallet.lua that say more than that the wallet was loaded already. */
const [FILLED, TOO_LATE] = [1, 2];
/** Rate limit of a key that Postgres does not know, which is loaded as revoked. Not 0, because batch.lua takes 0 for damaged. */
const NO_LIMIT = 1;
const BOUNDS = {
    maxBatch: MAX_BATCH,
    maxWaiting: MAX_WAITING,
    timeoutMs: TIMEOUT_MS,
    isAwayForAll: true,
    isAway: (error) => isPostgresUnavailable(error) || isRedisUnavailable(error),
};
const LOADED = { result: true };
/**
 * Copies from Postgres to Redis the keys and wallets that Redis does not have. What callers ask for while a batch is loading is
 * loaded together in the next batches (`MAX_BATCH`).
 *
 *   loadWallet ──► #wallets: shards that nobody flushes ──────────────► loaded
 *                      └─ the shard is locked, or the wallet came to Redis too late ──► #locked: waits ──► loaded
 *
 * Those that have to wait for a flush have batches and a connection of their own, so they delay nobody else.
 *
 * For a wallet that Redis lacks, the settled balance in Postgres is the whole truth, because Redis then has no open hold and no
 * event of that account. No script removes a loaded wallet, so a missing one was either never loaded, or Redis lost the load
 * together with all that was written after it. (An operator who deletes a damaged wallet has to wait until the account's holds and events are
 * gone: docs/operating.md.)
 */
export class Hydrator {
    #options;
    /** The result is whether the wallet is loaded: not if its shard is locked, or after `FILL_MS`. */
    #wallets = new Coalescer({
        ...BOUNDS,
        gapMs: GAP_MS,
        load: (batch, finish) => this.#loadWallets(Array.from(batch.keys()), finish),
    });
    #locked = new Coalescer({
        ...BOUNDS,
        load: (batch, finish) => this.#loadLocked(Array.from(batch.keys()), finish),
    });
    #states = new Coalescer({
        ...BOUNDS,
        gapMs: GAP_MS,
        load: (batch, finish) => this.#loadKeys(batch, finish),
    });
    #sessions = { wallets: null, locked: null };
    /** Shards that stayed locked for as long as `#loadLocked` waited. */
    #stuck = new Set();
    #loaded = 0;
    constructor(options) {
        this.#options = options;
    }
    /** Loads the limit and status of a key unless Redis has them. A key that Postgres does not know is loaded as revoked. */
    async loadKey(keyId, accountId) {
        await this.#states.ask(keyId, accountId);
    }
    /** Loads a wallet unless Redis has it. Rejects within `TIMEOUT_MS` if too many wait, its shard stays locked or a store is away. */
    async loadWallet(accountId) {
        const deadline = performance.now() + TIMEOUT_MS;
        if (await this.#wallets.ask(accountId, accountId))
            return;
        const leftMs = Math.max(0, deadline - performance.now());
        if (!(await this.#locked.ask(accountId, accountId, leftMs)))
            throw timedOut('redis got the wallet too late');
    }
    /** Number of wallets that this process has loaded since it started. */
    get loadedWallets() {
        return this.#loaded;
    }
    /** Closes the hydrator's connections. A later load opens new ones. */
    close() {
        for (const session of Object.values(this.#sessions))
            session?.close();
    }
    async #loadKeys(accountOfKey, finish) {
        const { sql } = this.#options;
        const ids = Array.from(accountOfKey.keys());
        const query = sql `
      SELECT k.key_id AS "keyId", k.rate_limit AS "limit",
             CASE WHEN k.status = 'active' AND a.status <> 'closed' THEN a.status ELSE 'revoked' END AS "status"
      FROM api_keys k JOIN accounts a ON a.id = k.account_id
      WHERE k.key_id = ANY(${ids}::text[])
      -- One more row if this is a standby, to which a pooler may have moved the connection.
      UNION ALL SELECT '', 0, 'revoked' WHERE pg_is_in_recovery()`;
        const rows = new Map((await withDeadline(query, () => { })).map((row) => [row.keyId, row]));
        if (rows.has(''))
            throw standby();
        await eachAlone(accountOfKey, finish, async ([keyId, accountId]) => {
            await this.#putKey(rows.get(keyId) ?? { keyId, limit: NO_LIMIT, status: 'revoked' }, accountId);
        });
        return () => true;
    }
    async #putKey({ keyId, limit, status }, accountId) {
        const { redis, keys } = this.#options;
        const name = keys.key(keys.shardOf(accountId), keyId);
        // The script sets only absent fields: if Redis got a change after the SELECT, that is newer than what was read here.
        await redis.script(loadKeyScript, 1, [name, String(limit), status]);
    }
    /** Loads the wallets of all shards that no writer has locked for a flush now. @returns which were loaded */
    async #loadWallets(accountIds, finish) {
        const session = this.#openSession('wallets');
        const batch = { session, deadlines: this.#readDeadlines(accountIds), finish };
        const loaded = await withDeadline(this.#loadUnlocked(batch, accountIds, null), () => session.close());
        return (id) => loaded.has(id);
    }
    /**
     * Loads wallets of shards that were locked: as soon as a shard is free, its wallets, and those of any other that is free by then.
     * A shard that stayed locked the last time is waited for last, so that it does not use up the time of the others.
     */
    async #loadLocked(accountIds, finish) {
        const shardOf = (id) => this.#options.keys.shardOf(id);
        const waiting = new Set(accountIds);
        const session = this.#openSession('locked');
        const batch = { session, deadlines: this.#readDeadlines(accountIds), finish };
        const load = async (waitFor) => {
            for (const id of await this.#loadUnlocked(batch, Array.from(waiting), waitFor)) {
                finish(id, LOADED);
                waiting.delete(id);
                this.#stuck.delete(shardOf(id));
            }
        };
        const work = async () => {
            const rank = (shard) => (this.#stuck.has(shard) ? 1 : 0);
            const shards = Array.from(new Set(accountIds.map(shardOf))).sort((a, b) => rank(a) - rank(b));
            try {
                for (const shard of shards)
                    if (Array.from(waiting).some((id) => shardOf(id) === shard))
                        await load(shard);
            }
            catch (error) {
                if (sqlState(error) !== LOCK_NOT_AVAILABLE)
                    throw error;
                // There is no time for another wait, but other shards may have become free during this one.
                await load(null);
                for (const id of waiting) {
                    this.#stuck.add(shardOf(id));
                    finish(id, { error });
                }
            }
        };
        await withDeadline(work(), () => session.close());
        // Those that still wait came to Redis too late.
        return () => false;
    }
    /**
     * Loads the wallets of all shards that no writer has locked for a flush now.
     *
     * @param waitFor a shard whose flush lock is waited for first; null: none
     * @returns the wallets that were loaded, and those that were rejected alone
     */
    #loadUnlocked({ session, deadlines, finish }, accountIds, waitFor) {
        const { keys } = this.#options;
        return session.transaction(async () => {
            // A flush keeps this lock exclusively from its check of the stream until its commit. So none gets there before we commit.
            if (waitFor !== null) {
                await session.query('SELECT pg_advisory_xact_lock_shared($1::int, $2::int)', [FLUSH_LOCK, waitFor]);
            }
            const shards = new Set(accountIds.map((id) => keys.shardOf(id)));
            const locking = session.query(`SELECT shard, pg_try_advisory_xact_lock_shared($1::int, shard) AS locked
         FROM (SELECT unnest($2::int[]) AS shard) AS shards`, [FLUSH_LOCK, `{${Array.from(shards).join(',')}}`]);
            // Sent with the locks and carried out after them, with a snapshot of its own, so it sees what the last flush has committed. The
            // wallets of shards that turn out to be locked are read in vain; waiting for the locks would cost every batch a round trip.
            const { shards: count, layout } = layoutOf(this.#options);
            const reading = session.query(SELECT_WALLETS, [`{${accountIds.join(',')}}`, count, layout]);
            const [locks, rows] = await Promise.all([locking, reading]);
            // `reshard` takes the flush locks before it removes wallets, so what is seen under a lock stays so until it is given up.
            if (rows.some((row) => !row.hasLayout))
                throw new WrongLayout();
            const locked = new Set(locks.filter(({ locked }) => locked).map(({ shard }) => shard));
            const ours = rows.filter(({ id }) => locked.has(keys.shardOf(id)));
            const loaded = new Set(ours.map(({ id }) => id));
            // Redis is filled before the commit, which gives up the locks that keep flushes out.
            await eachAlone(ours.map((row) => [row.id, row]), finish, async ([id, row]) => {
                const untilMs = (await deadlines.get(keys.shardOf(id)));
                if (!(await this.#fill(row, untilMs)))
                    loaded.delete(id);
            });
            return loaded;
        });
    }
    /** @returns whether Redis has the wallet now: not if it was too late */
    async #fill({ id, balance, creditSeq, debitSeq, debited, free }, untilMs) {
        const { redis, keys } = this.#options;
        const args = [keys.wallet(keys.shardOf(id), id), ...[untilMs, balance, creditSeq, debitSeq, debited].map(String)];
        for (const [serviceId, used] of Object.entries(free ?? {}))
            args.push(freeField(serviceId), String(used));
        const reply = await redis.script(hydrateWalletScript, 1, args);
        if (reply === FILLED)
            this.#loaded++;
        return reply !== TOO_LATE;
    }
    /**
     * Until when the wallets of a batch that begins now may be filled (`FILL_MS`), by shard. Redis's time is asked for while Postgres is
     * read, so no batch waits for it. It counts as if it had been read now, however long the reply took.
     */
    #readDeadlines(accountIds) {
        const { redis, keys } = this.#options;
        const beganAt = { monotonic: performance.now(), wall: Date.now() };
        const read = async (store) => {
            const nowMs = await readRedisTime(store);
            // The monotonic clock stands still while the host is suspended, and the wall clock may be set back.
            const tookMs = Math.max(performance.now() - beganAt.monotonic, Date.now() - beganAt.wall);
            return Math.floor(nowMs - tookMs) + FILL_MS;
        };
        const deadlines = new Map();
        for (const [store, shards] of byStore(redis, Array.from(new Set(accountIds.map((id) => keys.shardOf(id)))))) {
            const deadline = read(store);
            // The batch may have failed before it asks for it.
            deadline.catch(() => { });
            for (const shard of shards)
                deadlines.set(shard, deadline);
        }
        return deadlines;
    }
    #openSession(of) {
        const present = this.#sessions[of];
        if (present?.open)
            return present;
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
       ${hasLayoutSql('$2', '$3')} AS "hasLayout"
FROM unnest($1::uuid[]) AS asked (id) LEFT JOIN LATERAL (${LAST_ENDED_DEBIT_SQL}) debit ON true`;
/** Calls `work` for each item. A failure rejects only that item. If Redis is away, the whole call rejects instead. */
async function eachAlone(items, finish, work) {
    const away = [];
    await Promise.all(Array.from(items, (item) => work(item).catch((error) => {
        if (isRedisUnavailable(error))
            away.push(error);
        else
            finish(item[0], { error });
    })));
    if (away.length > 0)
        throw away[0];
}
/** Resolves with the result of `work`. After `TIMEOUT_MS`, calls `abort` and rejects. */
function withDeadline(work, abort) {
    return within(work, TIMEOUT_MS, () => {
        abort();
        return timedOut(`no answer within ${TIMEOUT_MS} ms`);
    });
}
/** By this code `isPostgresUnavailable` recognises the error. */
const timedOut = (message) => Object.assign(new Error(message), { code: 'ETIMEDOUT' });
//# sourceMappingURL=hydrate.js.map