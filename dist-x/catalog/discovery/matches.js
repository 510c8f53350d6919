import { MAX_RANK, NO_MATCH } from './words.js';
let lastVersion = 0;
/** Maximum number of categories that an answer counts. Anybody can name a new one, and each answer shows them. */
const MAX_CATEGORIES = 500;
/**
 * All entries that match one filter, by slot, with their counts. Filled once by looking at every slot (`fill`, in several steps),
 * and kept right by `change` from its first step on. A change costs about as much as matching one entry.
 *
 *     slots   0 … filledTo … n      a change left of filledTo is counted at once,
 *             counted │ not yet     one right of it when `fill` gets there
 */
export class Matches {
    #matcher;
    #isFilled = false;
    #ranks = new Uint8Array(1_024).fill(NO_MATCH);
    #filledTo = 0;
    #counts = new Map();
    #totals = new Array(MAX_RANK + 1).fill(0);
    #digest = [0, 0, 0];
    #categories = null;
    total = 0;
    /** Changes with every change of a match. No two versions are equal, not even of different filters. */
    version = ++lastVersion;
    /** As `version`, but changes only with `total` or `categories`. */
    countsVersion = ++lastVersion;
    constructor(matcher) {
        this.#matcher = matcher;
    }
    /** The next step. @returns whether all slots have been looked at */
    fill(slots, isOver) {
        while (this.#filledTo < slots.length) {
            // To ask for each entry would double the time. The worst text, all combining marks and folded anew, takes 0.5 ms.
            const end = Math.min(this.#filledTo + 4, slots.length);
            while (this.#filledTo < end) {
                const entry = slots[this.#filledTo++];
                if (entry !== undefined)
                    this.change(undefined, entry);
            }
            if (isOver())
                break;
        }
        this.#isFilled = this.#filledTo >= slots.length;
        return this.#isFilled;
    }
    /** An entry is added, replaced by another with the same slot, or removed. */
    change(before, after) {
        const { slot } = (after ?? before);
        if (!this.#isFilled && slot >= this.#filledTo)
            return;
        const rankBefore = before === undefined ? NO_MATCH : this.rankAt(slot);
        const rank = after === undefined ? NO_MATCH : this.#rankOf(before, after, rankBefore);
        if (rankBefore === NO_MATCH && rank === NO_MATCH)
            return;
        this.version = ++lastVersion;
        if (rankBefore !== NO_MATCH)
            this.#count(before, rankBefore, -1);
        if (rank !== NO_MATCH)
            this.#count(after, rank, 1);
        this.#setRank(slot, rank);
        const isSameCount = rank !== NO_MATCH && rankBefore !== NO_MATCH && before?.listing.category === after?.listing.category;
        if (!isSameCount) {
            this.countsVersion = ++lastVersion;
            this.#categories = null;
        }
    }
    /** Of the entry in this slot: its rank, or NO_MATCH. */
    rankAt(slot) {
        return this.#ranks[slot] ?? NO_MATCH;
    }
    /** All ranks as they are now: 100 KB at 100 000 listings. */
    copyRanks() {
        return this.#ranks.slice();
    }
    /** The ranks that occur, from the best. */
    ranksThatOccur() {
        return this.#totals.flatMap((total, rank) => (total > 0 ? [rank] : []));
    }
    /** The slots of all matches. */
    slots() {
        const slots = [];
        const ranks = this.#ranks;
        for (let slot = 0; slot < ranks.length; slot++)
            if (ranks[slot] !== NO_MATCH)
                slots.push(slot);
        return slots;
    }
    /** The largest first, at most MAX_CATEGORIES. */
    categories() {
        this.#categories ??= largest(this.#counts);
        return this.#categories;
    }
    /**
     * The same text only for the same matches: what is shown of them, and their ranks, which decide about their order. A word that
     * nobody is shown, because the description is cut before it, can change a rank.
     */
    digest() {
        return this.#digest.join('.');
    }
    #rankOf(before, after, rankBefore) {
        if (!this.#matcher.hasTerms(after))
            return NO_MATCH;
        const isSameText = before !== undefined && before.signature === after.signature;
        return isSameText && rankBefore !== NO_MATCH ? rankBefore : this.#matcher.rankOf(after);
    }
    #count(entry, rank, by) {
        const { category } = entry.listing;
        const count = (this.#counts.get(category) ?? 0) + by;
        if (count === 0)
            this.#counts.delete(category);
        else
            this.#counts.set(category, count);
        this.total += by;
        this.#totals[rank] = this.#totals[rank] + by;
        addDigest(this.#digest, entry.digest, by * (2 * rank + 1));
    }
    #setRank(slot, rank) {
        if (slot >= this.#ranks.length) {
            const longer = new Uint8Array(Math.max(this.#ranks.length * 2, slot + 1)).fill(NO_MATCH);
            longer.set(this.#ranks);
            this.#ranks = longer;
        }
        this.#ranks[slot] = rank;
    }
}
const compareCounts = (a, b) => b.services - a.services || (a.category < b.category ? -1 : 1);
/** The first MAX_CATEGORIES in order. Sorts few at a time: to sort 50 000 categories would take 20 ms. */
function largest(counts) {
    const found = [];
    let last = null;
    for (const [category, services] of counts) {
        const count = { category, services };
        if (last !== null && compareCounts(count, last) > 0)
            continue;
        found.push(count);
        if (found.length < 2 * MAX_CATEGORIES)
            continue;
        found.sort(compareCounts).length = MAX_CATEGORIES;
        last = found[MAX_CATEGORIES - 1];
    }
    return found.sort(compareCounts).slice(0, MAX_CATEGORIES);
}
/** @param factor  odd, so that no two digests become equal */
function addDigest(sum, digest, factor) {
    for (const i of [0, 1, 2])
        sum[i] = (sum[i] + Math.imul(digest[i], factor)) | 0;
}
//# sourceMappingURL=matches.js.map