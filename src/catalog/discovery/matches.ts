import type { Digest, Entry } from './entry.ts';
import type { Matcher } from './filter.ts';
import { MAX_RANK, NO_MATCH } from './words.ts';

export type CategoryCount = { readonly category: string; readonly services: number };

let lastVersion = 0;

/** The rank of the entry with each slot, as it was at one moment. */
export type Ranks = Uint8Array;

/**
 * All entries that match one filter, by slot, with their counts. Filled once by looking at every slot (`fill`, in several steps),
 * and kept right by `change` from its first step on. A change costs about as much as matching one entry.
 *
 *     slots   0 … filledTo … n      a change left of filledTo is counted at once,
 *             counted │ not yet     one right of it when `fill` gets there
 */
export class Matches {
  readonly #matcher: Matcher;
  #isFilled = false;
  #ranks: Ranks = new Uint8Array(1_024).fill(NO_MATCH);
  #filledTo = 0;
  readonly #counts = new Map<string, number>();
  readonly #totals: number[] = new Array<number>(MAX_RANK + 1).fill(0);
  readonly #digest: [number, number, number] = [0, 0, 0];
  #categories: readonly CategoryCount[] | null = null;
  total = 0;
  /** Changes with every change of a match. No two versions are equal, not even of different filters. */
  version = ++lastVersion;
  /** As `version`, but changes only with `total` or `categories`. */
  countsVersion = ++lastVersion;

  constructor(matcher: Matcher) {
    this.#matcher = matcher;
  }

  /** The next step. @returns whether all slots have been looked at */
  fill(slots: readonly (Entry | undefined)[], isOver: () => boolean): boolean {
    while (this.#filledTo < slots.length) {
      // To ask for each entry would double the time.
      const end = Math.min(this.#filledTo + 32, slots.length);
      while (this.#filledTo < end) {
        const entry = slots[this.#filledTo++];
        if (entry !== undefined) this.change(undefined, entry);
      }
      if (isOver()) break;
    }
    this.#isFilled = this.#filledTo >= slots.length;
    return this.#isFilled;
  }

  /** An entry is added, replaced by another with the same slot, or removed. */
  change(before: Entry | undefined, after: Entry | undefined): void {
    const { slot } = (after ?? before) as Entry;
    if (!this.#isFilled && slot >= this.#filledTo) return;
    const rankBefore = before === undefined ? NO_MATCH : this.rankAt(slot);
    const rank = after === undefined ? NO_MATCH : this.#matcher(after);
    if (rankBefore === NO_MATCH && rank === NO_MATCH) return;
    this.version = ++lastVersion;
    if (rankBefore !== NO_MATCH) this.#count(before as Entry, rankBefore, -1);
    if (rank !== NO_MATCH) this.#count(after as Entry, rank, 1);
    this.#setRank(slot, rank);
    const isSameCount =
      rank !== NO_MATCH && rankBefore !== NO_MATCH && before?.listing.category === after?.listing.category;
    if (!isSameCount) {
      this.countsVersion = ++lastVersion;
      this.#categories = null;
    }
  }

  /** Of the entry in this slot: its rank, or NO_MATCH. */
  rankAt(slot: number): number {
    return this.#ranks[slot] ?? NO_MATCH;
  }

  /** All ranks as they are now: 100 KB at 100 000 listings. */
  copyRanks(): Ranks {
    return this.#ranks.slice();
  }

  /** The ranks that occur, from the best. */
  ranksThatOccur(): number[] {
    return this.#totals.flatMap((total, rank) => (total > 0 ? [rank] : []));
  }

  /** The slots of all matches. */
  slots(): number[] {
    const slots: number[] = [];
    const ranks = this.#ranks;
    for (let slot = 0; slot < ranks.length; slot++) if (ranks[slot] !== NO_MATCH) slots.push(slot);
    return slots;
  }

  /** The largest first. */
  categories(): readonly CategoryCount[] {
    this.#categories ??= [...this.#counts]
      .map(([category, services]) => ({ category, services }))
      .sort((a, b) => b.services - a.services || (a.category < b.category ? -1 : 1));
    return this.#categories;
  }

  /** The same text only for the same matches: what is shown of them, not when they changed or how they are sorted. */
  digest(): string {
    return this.#digest.join('.');
  }

  #count(entry: Entry, rank: number, by: 1 | -1): void {
    const { category } = entry.listing;
    const count = (this.#counts.get(category) ?? 0) + by;
    if (count === 0) this.#counts.delete(category);
    else this.#counts.set(category, count);
    this.total += by;
    this.#totals[rank] = (this.#totals[rank] as number) + by;
    addDigest(this.#digest, entry.digest, by);
  }

  #setRank(slot: number, rank: number): void {
    if (slot >= this.#ranks.length) {
      const longer = new Uint8Array(Math.max(this.#ranks.length * 2, slot + 1)).fill(NO_MATCH);
      longer.set(this.#ranks);
      this.#ranks = longer;
    }
    this.#ranks[slot] = rank;
  }
}

function addDigest(sum: [number, number, number], digest: Digest, by: 1 | -1): void {
  for (const i of [0, 1, 2] as const) sum[i] = (sum[i] + by * digest[i]) | 0;
}
