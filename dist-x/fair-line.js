import { assert } from './assert.js';
/**
 * Who has how much of something scarce, and a line in which owners take turns, however many entries each has there.
 *
 *   owners with waiting entries, in turn:   a ──► b ──► c ──► a …      of each, the entry that came first
 *
 * The line does not know how much there is, nor how much of it one owner may have. The code that uses it does: it asks `next` whose turn
 * it is, gives, and says so (`served`, `took`, `left`).
 *
 * Tested by test/fair-line.test.ts, upstream/shares.test.ts (connections) and http/page-places.test.ts.
 */
export class FairLine {
    #maxWaiting;
    #maxWaitingOfOne;
    /** Those that have something or wait for it. */
    #owners = new Map();
    /** Those with waiting entries, in the order of their turns. */
    #turns = new Set();
    /** All waiting entries, oldest first. */
    #waiting = new Set();
    constructor(maxWaiting, maxWaitingOfOne) {
        this.#maxWaiting = maxWaiting;
        this.#maxWaitingOfOne = maxWaitingOfOne;
    }
    /** Waiting entries. */
    get size() {
        return this.#waiting.size;
    }
    get oldest() {
        const [oldest] = this.#waiting;
        return oldest;
    }
    took(name) {
        this.#owner(name).taken++;
    }
    left(name) {
        const owner = this.#owner(name);
        assert(owner.taken > 0);
        owner.taken--;
        this.#forgetIfDone(owner);
    }
    takenBy(name) {
        return this.#owners.get(name)?.taken ?? 0;
    }
    hasRoomFor(name) {
        const ofOne = this.#owners.get(name)?.waiting.size ?? 0;
        return this.#waiting.size < this.#maxWaiting && ofOne < this.#maxWaitingOfOne;
    }
    /** The code that calls this has asked `hasRoomFor`. */
    wait(name, entry) {
        const owner = this.#owner(name);
        owner.waiting.add(entry);
        this.#waiting.add(entry);
        this.#turns.add(owner);
    }
    /** The entry no longer waits. @returns whether it did */
    remove(name, entry) {
        const owner = this.#owners.get(name);
        if (owner === undefined || !this.#waiting.delete(entry))
            return false;
        owner.waiting.delete(entry);
        if (owner.waiting.size === 0)
            this.#turns.delete(owner);
        this.#forgetIfDone(owner);
        return true;
    }
    /**
     * The entry whose turn it is. It stays in line until `served`.
     *
     * @param limit  owners that have this much have no turn. Skipping them is cheap: few can have much
     * @param mayTake  whether the owner may have one more, by another rule
     */
    next(limit, mayTake = () => true) {
        for (const { name, taken, waiting } of this.#turns) {
            if (taken >= limit || !mayTake(name))
                continue;
            const [entry] = waiting;
            return entry;
        }
        return undefined;
    }
    /** The entry leaves the line. */
    served(name, entry) {
        this.remove(name, entry);
        this.goesLast(name);
    }
    /** The owner, if it waits, has its next turn after the others. */
    goesLast(name) {
        const owner = this.#owners.get(name);
        if (owner !== undefined && this.#turns.delete(owner))
            this.#turns.add(owner);
    }
    #owner(name) {
        let owner = this.#owners.get(name);
        if (owner === undefined) {
            owner = { name, taken: 0, waiting: new Set() };
            this.#owners.set(name, owner);
        }
        return owner;
    }
    #forgetIfDone(owner) {
        if (owner.taken === 0 && owner.waiting.size === 0)
            this.#owners.delete(owner.name);
    }
}
//# sourceMappingURL=fair-line.js.map