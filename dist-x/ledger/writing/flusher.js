import { sqlState } from '../../platform/postgres.js';
import { isExact } from './call-sums.js';
import { needsCare, storeEntries, storeNewCalls, writeForReplicas } from './flush.js';
import { lockShards } from './flush-locks.js';
import { reportRejected } from './rejected-events.js';
import { isStillThere, ofShards, readAgain } from './stream.js';
/**
 * How often the writer waits for the flush lock of a shard that it had to leave out. A wait takes 250 ms (`LOCK_WAIT_MS`) at
 * most, so the other shards lose at most 25 % of the time.
 */
const LOCK_WAIT_EVERY_MS = 1_000;
const LOCK_NOT_AVAILABLE = '55P03';
/** Stores batches, each in one transaction: takes the flush locks, looks whether Redis still has the events, and stores them. */
export class Flusher {
    #options;
    /** Store the next batch by `storeEntries`: Postgres refused a call of the last batch, or had stored it already. */
    #careful = false;
    /** Shards left out of the last flush because another process had locked them. */
    #passedOver = [];
    #waitedForLockAt = Number.NEGATIVE_INFINITY;
    #flushes = 0;
    #storedCalls = 0;
    #rejectedEvents = 0;
    constructor(options) {
        this.#options = options;
    }
    get hasPassedOver() {
        return this.#passedOver.length > 0;
    }
    stats() {
        return { flushes: this.#flushes, storedCalls: this.#storedCalls, rejectedEvents: this.#rejectedEvents };
    }
    /**
     * Stores a batch in one transaction.
     *
     * @param how  `stopping`: each flush waits for the lock of a shard that it had to leave out; `onStoring`: called while Postgres
     *   stores the part of the batch whose shards are locked
     * @returns the part of the batch that is now stored, which is everything except the shards that another process has locked;
     *   'locked' when all its shards are; 'nothing' when nothing was stored and the writer must read the streams again
     */
    async flush(session, batch, how) {
        const { log } = this.#options;
        const careful = this.#careful || !isExact(batch.pages);
        const waitFor = this.#lockToWaitFor(batch, how.stopping);
        try {
            const stored = await session.transaction(async () => {
                const part = ofShards(batch, await lockShards(session, batch.shards, waitFor));
                this.#passedOver = batch.shards.filter((shard) => !part.shards.includes(shard));
                if (part.size === 0)
                    return 'locked';
                // The batch was read before this transaction took the shards' flush locks. If Redis has lost it since then, wallets may
                // have been loaded from Postgres without these charges, so the charges must not be stored now. (If this Redis belongs to
                // another installation by now, `isStillThere` throws.)
                if (!(await isStillThere(this.#options, part)))
                    return 'lost';
                const storing = careful ? this.#storeCarefully(session, part) : storeNewCalls(session, part.pages);
                if (!careful)
                    how.onStoring(part);
                const result = await storing;
                if (result.inserted === 0)
                    await writeForReplicas(session);
                return { part, result };
            });
            if (stored === 'locked')
                return 'locked';
            this.#careful = false;
            if (stored === 'lost') {
                log.warn({ events: batch.size }, 'redis lost usage events that were about to be stored');
                return 'nothing';
            }
            this.#flushes++;
            this.#storedCalls += stored.result.inserted;
            this.#rejectedEvents += stored.result.rejected.length;
            reportRejected(stored.result, log);
            return stored.part;
        }
        catch (error) {
            if (waitFor !== null && sqlState(error) === LOCK_NOT_AVAILABLE)
                return 'nothing';
            if (careful || !needsCare(error))
                throw error;
            this.#careful = true;
            return 'nothing';
        }
    }
    async #storeCarefully(session, part) {
        const entries = await readAgain(this.#options, part);
        if (entries.length !== part.size)
            throw new Error(`${part.size - entries.length} usage events disappeared from their streams`);
        return storeEntries(session, entries, this.#options.feeBasisPoints);
    }
    /**
     * The passed-over shard whose flush lock this flush should wait for. Null when there is none, or when the last such wait was
     * less than `LOCK_WAIT_EVERY_MS` ago.
     */
    #lockToWaitFor(batch, stopping) {
        const now = performance.now();
        const shard = this.#passedOver.find((passed) => batch.shards.includes(passed));
        if (shard === undefined || (!stopping && now - this.#waitedForLockAt < LOCK_WAIT_EVERY_MS))
            return null;
        this.#waitedForLockAt = now;
        // If the lock does not become free in time, the other passed-over shards get their turn before this one.
        this.#passedOver = [...this.#passedOver.filter((passed) => passed !== shard), shard];
        return shard;
    }
}
//# sourceMappingURL=flusher.js.map