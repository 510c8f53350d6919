import { assert } from '../assert.js';
import { stepEnd, turns } from '../platform/turns.js';
/**
 * The quality of a service about which nothing is known yet, on a scale from 0 to 100 (docs/api.md, 'Catalog'). The middle, so
 * that a new service is neither buried below the proven ones nor put above them.
 */
const NEUTRAL = 50;
export const UNKNOWN_QUALITY = { value: NEUTRAL, trend: null, rated: false };
/**
 * The quality of each service, apart from its listing: it changes far more often, and nothing but the catalog's pages reads it. So
 * a changed quality makes no new listing, and whatever calls have cached by listing stays.
 */
export class Qualities {
    #known = new Map();
    #onChange;
    /** @param onChange  told the id of each service whose quality has changed */
    constructor(onChange) {
        this.#onChange = onChange;
    }
    /** The same object for as long as nothing has changed. */
    of(id) {
        return this.#known.get(id) ?? UNKNOWN_QUALITY;
    }
    /**
     * Takes over the qualities of some services; the others keep theirs. Compares them in steps of a millisecond, so
     * all services may be among them although few have changed. Resolves when all are taken over.
     */
    async set(qualities) {
        let isOver = stepEnd();
        let n = 0;
        for (const [id, quality] of qualities) {
            assert(quality.value >= 0 && quality.value <= 100, 'a quality is a number from 0 to 100');
            const before = this.of(id);
            if (before.value !== quality.value || before.trend !== quality.trend || before.rated !== quality.rated) {
                this.#known.set(id, quality);
                this.#onChange(id);
            }
            if (++n % 32 === 0 && isOver()) {
                await turns.nextAhead();
                isOver = stepEnd();
            }
        }
    }
}
//# sourceMappingURL=quality.js.map