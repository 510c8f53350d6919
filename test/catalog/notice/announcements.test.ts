import { afterEach, describe, expect, it } from 'vitest';
import type { Listing } from '../../../src/catalog/listing.ts';
import { Announcements } from '../../../src/catalog/notice/announcements.ts';
import { makeListing } from '../../support/listings.ts';
import { until } from '../../support/wait.ts';

/** A process whose clock says something else than that of Postgres. */
let nowMs = 5_000;
const begun: Listing[] = [];
let announcements = new Announcements(
  (listing) => begun.push(listing),
  () => nowMs,
);
afterEach(() => {
  announcements.stop();
  begun.length = 0;
  nowMs = 5_000;
  announcements = new Announcements(
    (listing) => begun.push(listing),
    () => nowMs,
  );
});

const DAY = Date.UTC(2026, 0, 1);
const announcing = (fromMs: number, fields: Partial<Listing> = {}): Listing =>
  makeListing({
    ...fields,
    next: {
      priceMicros: 9_000,
      maxPriceMicros: null,
      freeCalls: 1,
      onlyOperations: false,
      operationTerms: null,
      fromMs,
    },
  });

describe('announced terms', () => {
  it('apply from their time on, by the clock of Postgres, to the first call that asks', () => {
    announcements.setTime(DAY);
    const listing = announcements.watched(announcing(DAY + 1_000));
    nowMs += 999;
    expect(announcements.current(listing)).toBe(listing);
    nowMs += 1;
    const after = announcements.current(listing);
    expect(after).toMatchObject({ priceMicros: 9_000, freeCalls: 1, next: null, termsFromMs: DAY + 1_000 });
    // The catalog has the same object: terms that are made for it are made once.
    expect(begun).toEqual([after]);
    expect(begun[0]).toBe(after);
  });

  it('apply to what is shown even if nobody asks, in order of their times', async () => {
    announcements.setTime(DAY);
    const later = announcements.watched(announcing(DAY + 60_000));
    const sooner = announcements.watched(announcing(DAY + 30));
    nowMs += 30;
    await until(() => begun.length === 1);
    expect(begun[0]?.id).toBe(sooner.id);
    // A new answer of Postgres says that its clock is further on than was thought.
    announcements.setTime(DAY + 60_000);
    expect(begun.map(({ id }) => id)).toEqual([sooner.id, later.id]);
  });

  it('do not apply if they have been replaced, in whatever order the readings arrive', () => {
    announcements.setTime(DAY);
    const replaced = announcing(DAY + 10);
    announcements.watched(replaced);
    announcements.watched({
      ...announcing(DAY + 90, { id: replaced.id }),
      updatedAtMicros: replaced.updatedAtMicros + 1,
    });
    announcements.watched(replaced);
    announcements.setTime(DAY + 20);
    expect(begun).toEqual([]);
    announcements.setTime(DAY + 90);
    expect(begun.map(({ id }) => id)).toEqual([replaced.id]);
  });

  it('apply at once if their time has passed when they are read', () => {
    announcements.setTime(DAY);
    expect(announcements.watched(announcing(DAY - 1))).toMatchObject({ priceMicros: 9_000, next: null });
    expect(begun).toEqual([]);
  });
});
