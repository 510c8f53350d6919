import { unavailableError } from '../../errors.ts';
import { stepEnd, turns } from '../../platform/turns.ts';
import { type Beside, isUnchanged } from '../beside.ts';
import { cheapestCall } from '../cheapest-call.ts';
import type { Listing } from '../listing.ts';
import type { Listed } from '../present.ts';
import { digestOf, type Entry, sortedName } from './entry.ts';
import { type Filter, keyOfFilter, MATCHES_ALL, matcherOf } from './filter.ts';
import { Matches } from './matches.ts';
import { Order } from './order.ts';
import { Signatures } from './signatures.ts';
import { SORTS, type Sort } from './sorts.ts';
import { type SearchedText, searchedText } from './words.ts';

/** The source from which the index reads changes. */
export type IndexSource = {
  get(id: string): Listing | undefined;
  besideOf(listing: Listing): Beside;
};

/** Maximum characters of folded texts that are kept (one or two bytes each). Further texts are folded anew for each search. */
const MAX_SEARCHED_CHARACTERS = 64_000_000;
/**
 * Maximum number of filters whose matches are kept: 17 MB at 100 000 listings. Beyond it the one used least recently is dropped. A
 * change costs each of them 0.05 to 1 µs.
 */
const MAX_KEPT_FILTERS = 128;
/**
 * Maximum number of filters that wait to be matched with every listing. They are matched one at a time, and a common word takes 30
 * ms at 100 000 listings. Beyond it a new filter gets 503.
 */
const MAX_WAITING_FILTERS = 64;
/** Up to this many changes are applied immediately, in less than 1 ms, so that the gateway that made a change shows it at once. */
const MAX_CHANGES_AT_ONCE = 16;

/**
 * All active listings: in the order of each sort, and by filter for recently used filters. Follows its source one listing at a
 * time, in steps of a millisecond, so neither a change nor a start delays calls.
 */
export class ListingIndex {
  readonly #source: IndexSource;
  readonly #slotOf = new Map<string, number>();
  readonly #slots: (Entry | undefined)[] = [];
  readonly #freeSlots: number[] = [];
  readonly #signatures = new Signatures();
  readonly #orders = new Map<Sort, Order>(SORTS.map((sort) => [sort, new Order(sort)]));
  readonly #everything = new Matches(MATCHES_ALL);
  /** By filter, least recently used first. */
  readonly #kept = new Map<string, Matches>();
  /** The filters that are being matched or wait to be. */
  readonly #filling = new Map<string, Promise<Matches>>();
  #lastFilling: Promise<unknown> = Promise.resolve();
  /** Ids of listings that changed since the index read them. */
  readonly #changed = new Set<string>();
  #catchingUp: Promise<void> | null = null;
  #searchedCharacters = 0;
  readonly #onFault: (error: unknown) => void;

  /** @param onFault called when a change could not be applied: the index is wrong from then on, and must be replaced */
  constructor(source: IndexSource, onFault: (error: unknown) => void) {
    this.#source = source;
    this.#onFault = onFault;
    this.#everything.fill([], stepEnd());
  }

  /** The listing, or its `beside`, has changed. The index reads it later, but before its next answer. */
  changed(id: string): void {
    this.#changed.add(id);
    if (this.#catchingUp !== null) return;
    this.#catchingUp = this.#catchUp();
    this.#catchingUp.catch(this.#onFault);
  }

  /** Resolves when all changes so far are in the index. Rejects if that failed. */
  async current(): Promise<void> {
    if (this.#changed.size <= MAX_CHANGES_AT_ONCE) for (const id of this.#changed) this.#take(id);
    else await this.#catchingUp;
  }

  order(sort: Sort): Order {
    return this.#orders.get(sort) as Order;
  }

  isEverything(filter: Filter): boolean {
    return keyOfFilter(filter) === EVERYTHING;
  }

  /** @param slot  of a match */
  at(slot: number): Entry {
    return this.#slots[slot] as Entry;
  }

  /** The current matches of a filter. They stay right until the next `await`. */
  async matches(filter: Filter): Promise<Matches> {
    const key = keyOfFilter(filter);
    if (key === EVERYTHING) return this.#everything;
    const filling = this.#filling.get(key);
    if (filling !== undefined) return filling;
    const kept = this.#kept.get(key);
    if (kept !== undefined) {
      this.#kept.delete(key);
      this.#kept.set(key, kept);
      return kept;
    }
    if (this.#filling.size >= MAX_WAITING_FILTERS) throw unavailableError();
    const fill = () => this.#fill(key, filter).finally(() => this.#filling.delete(key));
    const filled = this.#lastFilling.then(fill, fill);
    this.#lastFilling = filled;
    this.#filling.set(key, filled);
    return filled;
  }

  async #fill(key: string, filter: Filter): Promise<Matches> {
    const matches = new Matches(matcherOf(filter, this.#signatures));
    // From here on, changes reach it.
    this.#kept.set(key, matches);
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= MAX_KEPT_FILTERS) break;
      this.#kept.delete(oldest);
    }
    do await turns.next();
    while (!matches.fill(this.#slots, stepEnd()));
    return matches;
  }

  async #catchUp(): Promise<void> {
    await turns.nextAhead();
    let isOver = stepEnd();
    // One pass, which also reaches elements that are added meanwhile. A new pass would first go over what a Set still keeps of its
    // deleted elements.
    for (const id of this.#changed) {
      this.#take(id);
      if (isOver()) {
        await turns.nextAhead();
        isOver = stepEnd();
      }
    }
    this.#catchingUp = null;
  }

  #take(id: string): void {
    this.#changed.delete(id);
    const slot = this.#slotOf.get(id);
    const before = slot === undefined ? undefined : this.#slots[slot];
    const listing = this.#source.get(id);
    const isListed = listing !== undefined && listing.status === 'active';
    if (!isListed) {
      if (before !== undefined) this.#remove(before);
      return;
    }
    const beside = this.#source.besideOf(listing);
    if (before?.listing === listing && isUnchanged(before, beside)) return;
    const cheapest = before?.listing === listing ? before.cheapest : cheapestCall(listing);
    this.#put(before, this.#entryOf({ listing, cheapest, ...beside }, before));
  }

  #entryOf(listed: Listed, before: Entry | undefined): Entry {
    const { listing } = listed;
    const digest = digestOf(listed);
    const isSameText = before?.listing.name === listing.name && before.listing.description === listing.description;
    if (before !== undefined && isSameText) return { ...before, ...listed, digest };
    const slot = before?.slot ?? this.#freeSlots.pop() ?? this.#slots.length;
    if (before !== undefined) this.#forgetText(before);
    const searched = searchedText(listing.name, listing.description);
    return {
      ...listed,
      slot,
      digest,
      name: sortedName(listing.name),
      signature: this.#signatures.add(searched.text),
      searched: this.#keepText(searched),
    };
  }

  #put(before: Entry | undefined, after: Entry): void {
    const { slot } = after;
    this.#slotOf.set(after.listing.id, slot);
    this.#slots[slot] = after;
    for (const order of this.#orders.values()) {
      if (before === undefined) order.add(after);
      else order.replace(before, after);
    }
    this.#tellMatches(before, after);
  }

  #remove(entry: Entry): void {
    this.#slotOf.delete(entry.listing.id);
    this.#slots[entry.slot] = undefined;
    for (const order of this.#orders.values()) order.remove(entry);
    this.#tellMatches(entry, undefined);
    this.#forgetText(entry);
    this.#freeSlots.push(entry.slot);
  }

  #tellMatches(before: Entry | undefined, after: Entry | undefined): void {
    this.#everything.change(before, after);
    for (const matches of this.#kept.values()) matches.change(before, after);
  }

  #keepText(searched: SearchedText): SearchedText | null {
    if (this.#searchedCharacters + searched.text.length > MAX_SEARCHED_CHARACTERS) return null;
    this.#searchedCharacters += searched.text.length;
    return searched;
  }

  #forgetText({ signature, searched }: Entry): void {
    this.#signatures.remove(signature);
    this.#searchedCharacters -= searched?.text.length ?? 0;
  }
}

const EVERYTHING = keyOfFilter({ words: [] });
