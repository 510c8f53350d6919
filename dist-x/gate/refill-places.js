import { UNITS_PER_REQUEST } from '../admission/codes.js';
/**
 * Decides when each caller that one bucket refuses should come again. Suppose that sixty callers of a key with 60 requests a
 * minute are refused at once, and all are told to wait a second: 59 of them are refused again, and most client libraries give
 * up after two retries. So each refusal promises the caller a *place* in the refill: a moment at which one more token is there.
 *
 *   tokens now ──► 1st place ──► 2nd ──► … ──► bucket full          a place every 60 000 / limit ms
 *
 * If all callers come when they were told, there is a token for each. Nothing is reserved: a new caller may take a token that
 * was promised to another. When all places until the bucket is full have been promised, the first one is promised again.
 * Otherwise one caller that asks without a pause would make the others wait longer and longer.
 *
 * Places are kept in memory, because a flood of refused requests must stay cheap: 0.06 µs each, and no trip to Redis. A worker
 * therefore knows only its own refusals. Each of n workers promises every nth place; the wall clock, which they share, decides
 * which places belong to which worker.
 *
 * Time is counted in the bucket's units here, `limit` of them to a millisecond. They are integers, so that sums of intervals
 * such as 60 000 / 7 ms stay exact.
 */
export class RefillPlaces {
    #clock;
    #worker;
    #workers;
    /**
     * @param worker   the number of this worker process, from 1
     * @param workers  how many worker processes serve this port
     */
    constructor(clock, worker = 1, workers = 1) {
        this.#clock = clock;
        this.#worker = worker;
        this.#workers = workers;
    }
    /**
     * Promises the next place.
     *
     * @param bucket  keeps the last place promised; 0 at first
     * @param rate    the bucket's state when it refused the request
     * @returns whole seconds to wait; at least 1
     */
    next(bucket, { limit, tokens }) {
        const now = this.#clock() * limit;
        // If a minute has fewer places than there are workers, some workers share a place.
        const sharing = Math.min(this.#workers, limit);
        const first = this.#ownFrom(now + UNITS_PER_REQUEST - tokens, sharing);
        const following = bucket.lastPlace + sharing * UNITS_PER_REQUEST;
        const full = now + limit * UNITS_PER_REQUEST - tokens;
        const place = following > full ? first : Math.max(first, following);
        bucket.lastPlace = place;
        return Math.max(1, Math.ceil((place - now) / limit / 1000));
    }
    /** The first place at or after the given one that belongs to this worker. */
    #ownFrom(place, sharing) {
        if (sharing === 1)
            return place;
        const owner = Math.floor(place / UNITS_PER_REQUEST) % sharing;
        return place + ((this.#worker + sharing - owner) % sharing) * UNITS_PER_REQUEST;
    }
}
//# sourceMappingURL=refill-places.js.map