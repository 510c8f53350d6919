import { beforeEach, expect, it } from 'vitest';
import { Authenticator } from '../../src/keys/authenticator.ts';
import type { KeyRecord } from '../../src/keys/caller.ts';
import { digestOf, newKeyId, newSecret } from '../../src/keys/credentials.ts';
import { KeyCache } from '../../src/keys/key-cache.ts';

const keyId = newKeyId();
const [before, after] = [newSecret(), newSecret()];
const header = (secret: string): string => `Bearer ${keyId}:${secret}`;
const always = (): boolean => true;

const record: KeyRecord = {
  keyId,
  accountId: 'account',
  ownerId: 'owner',
  role: 'buyer',
  ancestors: [],
  maxPriceMicros: null,
  services: null,
  expiresAtMs: null,
  secretDigest: digestOf(before),
  previousSecretDigest: null,
  previousExpiresAtMs: 0,
  bearers: null,
  rateLimit: 60,
  status: 'active',
  accountStatus: 'active',
  suspensionReason: null,
  buyer: null,
  lastRefill: 0,
  emptyUntilMs: 0,
};
/** Another gateway rotates the key, and its message has not arrived yet. */
const rotated = { ...record, secretDigest: digestOf(after), previousSecretDigest: record.secretDigest };

let inPostgres: KeyRecord | 'away';
let reads: number;
let authenticator: Authenticator;
let cache: KeyCache;

beforeEach(async () => {
  inPostgres = record;
  cache = new KeyCache({
    fetchKeys: async () => {
      reads++;
      if (inPostgres === 'away') throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
      return [inPostgres];
    },
  });
  authenticator = new Authenticator(cache, () => 0);
  await cache.load(keyId);
  reads = 0;
});

it('a secret that is newer than the cached record of its key is accepted', async () => {
  inPostgres = { ...rotated, previousExpiresAtMs: 1_000 };
  expect(await authenticator.identify(header(after), always)).toMatchObject({ keyId });
  // From now on the cache has both secrets.
  for (const secret of [after, before]) expect(authenticator.identify(header(secret), always)).toMatchObject({ keyId });
  expect(reads).toBe(1);
});

it('a wrong secret of a known key is refused; many at once cost one look-up, or none when no look-ups are left', async () => {
  const wrong = Array.from({ length: 10 }, () => authenticator.identify(header(newSecret()), always));
  expect(await Promise.all(wrong)).toEqual(Array(10).fill(null));
  expect(reads).toBe(1);
  expect(authenticator.identify(header(newSecret()), () => false)).toBeNull();
  const misspelt = `${after.slice(0, -1)}${after.endsWith('0') ? '1' : '0'}`;
  expect(authenticator.identify(header(misspelt), always)).toBeNull();
  expect(reads).toBe(1);
});

it('an unknown secret is reported as unavailable rather than wrong while Postgres is away, and the right one is accepted', async () => {
  inPostgres = 'away';
  await expect(authenticator.identify(header(after), always)).rejects.toMatchObject({ code: 'unavailable' });
  expect(authenticator.identify(header(before), always)).toMatchObject({ keyId });
});

it('no secret of a revoked key is looked up', async () => {
  inPostgres = { ...record, status: 'revoked' };
  cache.invalidate(keyId);
  await cache.load(keyId);
  reads = 0;
  for (const secret of [before, after]) expect(authenticator.identify(header(secret), always)).toBeNull();
  expect(reads).toBe(0);
});

it('a bearer that was issued a moment ago is accepted after one query to Postgres', async () => {
  const bearer = newSecret();
  inPostgres = { ...record, bearers: [{ digest: digestOf(bearer), expiresAtMs: 1_000 }] };
  expect(await authenticator.identify(header(bearer), always)).toMatchObject({ keyId });
  expect(authenticator.identify(header(bearer), always)).toMatchObject({ keyId });
  expect(authenticator.identify(header(before), always)).toMatchObject({ keyId });
  expect(reads).toBe(1);
});

it('a key that is used without its secret counts as active only until it is revoked', async () => {
  expect(await authenticator.active(keyId)).toMatchObject({ keyId });
  inPostgres = { ...record, status: 'revoked' };
  cache.invalidate(keyId);
  expect(await authenticator.active(keyId)).toBeNull();
});
