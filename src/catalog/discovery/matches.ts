import type { Digest, Entry } from './entry.ts';
import type { Matcher } from './filter.ts';
import { MAX_RANK, NO_MATCH } from './words.ts';

type CategoryCount = { readonly category: string; readonly services: number };

let lastVersion = 0;

/** Maximum number of categories that an answer counts: anybody can name a new one, and each answer shows them. */
const MAX_CATEGORIES = 500;

/** The rank of the entry in each slot, at one moment. */
export type Ranks = Uint8Array;

/**
 * All entries that match one filter, by slot, with their counts. `fill` examines every slot once, in several steps; from its first
 * step on, `change` keeps the result right. A change costs about as much as matching one entry.
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
  /** Changes with every change of a match. No two versions are equal, even of different filters. */
  version = ++lastVersion;
  /** As `version`, but changes only with `total` or `categories`. */
  countsVersion = ++lastVersion;

  constructor(matcher: Matcher) {
    this.#matcher = matcher;
  }

  /** The next step. @returns whether all slots have been looked at */
  fill(slots: readonly (Entry | undefined)[], isOver: () => boolean): boolean {
    while (this.#filledTo < slots.length) {
      // Reading the clock for each entry would double the time. The worst text, all combining marks and folded anew, takes 0.5 ms.
      const end = Math.min(this.#filledTo + 4, slots.length);
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
    const rank = after === undefined ? NO_MATCH : this.#rankOf(before, after, rankBefore);
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

  /** The rank of the entry in this slot, or NO_MATCH. */
  rankAt(slot: number): number {
    return this.#ranks[slot] ?? NO_MATCH;
  }

  /** A copy of all ranks: 100 KB at 100 000 listings. */
  copyRanks(): Ranks {
    return this.#ranks.slice();
  }

  /** The ranks that occur, best first. */
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

  /** In descending order of size, at most MAX_CATEGORIES. */
  categories(): readonly CategoryCount[] {
    this.#categories ??= largest(this.#counts);
    return this.#categories;
  }

  /**
   * The same text only for the same matches: their shown fields, and their ranks, which decide the order. A word that nobody sees,
   * because the description is cut before it, can change a rank.
   */
  digest(): string {
    return this.#digest.join('.');
  }

  #rankOf(before: Entry | undefined, after: Entry, rankBefore: number): number {
    if (!this.#matcher.hasTerms(after)) return NO_MATCH;
    const isSameText = before !== undefined && before.signature === after.signature;
    return isSameText && rankBefore !== NO_MATCH ? rankBefore : this.#matcher.rankOf(after);
  }

  #count(entry: Entry, rank: number, by: 1 | -1): void {
    const { category } = entry.listing;
    const count = (this.#counts.get(category) ?? 0) + by;
    if (count === 0) this.#counts.delete(category);
    else this.#counts.set(category, count);
    this.total += by;
    this.#totals[rank] = (this.#totals[rank] as number) + by;
    addDigest(this.#digest, entry.digest, by * (2 * rank + 1));
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

const compareCounts = (a: CategoryCount, b: CategoryCount): number =>
  b.services - a.services || (a.category < b.category ? -1 : 1);

/** The first MAX_CATEGORIES in order. Sorts few at a time: sorting 50 000 categories would take 20 ms. */
function largest(counts: ReadonlyMap<string, number>): CategoryCount[] {
  const found: CategoryCount[] = [];
  let last: CategoryCount | null = null;
  for (const [category, services] of counts) {
    const count = { category, services };
    if (last !== null && compareCounts(count, last) > 0) continue;
    found.push(count);
    if (found.length < 2 * MAX_CATEGORIES) continue;
    found.sort(compareCounts).length = MAX_CATEGORIES;
    last = found[MAX_CATEGORIES - 1] as CategoryCount;
  }
  return found.sort(compareCounts).slice(0, MAX_CATEGORIES);
}

/** @param factor  odd, so that no two digests become equal */
function addDigest(sum: [number, number, number], digest: Digest, factor: number): void {
  for (const i of [0, 1, 2] as const) sum[i] = (sum[i] + Math.imul(digest[i], factor)) | 0;
}
