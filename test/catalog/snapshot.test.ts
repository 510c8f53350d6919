import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Listing, ListingStatus } from '../../src/catalog/listing.ts';
import { Snapshot } from '../../src/catalog/snapshot.ts';
import { makeListing } from '../support/listings.ts';

const versionOf = (id: string, version: number, status: ListingStatus): Listing =>
  makeListing({ id, status, updatedAtMicros: version, name: `v${version}` });

describe('the snapshot', () => {
  it('ends with the newest reading of every row, in whatever order the readings arrive', () => {
    const histories = fc.array(fc.array(fc.constantFrom<ListingStatus>('active', 'paused'), { maxLength: 4 }), {
      minLength: 1,
      maxLength: 4,
    });
    const scenario = fc
      .tuple(histories, fc.array(fc.boolean(), { minLength: 4, maxLength: 4 }))
      .chain(([rows, ends]) => {
        const readings = rows.flatMap((statuses, row) =>
          [...statuses, ...(ends[row] === true ? (['removed'] as const) : [])].map((status, version) =>
            versionOf(`row${row}`, version + 1, status),
          ),
        );
        const again = fc.shuffledSubarray(readings);
        return fc.tuple(fc.constant(readings), fc.shuffledSubarray(readings, { minLength: readings.length }), again);
      });
    fc.assert(
      fc.property(scenario, ([inOrder, shuffled, again]) => {
        const snapshot = new Snapshot();
        for (const listing of [...shuffled, ...again]) snapshot.put(listing);
        const expected = new Map(inOrder.map((listing) => [listing.id, listing]));
        for (const [id, listing] of expected) {
          expect(snapshot.get(id)?.name).toBe(listing.status === 'removed' ? undefined : listing.name);
        }
      }),
    );
  });

  it('reports each change, and keeps the object when a reading brings nothing new', async () => {
    const told: string[] = [];
    const snapshot = new Snapshot((id) => told.push(id));
    const [listing, other] = [makeListing(), makeListing()];
    snapshot.put(listing);
    snapshot.put({ ...listing });
    expect(snapshot.get(listing.id)).toBe(listing);
    expect(told).toEqual([listing.id]);
    snapshot.put(other);
    snapshot.put({ ...listing, status: 'removed', updatedAtMicros: listing.updatedAtMicros + 1 });
    await snapshot.beginReading(null).finish();
    expect(told).toEqual([listing.id, other.id, listing.id, other.id]);
  });

  it('accepts a changed reading of the same version (a change by hand in the database)', () => {
    const snapshot = new Snapshot();
    const listing = makeListing();
    snapshot.put(listing);
    snapshot.put({ ...listing, priceMicros: 99 });
    expect(snapshot.get(listing.id)?.priceMicros).toBe(99);
  });

  it('restores a listing when a reading of the same version shows its account resumed, but never a removed listing', () => {
    const snapshot = new Snapshot();
    const listing = makeListing();
    const suspended = { ...listing, isSuspended: true };
    for (const reading of [listing, suspended, listing, suspended]) {
      snapshot.put(reading);
      expect(snapshot.get(listing.id)?.id).toBe(reading.isSuspended ? undefined : listing.id);
    }
    snapshot.put({ ...listing, updatedAtMicros: listing.updatedAtMicros - 1 });
    expect(snapshot.get(listing.id)).toBeUndefined();
    snapshot.put({ ...suspended, status: 'removed' });
    snapshot.put(listing);
    expect(snapshot.get(listing.id)).toBeUndefined();
  });

  it('drops listings that no page contained after a full reading', async () => {
    const snapshot = new Snapshot();
    const [gone, stays] = [makeListing(), makeListing()];
    snapshot.put(gone);
    snapshot.put(stays);
    const reading = snapshot.beginReading(null);
    await reading.page([stays]);
    expect(snapshot.get(gone.id)).toBe(gone);
    await reading.finish();
    expect([...snapshot.values()]).toEqual([stays]);
  });

  it('keeps a listing that was put during a full reading, even if no page contained it', async () => {
    const snapshot = new Snapshot();
    const reading = snapshot.beginReading(null);
    const added = makeListing();
    snapshot.put(added);
    await reading.finish();
    expect(snapshot.get(added.id)).toBe(added);
  });

  it('does not let a page of a full reading restore a listing that was removed after the page was read', async () => {
    const snapshot = new Snapshot();
    const listing = makeListing();
    snapshot.put(listing);
    const reading = snapshot.beginReading(null);
    snapshot.put({ ...listing, status: 'removed', updatedAtMicros: listing.updatedAtMicros + 1 });
    await reading.page([listing]);
    await reading.finish();
    expect(snapshot.get(listing.id)).toBeUndefined();
  });

  it('drops only listings of the buckets that were read when some buckets are read', async () => {
    const snapshot = new Snapshot();
    const ids = ['00', '00', '01', 'ff'].map((end, i) => `0000000${i}-0000-7000-8000-0000000000${end}`);
    const [kept, gone, otherBucket, third] = ids.map((id) => makeListing({ id })) as [
      Listing,
      Listing,
      Listing,
      Listing,
    ];
    for (const listing of [kept, gone, otherBucket, third]) snapshot.put(listing);
    const reading = snapshot.beginReading([0, 255]);
    await reading.page([kept]);
    await reading.finish();
    expect([...snapshot.values()]).toEqual([kept, otherBucket]);
  });

  it('finds the buckets that differ from sums made in another order, after any changes', () => {
    const listings = fc.uniqueArray(
      fc.record({ id: fc.uuid({ version: 7 }), rowHash: fc.maxSafeNat().map((n) => n % 2 ** 40) }),
      {
        selector: ({ id }) => id,
        minLength: 1,
        maxLength: 40,
      },
    );
    fc.assert(
      fc.property(listings, listings, fc.nat(), (some, passing, which) => {
        const snapshot = new Snapshot();
        const made = some.map((fields) => makeListing(fields));
        for (const fields of passing) snapshot.put(makeListing(fields));
        for (const listing of made) snapshot.put({ ...listing, rowHash: 7, updatedAtMicros: 1 });
        for (const listing of made) snapshot.put(listing);
        for (const { id } of passing) {
          const mine = made.find((listing) => listing.id === id);
          if (mine === undefined) snapshot.put(makeListing({ id, status: 'removed' }));
        }
        const sums = new Map<number, number>();
        const bucketOf = (id: string) => Number(`0x${id.slice(-2)}`);
        for (const { id, rowHash } of made.toReversed()) {
          sums.set(bucketOf(id), ((sums.get(bucketOf(id)) ?? 0) + rowHash) % 2 ** 48);
        }
        expect(snapshot.differing(sums)).toEqual([]);
        const { id, rowHash } = made[which % made.length] as Listing;
        snapshot.put(makeListing({ id, rowHash: rowHash + 1, updatedAtMicros: 2e15 }));
        expect(snapshot.differing(sums)).toEqual([bucketOf(id)]);
        expect(snapshot.differing(new Map([...sums, [300, 1]]))).toEqual([bucketOf(id), 300]);
      }),
    );
  });
});
