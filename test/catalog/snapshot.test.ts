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

  it('keeps the object, and its version, when a reading brings nothing new', () => {
    const snapshot = new Snapshot();
    const listing = makeListing();
    snapshot.put(listing);
    const { version } = snapshot;
    snapshot.put({ ...listing });
    expect(snapshot.get(listing.id)).toBe(listing);
    expect(snapshot.version).toBe(version);
  });

  it('takes a changed reading of the same version (a changed quality, or a change by hand in the database)', () => {
    const snapshot = new Snapshot();
    const listing = makeListing();
    snapshot.put(listing);
    snapshot.put({ ...listing, quality: 99 });
    expect(snapshot.get(listing.id)?.quality).toBe(99);
  });

  it('has a listing again when a reading of the same version finds its account resumed, but never a removed listing', () => {
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

  it('drops after a full reading the listings that no page had', () => {
    const snapshot = new Snapshot();
    const [gone, stays] = [makeListing(), makeListing()];
    snapshot.put(gone);
    snapshot.put(stays);
    const reading = snapshot.beginFullReading();
    reading.page([stays]);
    expect(snapshot.get(gone.id)).toBe(gone);
    reading.finish();
    expect([...snapshot.values()]).toEqual([stays]);
  });

  it('keeps a listing that was put during a full reading, though no page had it', () => {
    const snapshot = new Snapshot();
    const reading = snapshot.beginFullReading();
    const added = makeListing();
    snapshot.put(added);
    reading.finish();
    expect(snapshot.get(added.id)).toBe(added);
  });

  it('does not let a page of a full reading bring back a listing that was removed after the page was read', () => {
    const snapshot = new Snapshot();
    const listing = makeListing();
    snapshot.put(listing);
    const reading = snapshot.beginFullReading();
    snapshot.put({ ...listing, status: 'removed', updatedAtMicros: listing.updatedAtMicros + 1 });
    reading.page([listing]);
    reading.finish();
    expect(snapshot.get(listing.id)).toBeUndefined();
  });

  it('has a new version when a listing was dropped', () => {
    const snapshot = new Snapshot();
    snapshot.put(makeListing());
    const { version } = snapshot;
    snapshot.beginFullReading().finish();
    expect(snapshot.version).toBeGreaterThan(version);
  });
});
