import { stepEnd, turns } from '../platform/turns.ts';
import { Buckets } from './buckets.ts';
import type { Listing } from './listing.ts';
import { isSameNext } from './notice/terms.ts';
import { ProviderIndex } from './providers/provider-index.ts';

/**
 * Maximum number of removals in each of two generations. Beyond it a new generation begins, and the older of the two is forgotten.
 */
const MAX_REMOVALS = 10_000;

/**
 * All listings by id, except removed ones and those of suspended accounts. Readings of a row may arrive late and out of order (a
 * change made by this gateway overtakes a reply of the database). The newest reading wins, in whatever order they arrive.
 *
 *     put(v1)  put(v3)  put(v2) ─► v2 is ignored
 *     put(removed v4)   put(v3) ─► v3 is ignored: a removal is remembered for one to two full readings
 */
export class Snapshot {
  readonly #listings = new Map<string, Listing>();
  /** Id → version of its removal. `#removals`: since the last full reading; `#olderRemovals`: between the last two. */
  #removals = new Map<string, number>();
  #olderRemovals = new Map<string, number>();
  readonly #buckets = new Buckets();
  readonly #providers = new ProviderIndex();
  readonly #onChange: (id: string) => void;
  /**
   * Ids put since the current reading began, from its pages or from messages. `finish` must keep a listing that was added during
   * the reading, because the reading may already have passed its position.
   */
  #touched: Set<string> | null = null;

  /** @param onChange called with the id of each listing that is added, replaced or dropped */
  constructor(onChange: (id: string) => void = () => {}) {
    this.#onChange = onChange;
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

  /** Applies one reading of a row, with any status. Ignores it if a newer reading of the row is known. */
  put(listing: Listing): void {
    const { id, updatedAtMicros } = listing;
    this.#touched?.add(id);
    const known = this.#listings.get(id);
    if (known !== undefined && known.updatedAtMicros > updatedAtMicros) return;
    const removal = this.#removals.get(id) ?? this.#olderRemovals.get(id);
    if (removal !== undefined && removal >= updatedAtMicros) return;
    const isRemoved = listing.status === 'removed';
    if (isRemoved || listing.isSuspended) {
      // A removal is final. A listing of a suspended account is absent only until a reading says that the account is resumed. That
      // reading may have the same version (hence − 1), because resuming an account by hand in the database does not change its
      // listings.
      this.#remember(id, isRemoved ? updatedAtMicros : updatedAtMicros - 1);
      this.#drop(id);
    } else if (known === undefined || !isSame(known, listing)) {
      // An equal reading keeps the old object, so that caches by that object stay valid.
      if (known !== undefined) {
        this.#buckets.remove(known);
        this.#providers.remove(known);
      }
      this.#listings.set(id, listing);
      this.#buckets.add(listing);
      this.#providers.add(listing);
      this.#onChange(id);
    }
  }

  #drop(id: string): void {
    const listing = this.#listings.get(id);
    if (listing === undefined) return;
    this.#listings.delete(id);
    this.#buckets.remove(listing);
    this.#providers.remove(listing);
    this.#onChange(id);
  }

  /** The ids of a provider's active listings. */
  activeOf(providerId: string): readonly string[] {
    return this.#providers.idsOf(providerId);
  }

  /** The buckets that differ between Postgres and the snapshot. @param sums the result of `selectBucketSums` */
  differing(sums: ReadonlyMap<number, number>): number[] {
    return this.#buckets.differing(sums);
  }

  /**
   * Reads all listings, or those in some buckets, in several pages; only one reading may be under way. `page` applies the listings
   * of a page. `finish` drops all listings of the buckets that were not put since the reading began, by a page or otherwise.
   * Without `finish` nothing is dropped. Both work in steps of a millisecond.
   *
   * @param buckets  null: all
   */
  beginReading(buckets: readonly number[] | null): {
    page(listings: readonly Listing[]): Promise<void>;
    finish(): Promise<void>;
  } {
    const touched = new Set<string>();
    this.#touched = touched;
    return {
      page: (listings) => inSteps(listings, (listing) => this.put(listing)),
      finish: async () => {
        for (const bucket of buckets ?? this.#buckets.names()) {
          await inSteps(this.#buckets.idsOf(bucket), (id) => {
            if (!touched.has(id)) this.#drop(id);
          });
        }
        this.#touched = null;
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
    if (field !== 'next' && a[field] !== b[field]) return false;
  }
  return isSameNext(a.next, b.next);
}

/** At least one turn of the event loop passes before the first step. */
async function inSteps<T>(items: readonly T[], work: (item: T) => void): Promise<void> {
  for (let i = 0; i < items.length; ) {
    await turns.nextAhead();
    for (const isOver = stepEnd(); i < items.length && !isOver(); ) work(items[i++] as T);
  }
}
