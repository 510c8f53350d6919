import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Catalog } from '../../src/catalog/catalog.ts';
import { Discovery } from '../../src/catalog/discovery/discovery.ts';
import { OperationsReader } from '../../src/catalog/operations/operations-reader.ts';
import { ApiError } from '../../src/errors.ts';
import type { Route } from '../../src/http/route.ts';
import type { KeyRecord } from '../../src/keys/caller.ts';
import { Keys } from '../../src/keys/keys.ts';
import { StatsReader } from '../../src/quality/stats-reader.ts';
import { creditsRoutes } from '../../src/routes/admin/credits.ts';
import { debitsRoutes } from '../../src/routes/admin/debits.ts';
import { payoutsRoutes } from '../../src/routes/admin/payouts.ts';
import { discoverRoutes } from '../../src/routes/discover.ts';
import { earningsRoutes } from '../../src/routes/earnings.ts';
import { keysRoutes } from '../../src/routes/keys.ts';
import { servicesRoutes } from '../../src/routes/services.ts';
import { statementRoutes } from '../../src/routes/statement.ts';
import { usageRoutes } from '../../src/routes/usage.ts';
import { Sealer } from '../../src/secrets/sealer.ts';
import { ServiceSecrets } from '../../src/secrets/service-secrets.ts';
import { AddressPolicy } from '../../src/upstream/index.ts';
import { addAccount } from '../support/accounts.ts';
import { anyText } from '../support/any-text.ts';
import { ask, NO_NOTICE, NO_WATCH, refusalOf } from '../support/listings.ts';
import { unfenced } from '../support/unfenced.ts';
import { sql, useDatabase } from '../support/use-database.ts';

const log = { warn: () => {}, error: () => {} };
let catalog: Catalog;
let routes: Route[];
let by: KeyRecord;
const nothingIsMoved = () => Promise.reject(new Error('nothing is moved'));

useDatabase();
beforeAll(async () => {
  catalog = new Catalog({ sql, log });
  await catalog.start();
  // These tests only read: no key is changed.
  const keys = new Keys({
    sql,
    state: { put: () => Promise.reject(new Error('no key is changed')) },
    maxRateLimit: 300,
    cache: { invalidate: () => {} },
  });
  const operations = new OperationsReader(sql);
  const secrets = new ServiceSecrets(new Sealer([]));
  routes = [
    ...usageRoutes({ sql }),
    ...statementRoutes({ sql, wallets: { read: async () => ({ balanceMicros: 0, heldMicros: 0 }) } }),
    ...creditsRoutes({ sql, money: unfenced(sql), keys, applier: { apply: nothingIsMoved }, log: { warn: () => {} } }),
    ...debitsRoutes({ sql, money: unfenced(sql), carrier: { carryOut: nothingIsMoved }, log: { warn: () => {} } }),
    ...payoutsRoutes({ sql, money: unfenced(sql) }),
    ...earningsRoutes({ sql, feeBasisPoints: 1_000 }),
    ...discoverRoutes({
      catalog,
      discovery: new Discovery(catalog, log),
      operations,
      stats: new StatsReader(sql),
      readFreeLeft: async () => null,
      trustedProxyHops: 0,
    }),
    ...servicesRoutes({
      catalog,
      sql,
      operations,
      secrets,
      maxListings: 1_000,
      addresses: new AddressPolicy([]),
      notice: NO_NOTICE,
      watch: NO_WATCH,
    }),
    ...keysRoutes({
      keys,
      readActivity: () => Promise.reject(new Error('no activity is asked for')),
      adminBootstrapToken: null,
      maxAccountsPerAddress: 0,
      maxRateLimit: 300,
    }),
  ];
  by = await addAccount(sql, 'admin');
});
afterAll(async () => {
  await catalog.stop();
});

const get = (path: string, query: Record<string, string>, headers = {}) =>
  ask(routes, `GET ${path}?${new URLSearchParams(query)}`, { by, headers });

/** @returns 200 or 400. Rethrows any other error, which a caller would get as a 500. */
async function statusOf(path: string, query: Record<string, string>, headers = {}): Promise<number> {
  try {
    return (await get(path, query, headers)).status;
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'invalid_request') throw error;
    expect(error.message).toMatch(new RegExp(`^(${Object.keys(query).join('|')}):`));
    return 400;
  }
}

const two = (n: number): string => String(n).padStart(2, '0');
/** Mostly a number between the two, sometimes one of the two, which are just out of range. */
const field = (min: number, max: number) =>
  fc.oneof(
    { weight: 9, arbitrary: fc.integer({ min: min + 1, max: max - 1 }) },
    { weight: 1, arbitrary: fc.constantFrom(min, max) },
  );
const day = fc
  .tuple(fc.oneof(field(0, 9999), fc.constantFrom(0, 1, 9999)), field(0, 13), field(0, 32))
  .map(([y, m, d]) => `${String(y).padStart(4, '0')}-${two(m)}-${two(d)}`);
const dateTime = fc
  .tuple(
    day,
    fc.tuple(field(-1, 24), field(-1, 60), field(-1, 60)).map((parts) => parts.map((part) => Math.max(part, 0))),
    fc.constantFrom('', '.0', '.999', '.999999999'),
    fc.oneof(
      fc.constant('Z'),
      fc
        .tuple(fc.constantFrom('+', '-'), field(0, 24), field(0, 60))
        .map(([sign, h, m]) => `${sign}${two(h)}:${two(m)}`),
    ),
  )
  .map(([date, time, fraction, zone]) => `${date}T${time.map(two).join(':')}${fraction}${zone}`);

describe('a time that is invalid, or that Postgres cannot store,', () => {
  it.each([
    ['/usage/me', { from: '0000-01-01' }, 'from'],
    ['/usage/me', { from: '0001-01-01T00:00:00+00:01' }, 'from'],
    ['/usage/me', { to: '9999-12-31T23:59:59-14:00' }, 'to'],
    ['/usage/me', { to: '9999-12-31T24:00:00Z' }, 'to'],
    ['/usage/me', { to: '2016-12-31T23:59:60Z' }, 'to'],
    ['/earnings/me', { from: '0000-01-01' }, 'from'],
    ['/earnings/me', { to: '0000-12-31' }, 'to'],
    ['/earnings/me', { to: '9999-12-31T23:59:59-14:00' }, 'to'],
  ])('is refused, and the refusal names the parameter: %s %j', async (path, query, name) => {
    const refusal = await refusalOf(get(path, query));
    expect(refusal.code).toBe('invalid_request');
    expect(refusal.message).toMatch(new RegExp(`^${name}: must be `));
  });

  it.each([
    ['/usage/me', { from: '0001-01-01', to: '9999-12-31T23:59:59.999Z' }],
    ['/usage/me', { from: '0001-01-01T14:00:00+14:00', to: '9999-12-31T09:59:59-14:00' }],
    ['/usage/me', { from: '9999-12-31T23:30:00Z' }],
    ['/usage/me', { to: '0001-01-01T00:30:00Z' }],
    ['/statement/me', { from: '9999-12-31T23:30:00Z' }],
    ['/statement/me', { to: '0001-01-01T00:30:00Z' }],
    ['/earnings/me', { from: '0001-01-01', to: '9999-12-31' }],
  ])('is distinguished from the first and last times that can be stored: %s %j', async (path, query) => {
    expect((await get(path, query)).status).toBe(200);
  });

  it('never makes a page fail: 1 000 random times, many of them unusual', async () => {
    const times = fc.oneof(day, dateTime, dateTime);
    const seen = { 200: 0, 400: 0 };
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom('/usage/me', '/earnings/me', '/statement/me', '/admin/debits'),
        fc.oneof(fc.record({ from: times }), fc.record({ to: times }), fc.record({ from: times, to: times })),
        fc.constantFrom('*/*', 'text/csv'),
        async (path, query, accept) => {
          seen[(await statusOf(path, query as Record<string, string>, { accept })) as 200 | 400]++;
        },
      ),
      { numRuns: 1_000 },
    );
    expect(Math.min(seen[200], seen[400])).toBeGreaterThan(50);
  });
});

it('a cursor that no list issued never makes a page fail', async () => {
  const hex = (digits: number) => fc.stringMatching(new RegExp(`^[0-9a-f]{${digits}}$`));
  const uuid = fc.oneof(
    fc.constantFrom('ffffffff-ffff-7fff-bfff-ffffffffffff', '00000000-0000-0000-0000-000000000000'),
    fc.tuple(hex(8), hex(4), hex(4), hex(4), hex(12)).map((parts) => parts.join('-')),
  );
  const place = fc
    .tuple(fc.constantFrom('quality', 'price', 'name', 'newest'), fc.jsonValue(), fc.oneof(uuid, fc.string()))
    .map((parts) => Buffer.from(JSON.stringify(parts)).toString('base64url'));
  const time = fc
    .tuple(fc.oneof(fc.maxSafeNat(), fc.constant(Number.MAX_SAFE_INTEGER)), fc.oneof(uuid, hex(16), fc.maxSafeNat()))
    .map((parts) => parts.join('-'));
  const keyId = fc.stringMatching(/^acf_[0-9A-Za-z]{1,40}$/);
  const cursors = fc.oneof(uuid, place, time, keyId, anyText(), fc.constant('\0'));
  const lists = fc.constantFrom<[path: string, query: Record<string, string>]>(
    ['/usage/me', {}],
    ['/keys', {}],
    ['/services', { mine: 'true' }],
    ['/statement/me', { ledger: 'wallet' }],
    ['/statement/me', { ledger: 'earnings' }],
    ...['credits', 'debits', 'payouts'].map((kind): [string, Record<string, string>] => [`/admin/${kind}`, {}]),
    ...['quality', 'price', 'name', 'newest'].map((sort): [string, Record<string, string>] => ['/discover', { sort }]),
  );
  await fc.assert(
    fc.asyncProperty(lists, cursors, async ([path, query], cursor) => {
      expect([200, 400]).toContain(await statusOf(path, { ...query, cursor }));
    }),
    { numRuns: 500 },
  );
});

it('a reference with characters that no reference can have is refused, and the refusal names it', async () => {
  for (const kind of ['credits', 'debits', 'payouts']) {
    expect(await statusOf(`/admin/${kind}`, { reference: 'a\0b' })).toBe(400);
    expect(await statusOf(`/admin/${kind}`, { reference: 'invoice 4711' })).toBe(200);
  }
});

it('an id that is invalid or names nothing is answered with 404, never with 500', async () => {
  for (const id of ['ffffffff-ffff-7fff-bfff-ffffffffffff', '00000000-0000-0000-0000-000000000000', '%00', 'x']) {
    expect((await refusalOf(ask(routes, `GET /usage/${id}`, { by }))).code).toBe('not_found');
    expect((await refusalOf(ask(routes, `GET /services/${id}`, { by }))).code).toBe('service_not_found');
  }
});
