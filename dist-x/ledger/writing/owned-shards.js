import { checkLayout } from '../layout.js';
import { WRITER_LOCK, WRITERS_LOCK } from '../locks.js';
/** How often a writer looks which shards are free, and how many writers there are. */
const LOOK_MS = 1_000;
/** Several writers may reach for the same free shards. Who gets fewer than it reached for looks again at once, so often at most. */
const MAX_LOOKS = 4;
/**
 * The shards whose streams this writer stores: as many as its share, which is all shards divided by the number of writers, rounded up.
 *
 *   a writer starts: the others give up what they have beyond their new share ──► it takes what is free
 *   a writer ends, however: its session ends, so its locks are free           ──► the others take what is free
 *
 * The writers do not talk to each other. Each has a lock of its session for each of its shards, and one that only says that it is
 * there, and counts those of all in `pg_locks`. Which writer stores a shard decides about work only: each call is stored once because
 * of its id.
 */
export class OwnedShards {
    #layout;
    #all;
    #shards = [];
    #lookedAt = Number.NEGATIVE_INFINITY;
    #isThere = false;
    constructor(layout) {
        this.#layout = layout;
        this.#all = Array.from({ length: layout.shards }, (_, shard) => shard);
    }
    get shards() {
        return this.#shards;
    }
    get hasAll() {
        return this.#shards.length === this.#all.length;
    }
    /** A new session has no locks. */
    reset() {
        this.#shards = [];
        this.#isThere = false;
        this.lookSoon();
    }
    /** The next `balance` looks, although the last look was not long ago. */
    lookSoon() {
        this.#lookedAt = Number.NEGATIVE_INFINITY;
    }
    /**
     * Takes free shards, or gives some up, if it is time to look.
     *
     * @param beforeGivingUp  ends all work on the shards of this writer
     * @returns whether the shards are others now
     * @throws WrongLayout when the data in Redis are not laid out as this writer was told
     */
    async balance(session, beforeGivingUp) {
        if (performance.now() - this.#lookedAt < LOOK_MS)
            return false;
        this.#lookedAt = performance.now();
        const before = this.#shards;
        try {
            await this.#balance(session, beforeGivingUp);
        }
        catch (error) {
            // Nobody knows what is locked now. The locks end with the session.
            session.close();
            throw error;
        }
        return this.#shards !== before;
    }
    async #balance(session, beforeGivingUp) {
        for (let looks = 0; looks < MAX_LOOKS; looks++) {
            const { writers, held } = await this.#look(session);
            const spare = Math.ceil(this.#all.length / writers) - this.#shards.length;
            if (spare < 0) {
                await beforeGivingUp();
                await this.#giveUp(session, this.#shards.slice(spare));
            }
            const free = spare > 0 ? this.#all.filter((shard) => !held.has(shard)).slice(0, spare) : [];
            if (free.length === 0)
                break;
            if ((await this.#take(session, free)) === free.length)
                break;
        }
    }
    async #look(session) {
        // The first look takes the lock before it counts: a function of the select list would be called for rows that are read already.
        if (!this.#isThere) {
            await session.query('SELECT pg_advisory_lock_shared($1::int, 0)', [WRITERS_LOCK]);
            // From here on no reshard can begin.
            await checkLayout(session, this.#layout);
        }
        this.#isThere = true;
        const rows = await session.query(`SELECT classid::int AS lock, objid::int AS shard FROM pg_locks
       WHERE locktype = 'advisory' AND granted AND classid::int = ANY($1::int[]) AND objsubid = 2
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`, [`{${WRITER_LOCK},${WRITERS_LOCK}}`]);
        const shards = rows.filter(({ lock }) => lock === WRITER_LOCK).map(({ shard }) => shard);
        return { writers: Math.max(1, rows.length - shards.length), held: new Set(shards) };
    }
    /** @returns how many of these shards were still free */
    async #take(session, shards) {
        const rows = await session.query('SELECT shard, pg_try_advisory_lock($1::int, shard) AS taken FROM unnest($2::int[]) AS shard', [WRITER_LOCK, `{${shards.join(',')}}`]);
        const taken = rows.filter((row) => row.taken).map((row) => row.shard);
        if (taken.length > 0)
            this.#shards = [...this.#shards, ...taken].sort((a, b) => a - b);
        return taken.length;
    }
    async #giveUp(session, shards) {
        this.#shards = this.#shards.filter((shard) => !shards.includes(shard));
        await session.query('SELECT pg_advisory_unlock($1::int, shard) FROM unnest($2::int[]) AS shard', [
            WRITER_LOCK,
            `{${shards.join(',')}}`,
        ]);
    }
}
//# sourceMappingURL=owned-shards.js.map