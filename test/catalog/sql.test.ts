import { beforeAll, describe, expect, it } from 'vitest';
import { insertListing, removeListing, selectBucketSums, selectListing, updateListing } from '../../src/catalog/sql.ts';
import { addAccount } from '../support/accounts.ts';
import { LISTING_FIELDS, within } from '../support/listings.ts';
import { sql, useDatabase } from '../support/use-database.ts';

let providerId: string;

useDatabase();
beforeAll(async () => {
  providerId = (await addAccount(sql, 'provider')).accountId;
});

const add = () => insertListing(sql, { ...LISTING_FIELDS, providerId });

describe('the version of a row', () => {
  it('grows with every change, even within one transaction', async () => {
    const { id, updatedAtMicros } = await add();
    const versions = await sql.begin(async (tx) => {
      const change = (priceMicros: number) => updateListing(within(tx), id, { priceMicros }, 'any');
      return [await change(1), await change(2), await removeListing(within(tx), id, 'any')];
    });
    const seen = [updatedAtMicros, ...versions.map((listing) => listing?.updatedAtMicros ?? 0)];
    expect(seen).toEqual([...new Set(seen)].sort((a, b) => a - b));
  });

  it('grows even after the clock was set back', async () => {
    const { id } = await add();
    await sql`UPDATE services SET updated_at = now() + interval '1 hour' WHERE id = ${id}`;
    const before = await selectListing(sql, id);
    const after = await updateListing(sql, id, { priceMicros: 1 }, 'any');
    expect(after?.updatedAtMicros).toBeGreaterThan(before?.updatedAtMicros ?? Number.POSITIVE_INFINITY);
  });

  it('orders concurrent changes in the order in which they were made', async () => {
    const { id } = await add();
    const prices = Array.from({ length: 30 }, (_, n) => n + 1);
    const changed = await Promise.all(prices.map((priceMicros) => updateListing(sql, id, { priceMicros }, 'any')));
    const newest = changed.reduce((a, b) => ((a?.updatedAtMicros ?? 0) > (b?.updatedAtMicros ?? 0) ? a : b));
    expect(newest).toEqual(await selectListing(sql, id));
  });
});

describe('a change', () => {
  it('outside its scope has no effect', async () => {
    const listing = await add();
    const { accountId: other } = await addAccount(sql, 'provider');
    expect(await updateListing(sql, listing.id, { priceMicros: 1 }, { providerId: other })).toBeNull();
    expect(await removeListing(sql, listing.id, { providerId: other })).toBeNull();
    expect(await selectListing(sql, listing.id)).toEqual(listing);
  });
});

it('the sums exclude the listings of closed or suspended accounts, as every catalog does', async () => {
  const { sums: before } = await selectBucketSums(sql);
  for (const status of ['closed', 'suspended']) {
    const { accountId } = await addAccount(sql, 'provider');
    await insertListing(sql, { ...LISTING_FIELDS, providerId: accountId });
    expect((await selectBucketSums(sql)).sums).not.toEqual(before);
    const closedAt = status === 'closed' ? new Date() : null;
    await sql`UPDATE accounts SET status = ${status}, closed_at = ${closedAt} WHERE id = ${accountId}`;
    expect((await selectBucketSums(sql)).sums).toEqual(before);
  }
});
