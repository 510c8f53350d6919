import { randomBytes } from 'node:crypto';
import { beforeEach, expect, it } from 'vitest';
import type { Listing } from '../../src/catalog/listing.ts';
import { storedPairs, storedSigningKeys } from '../../src/catalog/listing-secrets.ts';
import { insertListing, removeListing, selectListing, updateListing } from '../../src/catalog/sql.ts';
import { uuidv7 } from '../../src/platform/ids.ts';
import { Resealer } from '../../src/secrets/resealer.ts';
import { Sealer } from '../../src/secrets/sealer.ts';
import { OVERLAP_MS, ServiceSecrets } from '../../src/secrets/service-secrets.ts';
import { addAccount } from '../support/accounts.ts';
import { LISTING_FIELDS } from '../support/listings.ts';
import { sql, useDatabase } from '../support/use-database.ts';
import { writingAfter } from '../support/writing-after.ts';

useDatabase();

const [OLD, NEW] = [randomBytes(32), randomBytes(32)] as const;
const withKeys = (...keys: Buffer[]): ServiceSecrets => new ServiceSecrets(new Sealer(keys));
const lines: string[] = [];
const note = (fields: object, message: string): void => void lines.push(JSON.stringify({ ...fields, message }));
const log = { info: note, warn: note, error: note };
const resealer = (secrets: ServiceSecrets): Resealer => new Resealer({ sql, secrets, log });

let providerId: string;
beforeEach(async () => {
  lines.length = 0;
  await sql`UPDATE services SET upstream_headers = NULL, upstream_query = NULL, signing_keys = NULL`;
  providerId = (await addAccount(sql, 'provider')).accountId;
});

/** A listing with one header, one parameter, and a present and a previous signing key, sealed with the old key. */
async function listed(nowMs = Date.now()): Promise<Listing> {
  const secrets = withKeys(OLD);
  const id = uuidv7();
  const first = secrets.newSigningKey(id, null, nowMs).stored;
  return insertListing(sql, {
    ...LISTING_FIELDS,
    id,
    providerId,
    protocol: 'http',
    upstreamHeaders: secrets.seal('header', { id, endpoint: LISTING_FIELDS.endpoint }, [
      ['x-api-key', 'sk-provider-secret'],
    ]),
    upstreamQuery: secrets.seal('query', { id, endpoint: LISTING_FIELDS.endpoint }, [['key', 'sk-provider-query']]),
    signingKeys: secrets.newSigningKey(id, first, nowMs).stored,
  });
}
const read = async (id: string): Promise<Listing> => (await selectListing(sql, id)) as Listing;

it('secrets are encrypted with the first key, so that the old one can be retired', async () => {
  const before = await Promise.all(Array.from({ length: 25 }, () => listed()));
  const opened = withKeys(OLD).open(before[0] as Listing);
  const run = resealer(withKeys(NEW, OLD));
  expect(run.counts).toBeNull();
  await run.run();
  expect(run.counts).toEqual({ first: 100, other: 0, unreadable: 0 });
  expect(lines.join()).toContain('no secret of a listing needs a key');
  const after = await read(before[0]?.id as string);
  expect(withKeys(NEW).open(after)).toEqual(opened);
  expect(withKeys(OLD).open(after).unreadable).toHaveLength(4);
  // A second run finds nothing to do, and changes no listing.
  await run.run();
  expect((await read(after.id)).updatedAtMicros).toBe(after.updatedAtMicros);
});

it('a secret that no key decrypts stays unchanged, is counted and reported without its value, and works again with its key', async () => {
  const { id, upstreamHeaders, upstreamQuery, signingKeys } = await listed();
  for (const secrets of [withKeys(NEW), withKeys()]) {
    const run = resealer(secrets);
    await run.run();
    expect(run.counts).toEqual({ first: 0, other: 0, unreadable: 4 });
    expect(await read(id)).toMatchObject({ upstreamHeaders, upstreamQuery, signingKeys });
  }
  expect(lines.join()).toContain('cannot be decrypted');
  expect(lines.join()).not.toContain('sk-provider');
  const run = resealer(withKeys(NEW, OLD));
  await run.run();
  expect(run.counts).toEqual({ first: 4, other: 0, unreadable: 0 });
});

it('a secret that its provider changes during a run is not put back', async () => {
  const { id, endpoint } = await listed();
  const secrets = withKeys(NEW, OLD);
  const changed = withKeys(OLD).seal('header', { id, endpoint }, [['x-api-key', 'newer']]);
  // The change comes after the listing was read and before it is written.
  const change = (): Promise<unknown> => updateListing(sql, id, { upstreamHeaders: changed }, 'any');
  const run = new Resealer({ sql: writingAfter(sql, change), secrets, log });
  await run.run();
  expect(secrets.open(await read(id)).headers).toEqual([['x-api-key', 'newer']]);
  await resealer(secrets).run();
  expect(withKeys(NEW).open(await read(id)).headers).toEqual([['x-api-key', 'newer']]);
});

it('the previous signing secret is erased a day later, and all secrets are erased when the listing is removed', async () => {
  const { id } = await listed(Date.now() - OVERLAP_MS - 1);
  expect(storedSigningKeys((await read(id)).signingKeys)).toHaveLength(2);
  await resealer(withKeys(OLD)).run();
  const after = await read(id);
  expect(storedSigningKeys(after.signingKeys)).toHaveLength(1);
  expect(storedPairs(after.upstreamHeaders)).toHaveLength(1);
  await removeListing(sql, id, 'any');
  expect(await read(id)).toMatchObject({
    status: 'removed',
    upstreamHeaders: null,
    upstreamQuery: null,
    signingKeys: null,
  });
});
