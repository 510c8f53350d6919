import type { Listing } from './listing.ts';

/** Removals remembered at most, per generation. */
const MAX_REMOVALS = 10_000;

/**
 * All listings that are neither removed nor offered by a suspended account, by id. Readings of a row may arrive late and out of
 * order (a reply of the database overtaken by a change made here); the newest reading wins, whatever the order.
 *
 *     put(v1)  put(v3)  put(v2) ─► v2 is ignored
 *     put(removed v4)   put(v3) ─► ignored too: a removal is remembered for one to two full readings
 */
export class Snapshot {
  readonly #listings = new Map<string, Listing>();
  /** Id → version of its removal, of the time since the last full reading and of the time before. */
  #removals = new Map<string, number>();
  #olderRemovals = new Map<string, number>();
  #version = 0;
  /** Ids put while a full reading is under way: it may have passed their place before they existed. */
  #touched: Set<string> | null = null;

  /** Grows whenever anything in here changed: the key of everything derived from the snapshot. */
  get version(): number {
    return this.#version;
  }

  get size(): number {
    return this.#listings.size;
  }

  get(id: string): Listing | undefined {
    return this.#listings.get(id);
  }

  values(): Iterable<Listing> {
    return this.#listings.values();
  }

  /** Takes a reading of a row, in any status, unless a newer one is known. */
  put(listing: Listing): void {
    const { id, updatedAtMicros } = listing;
    this.#touched?.add(id);
    const known = this.#listings.get(id);
    if (known !== undefined && known.updatedAtMicros > updatedAtMicros) return;
    const removal = this.#removals.get(id) ?? this.#olderRemovals.get(id);
    if (removal !== undefined && removal >= updatedAtMicros) return;
    const isRemoved = listing.status === 'removed';
    if (isRemoved || listing.isSuspended) {
      // A removal is for good. What a suspended account sells is gone until a reading says otherwise, also one of the same
      // version: a hand in the database resumes the account and leaves its listings as they are.
      this.#remember(id, isRemoved ? updatedAtMicros : updatedAtMicros - 1);
      if (this.#listings.delete(id)) this.#version++;
    } else if (known === undefined || !isSame(known, listing)) {
      // An equal reading keeps the old object: what was derived from it stays good.
      this.#listings.set(id, listing);
      this.#version++;
    }
  }

  /**
   * A full reading in several pages, one at a time: `page` takes what was read, `finish` drops what no page had.
   * Without `finish` nothing is dropped.
   */
  beginFullReading(): { page(listings: readonly Listing[]): void; finish(): void } {
    const touched = new Set<string>();
    this.#touched = touched;
    return {
      page: (listings) => {
        for (const listing of listings) this.put(listing);
      },
      finish: () => {
        this.#touched = null;
        for (const id of this.#listings.keys()) {
          if (touched.has(id)) continue;
          this.#listings.delete(id);
          this.#version++;
        }
        this.#turnGeneration();
      },
    };
  }

  #remember(id: string, version: number): void {
    if (this.#removals.size >= MAX_REMOVALS) this.#turnGeneration();
    this.#removals.set(id, version);
  }

  #turnGeneration(): void {
    this.#olderRemovals = this.#removals;
    this.#removals = new Map();
  }
}

function isSame(a: Listing, b: Listing): boolean {
  for (const field of Object.keys(a) as (keyof Listing)[]) {
    if (a[field] !== b[field]) return false;
  }
  return true;
}
