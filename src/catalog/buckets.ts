import type { Listing } from './listing.ts';

/**
 * A listing's bucket: the last byte of its id, which is random. So there are 256 buckets, of about 400 listings each if there are
 * 100 000.
 */
const bucketOf = (id: string): number => Number.parseInt(id.slice(-2), 16);

/** Sums are kept below this, so that they are exact in a JavaScript number after one more summand. */
const MODULUS = 2 ** 48;

/**
 * The listings by bucket, each bucket with the sum of its listings' row hashes. Postgres computes the same sums from its rows
 * (`selectBucketSums`), so a comparison tells which buckets differ between memory and Postgres, whatever the cause.
 */
export class Buckets {
  readonly #buckets = new Map<number, { readonly ids: Set<string>; sum: number }>();

  add({ id, rowHash }: Listing): void {
    let bucket = this.#buckets.get(bucketOf(id));
    if (bucket === undefined) {
      bucket = { ids: new Set(), sum: 0 };
      this.#buckets.set(bucketOf(id), bucket);
    }
    bucket.ids.add(id);
    bucket.sum = (bucket.sum + rowHash) % MODULUS;
  }

  remove({ id, rowHash }: Listing): void {
    const name = bucketOf(id);
    const bucket = this.#buckets.get(name);
    if (bucket === undefined || !bucket.ids.delete(id)) return;
    bucket.sum = (bucket.sum - rowHash + MODULUS) % MODULUS;
    if (bucket.ids.size === 0) this.#buckets.delete(name);
  }

  /** The ids of a bucket at this moment. */
  idsOf(name: number): string[] {
    return [...(this.#buckets.get(name)?.ids ?? [])];
  }

  names(): number[] {
    return [...this.#buckets.keys()];
  }

  /** The buckets that differ, sorted. @param sums  by bucket; absent if a bucket is empty */
  differing(sums: ReadonlyMap<number, number>): number[] {
    const names = new Set([...this.#buckets.keys(), ...sums.keys()]);
    return [...names].filter((name) => this.#buckets.get(name)?.sum !== sums.get(name)).sort((a, b) => a - b);
  }
}
