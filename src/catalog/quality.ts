import { assert } from '../assert.ts';
import { stepEnd, turns } from '../platform/turns.ts';

/**
 * The quality of a service about which nothing is known yet, on a scale from 0 to 100 (docs/api.md, 'Catalog'). The middle, so
 * that a new service is neither buried below the proven ones nor put above them.
 */
export const NEUTRAL_QUALITY = 50;

/**
 * The quality of each service, apart from its listing: it changes far more often, and nothing but the catalog's pages reads it. So
 * a changed quality makes no new listing, and whatever calls have cached by listing stays.
 */
export class Qualities {
  readonly #known = new Map<string, number>();
  readonly #onChange: (id: string) => void;

  /** @param onChange  told the id of each service whose quality has changed */
  constructor(onChange: (id: string) => void) {
    this.#onChange = onChange;
  }

  of(id: string): number {
    return this.#known.get(id) ?? NEUTRAL_QUALITY;
  }

  /**
   * Takes over the qualities of some services, 0 to 100 each; the others keep theirs. Compares them in steps of a millisecond, so
   * all services may be among them although few have changed. Resolves when all are taken over.
   */
  async set(qualities: ReadonlyMap<string, number>): Promise<void> {
    let isOver = stepEnd();
    let n = 0;
    for (const [id, quality] of qualities) {
      assert(quality >= 0 && quality <= 100, 'a quality is a number from 0 to 100');
      if (this.of(id) !== quality) {
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
