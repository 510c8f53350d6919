import { chunkAfter, indexAfter, MAX_CHUNK } from './order.js';
import { compareEntries, compareTo } from './sorts.js';
import { NO_MATCH } from './words.js';
/**
 * Up to this many matches are sorted for each answer, in one step of 1 to 2 ms. (With 2 000 a step took 5 ms, and 6 to 7 on a busy
 * machine.) More are found by going through the order of all listings, in many steps: since at least one in a hundred of 100 000
 * matches then, a page is found after a few thousand.
 */
const MAX_SORTED = 1_000;
/**
 * What matches a filter, in the order of a sort, as it was at one moment. It takes some microseconds to make. Going through it may
 * take long and many steps, and finds everything as it was, whatever changes meanwhile.
 */
export class View {
    sort;
    total;
    #order;
    #chunks;
    /** Null: all entries match. */
    #ranks;
    #ranksThatOccur;
    #sorted;
    /** @param matches  of a filter, or 'everything' */
    constructor(index, matches, isEverything, sort) {
        this.sort = sort;
        this.total = matches.total;
        this.#order = sort === 'relevance' ? 'quality' : sort;
        this.#chunks = index.order(this.#order).chunks;
        this.#ranks = isEverything ? null : matches.copyRanks();
        this.#ranksThatOccur = sort === 'relevance' ? matches.ranksThatOccur() : [];
        this.#sorted = isEverything || matches.total > MAX_SORTED ? null : this.#sort(matches.slots(), index);
    }
    rankOf(entry) {
        return this.sort === 'relevance' ? this.#ranks[entry.slot] : 0;
    }
    /** The chunks of the order from the place on: an answer made from some of them holds as long as they are there. */
    chunksAfter(after) {
        if (this.#sorted !== null || this.sort === 'relevance')
            return null;
        return this.#chunks.slice(this.#firstChunk(after));
    }
    /** All matches after the place, in order. Some of the batches are empty: code that goes through them can pause between any two. */
    *batches(after) {
        if (this.#sorted !== null) {
            const found = after === null ? this.#sorted : this.#sorted.filter((entry) => this.#isAfter(entry, after));
            for (let i = 0; i < found.length; i += MAX_CHUNK)
                yield found.slice(i, i + MAX_CHUNK);
        }
        else if (this.sort === 'relevance') {
            for (const rank of this.#ranksThatOccur) {
                if (after !== null && rank < after.rank)
                    continue;
                yield* this.#inOrder(rank === after?.rank ? after : null, (ranks, { slot }) => ranks[slot] === rank);
            }
        }
        else {
            yield* this.#inOrder(after, (ranks, { slot }) => (ranks[slot] ?? NO_MATCH) !== NO_MATCH);
        }
    }
    *#inOrder(after, isMatch) {
        const ranks = this.#ranks;
        const first = this.#firstChunk(after);
        for (let i = first; i < this.#chunks.length; i++) {
            let chunk = this.#chunks[i];
            if (i === first && after !== null) {
                const begin = indexAfter(chunk, after, this.#order);
                if (begin > 0)
                    chunk = chunk.slice(begin);
            }
            yield ranks === null ? chunk : chunk.filter((entry) => isMatch(ranks, entry));
        }
    }
    #firstChunk(after) {
        return after === null ? 0 : chunkAfter(this.#chunks, after, this.#order);
    }
    #sort(slots, index) {
        const entries = slots.map((slot) => index.at(slot));
        return entries.sort((a, b) => this.rankOf(a) - this.rankOf(b) || compareEntries(a, b, this.#order));
    }
    #isAfter(entry, after) {
        return (this.rankOf(entry) - after.rank || compareTo(entry, after, this.#order)) > 0;
    }
}
//# sourceMappingURL=view.js.map