import { beforeEach, describe, expect, it } from 'vitest';
import { selectKeyActivity } from '../../src/accounts/usage-sums.ts';
import type { ApiError } from '../../src/errors.ts';
import type { Route } from '../../src/http/route.ts';
import type { KeyRecord } from '../../src/keys/caller.ts';
import { newKeyId, parseBearer, verifySecret } from '../../src/keys/credentials.ts';
import { type KeyStateStore, Keys, MAX_KEYS_PER_ACCOUNT } from '../../src/keys/keys.ts';
import { selectKeyRecords } from '../../src/keys/keys-sql.ts';
import { uuidv7 } from '../../src/platform/ids.ts';
import { keysRoutes } from '../../src/routes/keys.ts';
import { accepts, addAccount, addCall, addKeyTo, findRoute, json, send } from '../support/accounts.ts';
import { emptyDatabase } from '../support/empty-database.ts';
import { sql, useDatabase } from '../support/use-database.ts';

type State = Pick<Parameters<KeyStateStore['put']>[2], 'limit' | 'status'>;

let redis: {
  puts: [string, string, State][];
  away: boolean;
  delayed: (() => void)[] | null;
};
let invalidated: string[];
let keys: Keys;

useDatabase();

beforeEach(async () => {
  await emptyDatabase(sql);
  redis = { puts: [], away: false, delayed: null };
  invalidated = [];
  const state: KeyStateStore = {
    put: async (keyId, accountId, { limit, status }) => {
      if (redis.away) throw new Error('connection is closed');
      if (redis.delayed !== null) await new Promise<void>((resolve) => redis.delayed?.push(resolve));
      redis.puts.push([keyId, accountId, { limit, status }]);
    },
  };
  keys = new Keys({ sql, state, maxRateLimit: 300, cache: { invalidate: (keyId) => invalidated.push(keyId) } });
});

const routes = (adminBootstrapToken: string | null = null): Route[] =>
  keysRoutes({
    keys,
    readActivity: (keyId) => selectKeyActivity(sql, keyId),
    adminBootstrapToken,
    maxAccountsPerAddress: 3,
    maxRateLimit: 300,
  });

async function recordOf(keyId: string): Promise<KeyRecord> {
  const [record] = await selectKeyRecords(sql, [keyId], 300);
  if (record === undefined) throw new Error(`no key ${keyId}`);
  return record;
}

const create = (body: Record<string, unknown>, by?: KeyRecord, headers = {}, token: string | null = null) =>
  send(routes(token), 'POST /keys', { body, headers, ...(by === undefined ? {} : { by }) });

describe('POST /keys without a key', () => {
  it('opens an account and gives its first key, whose secret is stored only as a digest', async () => {
    const response = await create({ owner_id: 'alice', role: 'buyer' });
    expect(response.status).toBe(201);
    expect(response.headers).toEqual({ 'Cache-Control': 'no-store' });
    const created = json(response);
    expect(created).toEqual({
      key_id: expect.stringMatching(/^acf_/),
      secret: expect.stringMatching(/^sk_/),
      role: 'buyer',
      owner_id: 'alice',
      rate_limit: 60,
      account_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
    expect(parseBearer(`Bearer ${created.key_id}:${created.secret}`)).not.toBeNull();
    const record = await recordOf(created.key_id);
    expect(record).toMatchObject({ accountId: created.account_id, status: 'active', accountStatus: 'active' });
    expect(verifySecret(record, created.secret, Date.now)).toBe(true);
    const stored = await sql`SELECT to_jsonb(k)::text AS text FROM api_keys k`;
    expect(stored[0]?.text).not.toContain(created.secret);
  });

  it('opens two accounts for two callers that send the same label', async () => {
    const [one, two] = await Promise.all([1, 2].map(() => create({ owner_id: 'alice', role: 'buyer' })));
    expect(json(one as never).account_id).not.toBe(json(two as never).account_id);
  });

  it('refuses an address that has opened its maximum of accounts today, counted exactly over all gateways', async () => {
    // Two gateways on one database.
    const another = new Keys({ sql, state: { put: async () => {} }, maxRateLimit: 300, cache: { invalidate() {} } });
    const options = {
      readActivity: (keyId: string) => selectKeyActivity(sql, keyId),
      adminBootstrapToken: null,
      maxRateLimit: 300,
    };
    const gateways = [keys, another].map((its) => keysRoutes({ ...options, keys: its, maxAccountsPerAddress: 3 }));
    const open = (address: string, gateway = 0) =>
      send(gateways[gateway] as Route[], 'POST /keys', { address, body: { owner_id: 'x', role: 'buyer' } });
    const answers = await Promise.allSettled(Array.from({ length: 10 }, (_, i) => open('8.8.8.8', i % 2)));
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(3);
    const refusal = (answers.find(({ status }) => status === 'rejected') as PromiseRejectedResult).reason as ApiError;
    expect(refusal).toMatchObject({
      status: 429,
      message: expect.stringContaining('may open at most 3 accounts a day'),
    });
    const seconds = Number(refusal.headers['Retry-After']);
    expect(seconds).toBeGreaterThan(0);
    expect(seconds).toBeLessThanOrEqual(86_400);
    expect(await sql`SELECT count(*)::int AS n FROM accounts`).toEqual([{ n: 3 }]);
    for (const address of ['8.8.4.4', '2600:1f18:1:2::/64']) expect((await open(address)).status).toBe(201);
    // The operator, or a proxy and everybody behind it.
    for (const address of ['127.0.0.1', '10.1.2.3', '::1', 'fd00:0:0:0::/64']) {
      for (let i = 0; i < 5; i++) expect((await open(address)).status).toBe(201);
    }
    await sql`UPDATE account_openings SET day = day - 1`;
    expect((await open('8.8.8.8')).status).toBe(201);
    expect(await sql`SELECT address, opened FROM account_openings`).toEqual([{ address: '8.8.8.8', opened: 1 }]);
  });

  it('refuses a body that names an account', async () => {
    const { accountId } = await addAccount(sql);
    const body = { owner_id: 'x', role: 'buyer', account_id: accountId };
    await expect(create(body)).rejects.toMatchObject({ code: 'forbidden' });
  });

  it.each([
    ['owner_id empty', { owner_id: '', role: 'buyer' }],
    ['owner_id too long', { owner_id: 'x'.repeat(201), role: 'buyer' }],
    ['owner_id with a control character', { owner_id: 'a\u001b[31m', role: 'buyer' }],
    ['owner_id a number', { owner_id: 7, role: 'buyer' }],
    ['role unknown', { owner_id: 'a', role: 'root' }],
    ['account_id not a UUID', { owner_id: 'a', role: 'buyer', account_id: '1; DROP' }],
    ['an unknown field', { owner_id: 'a', role: 'buyer', limit: 300 }],
    ['not an object', ['a']],
  ])('refuses a body with %s', (_what, body) => {
    expect(accepts(findRoute(routes(), 'POST /keys').body, body)).toBe(false);
  });

  it.each([
    ['owner_id', { role: 'buyer' }],
    ['role', { owner_id: 'a' }],
    ['rate_limit', { owner_id: 'a', role: 'buyer', rate_limit: 300 }],
    ['budget', { owner_id: 'a', role: 'buyer', budget: { amount: 1, period: 'day' } }],
  ])('refuses a request because of %s', async (field, body) => {
    await expect(create(body)).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringMatching(`^${field}: `),
    });
  });

  it('accepts labels in any script, up to 200 characters', async () => {
    for (const owner of ['x', 'x'.repeat(200), '王小明', '🦀'.repeat(200)]) {
      const body = { owner_id: owner, role: 'provider' };
      expect(accepts(findRoute(routes(), 'POST /keys').body, body)).toBe(true);
      expect(json(await create(body)).owner_id).toBe(owner);
    }
  });
});

describe('the first admin', () => {
  const admin = { owner_id: 'root', role: 'admin' };

  it('is created without a key exactly once, however many requests try at the same moment', async () => {
    const attempts = await Promise.allSettled(Array.from({ length: 8 }, () => create(admin)));
    expect(attempts.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const attempt of attempts) {
      if (attempt.status === 'rejected') expect(attempt.reason).toMatchObject({ code: 'forbidden' });
    }
    const rows = await sql`SELECT count(*)::int AS admins FROM api_keys WHERE role = 'admin'`;
    expect(rows[0]?.admins).toBe(1);
    expect((await sql`SELECT id FROM accounts`).length).toBe(1);
  });

  it.each([
    ['of another site', 'https://evil.example', '127.0.0.1:8080'],
    ['whose name was rebound to the gateway', 'http://evil.example:8080', 'evil.example:8080'],
    ['that hides its origin', 'null', '127.0.0.1:8080'],
  ])('cannot be created by a web page %s', async (_what, origin, host) => {
    await expect(create(admin, undefined, { origin, host })).rejects.toMatchObject({
      code: 'forbidden',
      message: expect.stringContaining('A web page of another origin cannot create the first admin.'),
    });
    expect((await create({ owner_id: 'alice', role: 'buyer' }, undefined, { origin, host })).status).toBe(201);
    expect((await create(admin, undefined, { host })).status).toBe(201);
  });

  it('can be created by a page of the gateway itself', async () => {
    const headers = { origin: 'http://127.0.0.1:8080', host: '127.0.0.1:8080' };
    expect((await create(admin, undefined, headers)).status).toBe(201);
  });

  it('cannot be created again after its key is revoked', async () => {
    const first = json(await create(admin));
    await keys.revoke(first.key_id);
    await expect(create(admin)).rejects.toMatchObject({ code: 'forbidden' });
  });

  it('requires the bootstrap token if one is configured', async () => {
    const attempt = (value?: string) =>
      create(admin, undefined, value === undefined ? {} : { 'x-admin-bootstrap': value }, 'token-of-24-characters..');
    for (const wrong of [undefined, '', 'token', 'token-of-24-characters.x']) {
      await expect(attempt(wrong)).rejects.toMatchObject({ code: 'forbidden' });
    }
    expect((await attempt('token-of-24-characters..')).status).toBe(201);
    expect((await attempt('token-of-24-characters..')).status).toBe(201);
  });
});

describe('POST /keys with a key', () => {
  it('adds a key to its own account, and may state the label of that account', async () => {
    const buyer = await addAccount(sql, 'buyer', 'alice');
    for (const owner of [{}, { owner_id: 'alice' }]) {
      const created = json(await create({ ...owner, role: 'buyer', label: 'second' }, buyer));
      expect(created).toMatchObject({ account_id: buyer.accountId, owner_id: 'alice', role: 'buyer', label: 'second' });
    }
    const wrong = create({ owner_id: 'mallory', role: 'buyer' }, buyer);
    await expect(wrong).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('owner_id: '),
    });
  });

  it.each([
    ['buyer', ['buyer']],
    ['provider', ['buyer', 'provider']],
    ['admin', ['buyer', 'provider', 'admin']],
  ] as const)('lets a %s create %j and no higher role', async (role, allowed) => {
    const by = await addAccount(sql, role);
    for (const wanted of ['buyer', 'provider', 'admin'] as const) {
      const attempt = create({ role: wanted }, by, { 'x-admin-bootstrap': 'token' }, 'token');
      if ((allowed as readonly string[]).includes(wanted)) expect(json(await attempt).role).toBe(wanted);
      else await expect(attempt).rejects.toMatchObject({ code: 'forbidden' });
    }
  });

  it('adds a key to another account only for an admin', async () => {
    const [buyer, other, admin] = [await addAccount(sql), await addAccount(sql), await addAccount(sql, 'admin')];
    const body = { role: 'buyer', account_id: other.accountId };
    await expect(create(body, buyer)).rejects.toMatchObject({ code: 'forbidden' });
    expect(json(await create(body, admin)).account_id).toBe(other.accountId);
    const nowhere = { ...body, account_id: uuidv7() };
    await expect(create(nowhere, buyer)).rejects.toMatchObject({ code: 'forbidden' });
    await expect(create(nowhere, admin)).rejects.toMatchObject({ code: 'not_found' });
  });

  it('refuses a key beyond the maximum per account, even to concurrent requests or to repeated create-and-revoke', async () => {
    const buyer = await addAccount(sql);
    await sql`
      INSERT INTO api_keys (key_id, account_id, role, secret_hash)
      SELECT 'acf_' || lpad(i::text, 22, '0'), ${buyer.accountId}, 'buyer', repeat('0', 64)
      FROM generate_series(1, ${MAX_KEYS_PER_ACCOUNT - 3}::int) i`;
    const attempts = await Promise.allSettled(Array.from({ length: 5 }, () => create({ role: 'buyer' }, buyer)));
    expect(attempts.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
    expect(attempts.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { code: 'conflict' } });
    await keys.revoke(buyer.keyId);
    await expect(create({ role: 'buyer' }, buyer)).rejects.toMatchObject({ code: 'conflict' });
    await sql`UPDATE api_keys SET created_at = now() - interval '25 hours' WHERE key_id = ${buyer.keyId}`;
    expect((await create({ role: 'buyer' }, buyer)).status).toBe(201);
  });
});

describe('GET /keys', () => {
  it("lists the account's keys page by page, newest first, each once, without secrets and without foreign keys", async () => {
    const first = await addAccount(sql);
    await addAccount(sql);
    const ids = [first.keyId];
    for (let i = 0; i < 4; i++) ids.push((await addKeyTo(sql, first.accountId, 'buyer')).keyId);
    // Keys that were created in one transaction have the same time, but the order must still be total.
    await sql`UPDATE api_keys SET created_at = now()`;
    const seen: string[] = [];
    let cursor: string | null = null;
    let pages = 0;
    do {
      const query = cursor === null ? { limit: 2 } : { limit: 2, cursor };
      const page = json(await send(routes(), 'GET /keys', { by: first, query }));
      expect(JSON.stringify(page)).not.toMatch(/sk_|[0-9a-f]{64}/);
      for (const key of page.keys) seen.push(key.key_id);
      cursor = page.next_cursor;
      pages++;
    } while (cursor !== null);
    expect(pages).toBe(3);
    expect(seen).toEqual([...ids].sort().reverse());
  });

  it('refuses a cursor that it did not issue', async () => {
    const [buyer, other] = [await addAccount(sql), await addAccount(sql)];
    for (const cursor of ['x', newKeyId(), other.keyId]) {
      await expect(send(routes(), 'GET /keys', { by: buyer, query: { cursor } })).rejects.toMatchObject({
        code: 'invalid_request',
      });
    }
  });
});

it('GET /keys/me describes the key, its spending and its last use, and GET /keys has the last use of each key', async () => {
  const buyer = await addAccount(sql, 'buyer', 'alice');
  const unused = json(await send(routes(), 'GET /keys/me', { by: buyer }));
  expect(unused).toMatchObject({ key_id: buyer.keyId, role: 'buyer', rate_limit: 60, owner_id: 'alice' });
  expect(unused).toMatchObject({ account_id: buyer.accountId, total_spent: 0, last_used_at: null });
  expect(Date.parse(unused.created_at)).toBeGreaterThan(Date.now() - 60_000);

  const other = await addKeyTo(sql, buyer.accountId, 'buyer');
  await addCall(sql, { buyer, serviceId: uuidv7(), amount: 100_000, atMs: Date.UTC(2026, 0, 1) });
  await addCall(sql, { buyer, serviceId: uuidv7(), amount: 200_000, atMs: Date.UTC(2026, 0, 2) });
  await addCall(sql, { buyer: other, serviceId: uuidv7(), amount: 900_000 });
  const used = json(await send(routes(), 'GET /keys/me', { by: buyer }));
  expect(used).toMatchObject({ total_spent: 0.3, last_used_at: '2026-01-02T00:00:00.000Z' });
  const list = json(await send(routes(), 'GET /keys', { by: other, query: {} })).keys as Record<string, unknown>[];
  expect(list.find(({ key_id: id }) => id === buyer.keyId)).toMatchObject({ last_used_at: used.last_used_at });
  expect(Date.parse(String(list.find(({ key_id: id }) => id === other.keyId)?.last_used_at))).toBeGreaterThan(
    Date.now() - 60_000,
  );
});

it('GET /keys/me answers 401 and says how to authenticate if the key no longer exists', async () => {
  const by = { ...(await addAccount(sql, 'buyer')), keyId: newKeyId() };
  await expect(send(routes(), 'GET /keys/me', { by })).rejects.toMatchObject({
    code: 'unauthorized',
    headers: { 'WWW-Authenticate': 'Bearer' },
  });
});

describe('rotating', () => {
  const rotate = (keyId: string, by: KeyRecord, body?: unknown) =>
    send(routes(), 'POST /keys/:key_id/rotate', { by, body, params: { key_id: keyId } });

  it('gives a new secret under the same id and keeps the old one for the overlap', async () => {
    const created = json(await create({ owner_id: 'a', role: 'buyer' }));
    const by = await recordOf(created.key_id);
    const began = Date.now();
    const response = await rotate(by.keyId, by, undefined);
    const rotated = json(response);
    expect(response.headers).toEqual({ 'Cache-Control': 'no-store' });
    const record = await recordOf(by.keyId);
    expect(invalidated).toEqual([by.keyId]);
    expect(rotated.secret).not.toBe(created.secret);
    expect(verifySecret(record, rotated.secret, Date.now)).toBe(true);
    expect(verifySecret(record, created.secret, Date.now)).toBe(true);
    expect(verifySecret(record, created.secret, () => record.previousExpiresAtMs)).toBe(false);
    expect(Math.abs(record.previousExpiresAtMs - began - 3_600_000)).toBeLessThan(5_000);
    expect(rotated.previous_secret_expires_at).toBe(new Date(record.previousExpiresAtMs).toISOString());
  });

  it('with an overlap of 0 ends the old secret and all older ones at once', async () => {
    const created = json(await create({ owner_id: 'a', role: 'buyer' }));
    const by = await recordOf(created.key_id);
    const second = json(await rotate(by.keyId, by, { overlap_seconds: 600 }));
    const third = json(await rotate(by.keyId, by, { overlap_seconds: 0 }));
    const record = await recordOf(by.keyId);
    const good = [created, second, third].map(({ secret }) => verifySecret(record, secret, Date.now));
    expect(good).toEqual([false, false, true]);
    expect(third.previous_secret_expires_at).toBeNull();
  });

  it('does not revive a revoked key', async () => {
    const by = await addAccount(sql);
    await keys.revoke(by.keyId);
    await expect(rotate(by.keyId, by)).rejects.toMatchObject({ code: 'conflict' });
    expect((await recordOf(by.keyId)).secretDigest).toBe(by.secretDigest);
  });

  it('accepts an overlap of 0 to 86 400 whole seconds', () => {
    const { body } = findRoute(routes(), 'POST /keys/:key_id/rotate');
    for (const good of [0, 86_400]) expect(accepts(body, { overlap_seconds: good })).toBe(true);
    for (const bad of [-1, 86_401, 1.5, '60', null]) expect(accepts(body, { overlap_seconds: bad })).toBe(false);
  });
});

describe('revoking', () => {
  const revoke = (keyId: string, by: KeyRecord) =>
    send(routes(), 'DELETE /keys/:key_id', { by, params: { key_id: keyId } });

  it('reaches Postgres, Redis and this gateway before it answers, and may be repeated', async () => {
    const by = await addAccount(sql);
    for (let i = 0; i < 2; i++) {
      const response = await revoke(by.keyId, by);
      expect([response.status, json(response)]).toEqual([200, { key_id: by.keyId, status: 'revoked' }]);
    }
    expect((await recordOf(by.keyId)).status).toBe('revoked');
    expect(redis.puts).toEqual(Array(2).fill([by.keyId, by.accountId, { limit: 60, status: 'revoked' }]));
    expect(invalidated).toContain(by.keyId);
  });

  it('answers unavailable if Redis is away, and completes when the request is repeated', async () => {
    const by = await addAccount(sql);
    redis.away = true;
    await expect(revoke(by.keyId, by)).rejects.toMatchObject({ code: 'unavailable', headers: { 'Retry-After': '1' } });
    expect((await recordOf(by.keyId)).status).toBe('revoked');
    expect(invalidated).toContain(by.keyId);
    redis.away = false;
    expect((await revoke(by.keyId, by)).status).toBe(200);
    expect(redis.puts).toHaveLength(1);
  });

  it('is not undone in Redis by an earlier change of the rate limit that arrives later', async () => {
    const by = await addAccount(sql);
    redis.delayed = [];
    const limit = keys.change(by.keyId, { rateLimit: 100 });
    while (redis.delayed.length === 0) await new Promise(setImmediate);
    const revocation = keys.revoke(by.keyId);
    const slow = redis.delayed;
    redis.delayed = null;
    // Gives the revocation the time to overtake the delayed write, if it can.
    await Promise.race([revocation, sql`SELECT pg_sleep(0.2)`]);
    for (const resolve of slow) resolve();
    await Promise.all([limit, revocation]);
    expect(redis.puts.at(-1)).toEqual([by.keyId, by.accountId, { limit: 100, status: 'revoked' }]);
  });
});

describe('who may rotate and revoke', () => {
  const attempt = (what: 'rotate' | 'revoke', keyId: string, by: KeyRecord) =>
    what === 'rotate'
      ? send(routes(), 'POST /keys/:key_id/rotate', { by, params: { key_id: keyId } })
      : send(routes(), 'DELETE /keys/:key_id', { by, params: { key_id: keyId } });

  it.each(['rotate', 'revoke'] as const)(
    '%s: keys of the same account and admins; for other keys, the key does not exist',
    async (what) => {
      const [buyer, stranger, admin] = [await addAccount(sql), await addAccount(sql), await addAccount(sql, 'admin')];
      const sibling = await addKeyTo(sql, buyer.accountId, 'buyer');
      for (const keyId of [buyer.keyId, newKeyId(), 'nonsense', '']) {
        await expect(attempt(what, keyId, stranger)).rejects.toMatchObject({
          code: 'not_found',
          message: 'There is no such key.',
        });
      }
      expect((await attempt(what, sibling.keyId, buyer)).status).toBe(200);
      expect((await attempt(what, buyer.keyId, admin)).status).toBe(200);
    },
  );

  it.each(['rotate', 'revoke'] as const)(
    '%s: no key with a lower role than that key, because a buyer could become admin',
    async (what) => {
      const admin = await addAccount(sql, 'admin');
      const buyer = await addKeyTo(sql, admin.accountId, 'buyer');
      await expect(attempt(what, admin.keyId, buyer)).rejects.toMatchObject({ code: 'forbidden' });
      expect(await recordOf(admin.keyId)).toMatchObject({ status: 'active', secretDigest: admin.secretDigest });
    },
  );
});

describe('PATCH /keys/:key_id', () => {
  it('sets the rate limit in Postgres, in Redis and in this gateway, for admins only', async () => {
    const [buyer, admin] = [await addAccount(sql), await addAccount(sql, 'admin')];
    const route = findRoute(routes(), 'PATCH /keys/:key_id');
    const params = { key_id: buyer.keyId };
    const own = send(routes(), 'PATCH /keys/:key_id', { by: buyer, params, body: { rate_limit: 300 } });
    await expect(own).rejects.toMatchObject({ code: 'forbidden' });
    const response = await send(routes(), 'PATCH /keys/:key_id', { by: admin, params, body: { rate_limit: 300 } });
    expect(json(response)).toMatchObject({ key_id: buyer.keyId, rate_limit: 300 });
    expect((await recordOf(buyer.keyId)).rateLimit).toBe(300);
    expect(redis.puts).toEqual([[buyer.keyId, buyer.accountId, { limit: 300, status: 'active' }]]);
    expect(invalidated).toContain(buyer.keyId);
    for (const good of [1, 300]) expect(accepts(route.body, { rate_limit: good })).toBe(true);
    for (const bad of [0, 301, 1.5, '60', null]) expect(accepts(route.body, { rate_limit: bad })).toBe(false);
    expect(accepts(route.body, {})).toBe(false);
  });

  it('leaves a revoked key revoked', async () => {
    const [buyer, admin] = [await addAccount(sql), await addAccount(sql, 'admin')];
    await keys.revoke(buyer.keyId);
    const params = { key_id: buyer.keyId };
    await send(routes(), 'PATCH /keys/:key_id', { by: admin, params, body: { rate_limit: 10 } });
    expect(redis.puts.at(-1)?.[2]).toEqual({ limit: 10, status: 'revoked' });
  });
});
