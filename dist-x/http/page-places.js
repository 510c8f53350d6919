import { unavailableError } from '../errors.js';
import { FairLine } from '../fair-line.js';
/** Maximum requests that wait for a place: as many as the pool of Postgres lets wait. One more gets 503. */
const MAX_WAITING = 1_000;
/** Maximum requests of one owner that wait. Four owners with full lines still leave room for others to wait briefly. */
const MAX_WAITING_OF_ONE = 240;
/** Maximum time that a request waits; then it gets 503. As long as a page may take in all (api.ts). */
const MAX_WAIT_MS = 5_000;
/** Connections that pages leave to everything else of the gateway that asks Postgres: the look-up of keys, the catalog, credits. */
const LEFT_TO_OTHERS = 2;
/** Places for a pool with this many connections. One owner has at most a fifth of them. */
export const placesFor = (connections) => ({
    places: Math.max(1, connections - LEFT_TO_OTHERS),
    placesOfOne: Math.max(1, Math.floor(connections / 5)),
});
/** Places of requests that are answered from memory: those of many owners, each of whom may search twice at a time. */
export const IN_MEMORY = { places: 64, placesOfOne: 2 };
/**
 * Shares the pool of Postgres between those who ask for pages. Eight slow statements of one key used to make every page of everybody
 * else 503.
 *
 * A request keeps its place until its handler has ended, even if the caller got a 503 before: until then its statement runs. An owner
 * never has more than its places, even if the others are free. A statement may take 15 s, so places that were lent out would not be
 * back when somebody else needs them.
 *
 *   a place of the owner's and one of all are free ──► begins
 *   otherwise ──► waits in its owner's line; the owners with a line take turns
 *
 * Tested by test/http/page-places.test.ts and test/integration/fairness.test.ts.
 */
export class PagePlaces {
    #options;
    #line;
    #free;
    constructor(options) {
        this.#options = {
            maxWaiting: MAX_WAITING,
            maxWaitingOfOne: MAX_WAITING_OF_ONE,
            maxWaitMs: MAX_WAIT_MS,
            ...options,
        };
        this.#line = new FairLine(this.#options.maxWaiting, this.#options.maxWaitingOfOne);
        this.#free = options.places;
    }
    /**
     * Runs `work` in a place of the owner: an account, or the address of a caller without a key. Rejects with `unavailable` when a bound
     * of the line is reached.
     */
    async run(owner, work) {
        if (this.#free > 0 && this.#line.takenBy(owner) < this.#options.placesOfOne)
            this.#take(owner);
        else
            await this.#wait(owner);
        try {
            return await work();
        }
        finally {
            this.#leave(owner);
        }
    }
    #take(owner) {
        this.#line.took(owner);
        this.#free--;
    }
    #wait(owner) {
        if (!this.#line.hasRoomFor(owner))
            return Promise.reject(busyError());
        return new Promise((resolve, reject) => {
            const timer = setTimeout(() => {
                this.#line.remove(owner, entry);
                reject(busyError());
            }, this.#options.maxWaitMs);
            const entry = { owner, begin: resolve, timer };
            this.#line.wait(owner, entry);
        });
    }
    #leave(owner) {
        // It could have no turn before now: its turn is after those of the others that wait.
        if (this.#line.takenBy(owner) === this.#options.placesOfOne)
            this.#line.goesLast(owner);
        this.#line.left(owner);
        this.#free++;
        this.#serveNext();
    }
    /** Gives the place that was just left to the next in turn, if anybody may have it. */
    #serveNext() {
        const next = this.#line.next(this.#options.placesOfOne);
        if (next === undefined)
            return;
        clearTimeout(next.timer);
        this.#line.served(next.owner, next);
        this.#take(next.owner);
        next.begin();
    }
}
const busyError = () => unavailableError(undefined, 'Too many requests of this account or address are waiting. Please retry.');
//# sourceMappingURL=page-places.js.map