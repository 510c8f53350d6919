// An operator's day over HTTP: finding accounts, keys, services and calls, closing an account, and what stays recorded of it.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { readMigrations } from '../../src/platform/migrate.ts';
import type { Tx } from '../../src/platform/postgres.ts';
import { StartRefused } from '../../src/platform/start-refused.ts';
import { createAdminKey } from '../../src/roles/create-admin.ts';
import { buildSources } from '../support/build.ts';
import { createDatabase } from '../support/stores.ts';
import { until } from '../support/wait.ts';
import { authorization, echo, type Key, Marketplace, startService, type TestService } from './marketplace.ts';

type Act = {
  readonly id: number;
  readonly actor: string;
  readonly actor_account_id: string | null;
  readonly action: string;
  readonly subject_id: string;
  readonly before: unknown;
  readonly after: unknown;
  readonly request_id: string | null;
};

let market: Marketplace;
/** Further keys of the admin: one has 300 requests a minute, fewer than this file sends. */
let readers: Key[];
let turn = 0;
let elsewhere: { readonly baseUrl: string; stop(): Promise<unknown> };
let service: TestService;

beforeAll(async () => {
  market = await Marketplace.start();
  elsewhere = await market.anotherGateway();
  service = await startService(echo);
  // Compiling may take longer than a test may.
  buildSources();
  const body = { role: 'admin' };
  readers = await Promise.all(
    [1, 2, 3].map(async () => {
      const key = await market.json<Key>('/api/v1/keys', { key: market.admin, method: 'POST', body });
      await market.json(`/api/v1/keys/${key.key_id}`, {
        key: market.admin,
        method: 'PATCH',
        body: { rate_limit: 300 },
      });
      return key;
    }),
  );
});
afterAll(async () => {
  await elsewhere.stop();
  await market.stop();
  await service.close();
});

const aReader = (): Key => readers[turn++ % readers.length] as Key;
const asAdmin = <T>(path: string, method = 'GET', body?: object): Promise<T> =>
  market.json<T>(`/api/v1/admin/${path}`, { key: method === 'GET' ? aReader() : market.admin, method, body });
const acts = async (subject: string): Promise<readonly Act[]> =>
  (await asAdmin<{ acts: Act[] }>(`audit?subject=${subject}`)).acts;
const statusAt = async (baseUrl: string, key: Key): Promise<number> =>
  (await fetch(`${baseUrl}/api/v1/keys/me`, { headers: { Authorization: authorization(key) } })).status;

async function provider(): Promise<Key> {
  const body = { owner_id: 'Jane Doe, Acme', role: 'provider' };
  const key = await market.json<Key>('/api/v1/keys', { method: 'POST', body });
  await market.json(`/api/v1/keys/${key.key_id}`, { key: market.admin, method: 'PATCH', body: { rate_limit: 300 } });
  return key;
}

async function listing(key: Key): Promise<{ readonly id: string; readonly path: string }> {
  const body = { name: 'Of Jane', description: 'Ask Jane', endpoint: service.url, price: 0.5, category: 'test' };
  const { id } = await market.json<{ id: string }>('/api/v1/services', { key, method: 'POST', body });
  return { id, path: `/api/v1/proxy/${id}/x` };
}

/**
 * Sends requests while no act can be recorded, so that a request that records one keeps its locks. Each is sent when the one before waits
 * in Postgres. Then runs `meanwhile`.
 */
async function whileAuditIsLocked(
  send: readonly (() => Promise<Response>)[],
  meanwhile: () => Promise<unknown> = async () => {},
): Promise<readonly number[]> {
  const { sql } = market.stores;
  const { sent } = await sql.begin(async (tx) => {
    await tx`LOCK TABLE audit IN ACCESS EXCLUSIVE MODE`;
    const sent: Promise<Response>[] = [];
    for (const request of send) {
      sent.push(request());
      // Not by `tx`, which sees this view as it was when it first looked.
      await until(async () => (await sql`SELECT ${waiting(sql)}`)[0]?.waiting === sent.length);
    }
    await meanwhile();
    return { sent };
  });
  return (await Promise.all(sent)).map(({ status }) => status);
}

const waiting = (sql: Tx) => sql`
  (SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock') AS waiting`;

describe('every act of an admin is recorded', () => {
  it('with the key, the account and the request that it came from, and with what changed', async () => {
    const buyer = await market.buyer(3);
    const body = { account_id: buyer.account_id, role: 'buyer' };
    const key = await market.json<Key>('/api/v1/keys', { key: market.admin, method: 'POST', body });
    const rotation = await market.request(`/api/v1/keys/${key.key_id}/rotate`, { key: market.admin, method: 'POST' });
    await market.request(`/api/v1/keys/${key.key_id}`, { key: market.admin, method: 'DELETE' });
    await asAdmin(`accounts/${buyer.account_id}`, 'PATCH', { status: 'suspended' });
    await asAdmin(`accounts/${buyer.account_id}`, 'PATCH', { status: 'suspended' });
    await asAdmin(`accounts/${buyer.account_id}`, 'PATCH', { status: 'active' });
    const by = { actor: market.admin.key_id, actor_account_id: market.admin.account_id };
    expect(await acts(buyer.account_id)).toMatchObject([
      { ...by, action: 'account.resume', before: { status: 'suspended' }, after: { status: 'active' } },
      { ...by, action: 'account.suspend', before: { status: 'active' }, after: { status: 'suspended' } },
      { ...by, action: 'account.credit', before: { balance: 0 }, after: { amount: 3, balance: 3 } },
    ]);
    expect(await acts(key.key_id)).toMatchObject([
      { action: 'key.revoke', before: { status: 'active' }, after: { status: 'revoked' } },
      { action: 'key.rotate', request_id: rotation.headers.get('x-request-id') },
      { action: 'key.create', after: { account_id: buyer.account_id, role: 'buyer' } },
    ]);
    expect(JSON.stringify(await acts(key.key_id))).not.toMatch(/sk_/);
  });

  it('including changes of a service, but not those that the provider of that service makes', async () => {
    const seller = await provider();
    const { id } = await listing(seller);
    const change = (key: Key, body: object) => market.json(`/api/v1/services/${id}`, { key, method: 'PATCH', body });
    await change(seller, { price: 0.4 });
    await change(market.admin, { price: 0.3, name: 'Other' });
    await asAdmin(`services/${id}`, 'PATCH', { status: 'paused' });
    await asAdmin(`services/${id}`, 'PATCH', { status: 'removed' });
    expect(await asAdmin(`services/${id}`, 'PATCH', { status: 'removed' })).toMatchObject({ status: 'removed' });
    expect(await acts(id)).toMatchObject([
      { action: 'service.remove', before: { status: 'paused' }, after: { status: 'removed' } },
      { action: 'service.change', before: { status: 'active' }, after: { status: 'paused' } },
      { action: 'service.change', before: { price: 0.4, name: 'Of Jane' }, after: { price: 0.3, name: 'Other' } },
    ]);
  });

  it("including acts on an admin key of the admin's own account, but not on other keys of that account", async () => {
    const make = (role: string) =>
      market.json<Key>('/api/v1/keys', { key: market.admin, method: 'POST', body: { role } });
    const [admin, buyer] = await Promise.all([make('admin'), make('buyer')]);
    for (const { key_id } of [admin, buyer]) {
      await market.request(`/api/v1/keys/${key_id}/rotate`, { key: market.admin, method: 'POST' });
      await market.request(`/api/v1/keys/${key_id}`, { key: market.admin, method: 'DELETE' });
    }
    expect(await acts(admin.key_id)).toMatchObject([
      { action: 'key.revoke', actor: market.admin.key_id },
      { action: 'key.rotate' },
      { action: 'key.create', after: { account_id: market.admin.account_id, role: 'admin' } },
    ]);
    expect(await acts(buyer.key_id)).toEqual([]);
  });

  it('or has no effect: if the connection is lost between act and record, neither is stored', async () => {
    const { account_id } = await market.buyer(0);
    const path = `/api/v1/admin/accounts/${account_id}`;
    const cut = (path: string, method: string, body?: object): Promise<readonly number[]> =>
      whileAuditIsLocked(
        [() => market.request(path, { key: market.admin, method, body })],
        () => market.stores.sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
    expect(await cut(path, 'PATCH', { status: 'suspended' })).toEqual([503]);
    expect(await cut(`${path}/close`, 'POST')).toEqual([503]);
    expect(await cut('/api/v1/admin/credits', 'POST', { account_id, amount: 1, reference: 'cut' })).toEqual([503]);
    const [account] = await market.stores.sql`SELECT status, credit_seq FROM accounts WHERE id = ${account_id}`;
    expect([account, await acts(account_id)]).toEqual([{ status: 'active', credit_seq: 0 }, []]);
  });

  it('or has no effect: if the record cannot be stored, nothing is changed', async () => {
    const buyer = await market.buyer(0);
    const { sql } = market.stores;
    await sql.unsafe(
      `ALTER TABLE audit ADD CONSTRAINT none CHECK (subject_id NOT IN ('${buyer.account_id}', '${buyer.key_id}')) NOT VALID`,
    );
    const refused = [
      market.request(`/api/v1/admin/accounts/${buyer.account_id}`, {
        key: market.admin,
        method: 'PATCH',
        body: { status: 'suspended' },
      }),
      market.request('/api/v1/admin/credits', {
        key: market.admin,
        method: 'POST',
        body: { account_id: buyer.account_id, amount: 1, reference: 'lost' },
      }),
      market.request(`/api/v1/keys/${buyer.key_id}`, { key: market.admin, method: 'PATCH', body: { rate_limit: 7 } }),
      market.request(`/api/v1/keys/${buyer.key_id}`, { key: market.admin, method: 'DELETE' }),
      market.request(`/api/v1/admin/accounts/${buyer.account_id}/close`, { key: market.admin, method: 'POST' }),
    ];
    expect((await Promise.all(refused)).map(({ status }) => status)).toEqual([500, 500, 500, 500, 500]);
    await sql.unsafe('ALTER TABLE audit DROP CONSTRAINT none');
    expect(await market.json('/api/v1/keys/me', { key: buyer })).toMatchObject({ status: 'active', rate_limit: 300 });
    expect(await market.balance(buyer)).toMatchObject({ balance: 0 });
  });
});

describe('closing an account', () => {
  it('is refused while the account has money, and says what is left', async () => {
    const seller = await provider();
    const { path } = await listing(seller);
    const buyer = await market.buyer(0.5);
    const close = (key: Key) =>
      market.request(`/api/v1/admin/accounts/${key.account_id}/close`, { key: aReader(), method: 'POST' });
    const full = await close(buyer);
    expect([full.status, await full.text()]).toEqual([409, expect.stringContaining('the wallet has 0.5 USD')]);
    expect((await market.request(path, { key: buyer })).status).toBe(200);
    // Waits in the stores: each question to the gateway would take one of the 300 requests that the key has.
    await market.settled();
    await until(async () => (await close(buyer)).status === 200);
    const owed = await close(seller);
    expect([owed.status, await owed.text()]).toEqual([409, expect.stringMatching(/0\.\d+ USD are payable/)]);
    expect(await statusAt(market.baseUrl, seller)).toBe(200);
  });

  it('is refused while the wallet is below zero, and says that it needs a credit', async () => {
    const buyer = await market.buyer(1);
    const { redis, keys } = market.stores;
    // As after an older Redis came back, and the account had spent what a debit took.
    const wallet = keys.wallet(keys.shardOf(buyer.account_id), buyer.account_id);
    await market.balance(buyer);
    await redis.command('hset', [wallet, 'balance', '-500000']);
    const close = `/api/v1/admin/accounts/${buyer.account_id}/close`;
    const refused = await market.request(close, { key: market.admin, method: 'POST' });
    expect([refused.status, await refused.text()]).toEqual([
      409,
      expect.stringContaining('the wallet owes 0.5 USD (credit it)'),
    ]);
    await redis.command('hset', [wallet, 'balance', '1000000']);
  });

  it('is refused while a call is open', async () => {
    const silent = await startService(() => {});
    const proxied = await market.service({ endpoint: silent.url, price: 0.5 });
    const buyer = await market.buyer(0.5);
    const stop = new AbortController();
    const call = fetch(`${market.baseUrl}${proxied}/x`, {
      headers: { Authorization: authorization(buyer) },
      signal: stop.signal,
    }).catch(() => {});
    await until(async () => (await market.balance(buyer)).held === 0.5);
    const refused = await market.request(`/api/v1/admin/accounts/${buyer.account_id}/close`, {
      key: market.admin,
      method: 'POST',
    });
    expect([refused.status, await refused.text()]).toEqual([409, expect.stringContaining('open calls hold 0.5 USD')]);
    stop.abort();
    await call;
    await silent.close();
  });

  it('ends all its keys at once on every gateway, unlists its services, and erases names', async () => {
    const seller = await provider();
    const second = await market.json<Key>('/api/v1/keys', {
      key: seller,
      method: 'POST',
      body: { role: 'provider' },
    });
    const { id, path } = await listing(seller);
    await market.json(`/api/v1/services/${id}`, { key: market.admin, method: 'PATCH', body: { name: 'Jane again' } });
    const buyer = await market.buyer(1);
    // Until the other gateway has the listing.
    const headers = { Authorization: authorization(buyer) };
    await until(async () => (await fetch(elsewhere.baseUrl + path, { headers })).status === 200);
    expect([await statusAt(elsewhere.baseUrl, seller), await statusAt(elsewhere.baseUrl, second)]).toEqual([200, 200]);
    // As if it had been paid out.
    await market.settled();
    await market.stores.sql`DELETE FROM balances WHERE account_id = ${seller.account_id}`;

    const { sql } = market.stores;
    await sql`INSERT INTO tag_months VALUES (${seller.account_id}, '2026-01-01', 'jane')`;
    await sql`INSERT INTO tag_days VALUES (${seller.account_id}, '2026-01-15', 'jane', 1, 0, 5, 9, 1)`;
    const close = `accounts/${seller.account_id}/close`;
    const closed = await asAdmin(close, 'POST');
    const statuses = [market, elsewhere].flatMap(({ baseUrl }) =>
      [seller, second].map((key) => statusAt(baseUrl, key)),
    );
    expect(await Promise.all(statuses)).toEqual([401, 401, 401, 401]);
    // Redis refuses them, so no gateway needs to have had its message yet.
    const { redis, keys } = market.stores;
    const states = [seller, second].map((key) =>
      redis.command('hget', [keys.key(keys.shardOf(seller.account_id), key.key_id), 'status']),
    );
    expect(await Promise.all(states)).toEqual(['revoked', 'revoked']);
    expect(closed).toMatchObject({ account_id: seller.account_id, owner_id: '(closed)', status: 'closed' });
    expect(await asAdmin(close, 'POST')).toEqual(closed);
    await until(async () => (await market.request(path, { key: buyer })).status === 404);

    const [entry] = (await asAdmin<{ acts: Act[] }>('audit?action=account.close')).acts;
    expect(entry).toMatchObject({ subject_id: seller.account_id, after: { keys_revoked: 2, services_removed: 1 } });
    const tags = sql`
      SELECT tag FROM tag_days WHERE account_id = ${seller.account_id}
      UNION ALL SELECT tag FROM tag_months WHERE account_id = ${seller.account_id}`;
    expect(await tags).toEqual([]);
    const [listed] = await sql`SELECT * FROM services WHERE id = ${id}`;
    const kept = [await sql`SELECT * FROM accounts WHERE id = ${seller.account_id}`, await acts(id)];
    // The name of the service stays, because the records of its buyers show it.
    expect(JSON.stringify([{ ...listed, name: '' }, kept])).not.toMatch(/Jane|127\.0\.0\.1/);
    expect((await market.usage(buyer, 1)).records).toMatchObject([{ service_name: 'Jane again', amount: 0.5 }]);
  });

  it('refuses a new listing that was requested while the account was being closed', async () => {
    const body = { name: 'Of Jane', description: 'Ask Jane', endpoint: service.url, price: 0.5, category: 'test' };
    const list = async (): Promise<number> => {
      const seller = await provider();
      await market.json('/api/v1/keys/me', { key: seller });
      // The gateway knows the key as it was when the request came.
      await market.stores.sql`UPDATE accounts SET status = 'closed' WHERE id = ${seller.account_id}`;
      return (await market.request('/api/v1/services', { key: seller, method: 'POST', body })).status;
    };
    let status = await list();
    // The message that a new key's limit was raised may come only now. Then the gateway read the key again, and this was not the case
    // to be shown.
    for (let tries = 1; status === 401 && tries < 5; tries++) status = await list();
    expect(status).toBe(409);
  });

  it('decides for each column of an account and of a listing whether it is kept or erased', async () => {
    const kept = {
      accounts: ['id', 'status', 'credit_seq', 'created_at', 'closed_at', 'summed_from'],
      services: [
        'id',
        'provider_id',
        'name',
        'price',
        'max_price',
        'free_calls',
        'category',
        'timeout_seconds',
        'status',
        'created_at',
        'updated_at',
        'protocol',
        'idle_seconds',
      ],
    };
    const erased = {
      accounts: ['owner_id', 'suspension_reason'],
      // By closeListingsOf in src/catalog/sql.ts. A new column that may tell who its provider is belongs there.
      services: [
        'description',
        'endpoint',
        'only_operations',
        'operations',
        'operation_terms',
        'upstream_headers',
        'upstream_query',
        'blocked_buyers',
        'signing_keys',
        'forward_headers',
        'docs_url',
        'health_path',
        'next_from',
        'next_price',
        'next_max_price',
        'next_free_calls',
        'next_only_operations',
        'next_operations',
        'next_operation_terms',
      ],
    };
    for (const table of ['accounts', 'services'] as const) {
      const columns = await market.stores.sql<{ name: string }[]>`
        SELECT attname AS name FROM pg_attribute WHERE attrelid = ${table}::regclass AND attnum > 0 AND NOT attisdropped`;
      expect(columns.map(({ name }) => name).sort(), table).toEqual([...kept[table], ...erased[table]].sort());
    }
  });

  it('is permanent', async () => {
    const buyer = await market.buyer(0);
    await asAdmin(`accounts/${buyer.account_id}/close`, 'POST');
    const ask = async (path: string, method: string, body: object): Promise<number> =>
      (await market.request(path, { key: market.admin, method, body })).status;
    const { account_id } = buyer;
    expect(await ask(`/api/v1/admin/accounts/${account_id}`, 'PATCH', { status: 'active' })).toBe(409);
    expect(await ask('/api/v1/keys', 'POST', { role: 'buyer', account_id })).toBe(409);
    expect(await ask('/api/v1/admin/credits', 'POST', { account_id, amount: 1, reference: 'too late' })).toBe(409);
  });

  it('refuses a new listing that waited for it', async () => {
    const seller = await provider();
    const { account_id } = seller;
    const listed = { name: 'Jane late', description: 'x', endpoint: service.url, price: 0, category: 'test' };
    const statuses = await whileAuditIsLocked([
      () => market.request(`/api/v1/admin/accounts/${account_id}/close`, { key: market.admin, method: 'POST' }),
      () => market.request('/api/v1/services', { key: seller, method: 'POST', body: listed }),
    ]);
    expect(statuses).toEqual([200, 409]);
    expect(await market.stores.sql`SELECT name FROM services WHERE provider_id = ${account_id}`).toEqual([]);
  });

  it("is refused if it is the admin's own account", async () => {
    const path = `/api/v1/admin/accounts/${market.admin.account_id}/close`;
    expect((await market.request(path, { key: market.admin, method: 'POST' })).status).toBe(409);
  });
});

describe("an operator's lists", () => {
  beforeAll(async () => {
    const path = await market.service({ endpoint: service.url });
    const buyer = await market.buyer(0);
    for (let calls = 0; calls < 3; calls++) await market.request(path, { key: buyer });
    await market.settled();
    await asAdmin(`accounts/${(await market.buyer(0)).account_id}/close`, 'POST');
  });

  /** All entries, read a few at a time. */
  async function all<Entry>(list: string, name: string, query = ''): Promise<readonly Entry[]> {
    const found: Entry[] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const at: string = cursor === '' ? '' : `&cursor=${cursor}`;
      const page: Record<string, unknown> = await asAdmin(`${list}?limit=5${query}${at}`);
      found.push(...(page[name] as Entry[]));
      cursor = page.next_cursor as string | null;
    }
    return found;
  }

  it('have each entry once, newest first, whatever the page size', async () => {
    for (const [list, name, id] of [
      ['accounts', 'accounts', 'account_id'],
      ['keys', 'keys', 'key_id'],
      ['services', 'services', 'id'],
      ['calls', 'calls', 'usage_id'],
      ['audit', 'acts', 'id'],
    ] as const) {
      const whole = ((await asAdmin(`${list}?limit=1000`)) as Record<string, Record<string, unknown>[]>)[name] ?? [];
      const ids = whole.map((entry) => entry[id]);
      expect(ids.length, list).toBeGreaterThan(1);
      expect(new Set(ids).size).toBe(ids.length);
      const paged = await all<Record<string, unknown>>(list, name);
      // Lists grow while they are read, at their beginning only.
      expect(paged.map((entry) => entry[id]).slice(-ids.length), list).toEqual(ids);
      const times = whole.map((entry) => String(entry.created_at ?? entry.at));
      expect(times, list).toEqual([...times].sort().reverse());
    }
  });

  it('can be filtered', async () => {
    const seller = await provider();
    const { id, path } = await listing(seller);
    const buyer = await market.buyer(1);
    await market.request(path, { key: buyer });
    const { account_id } = buyer;
    await market.settled();
    const accounts = (query: string) => all<{ account_id: string; balance: number }>('accounts', 'accounts', query);
    expect((await accounts('&q=JANE doe&status=active')).map((entry) => entry.account_id)).toContain(seller.account_id);
    expect((await accounts('&q=JANE doe')).map((entry) => entry.account_id)).not.toContain(account_id);
    expect((await accounts('&status=closed')).length).toBeGreaterThan(0);
    expect((await accounts('&role=admin')).map((entry) => entry.account_id)).toEqual([market.admin.account_id]);
    expect((await accounts('')).find((entry) => entry.account_id === account_id)).toMatchObject({
      owner_id: 'buyer',
      status: 'active',
      balance: 0.5,
      payable: 0,
      active_keys: 1,
      closed_at: null,
    });
    // Anyone who has the id of an account or of a key finds the account, also by a key that is revoked.
    const spare = await market.json<Key>('/api/v1/keys', {
      key: buyer,
      method: 'POST',
      body: { role: 'buyer' },
    });
    await market.request(`/api/v1/keys/${spare.key_id}`, { key: buyer, method: 'DELETE' });
    for (const filter of [`account_id=${account_id}`, `key_id=${buyer.key_id}`, `key_id=${spare.key_id}`]) {
      expect(await accounts(`&${filter}`), filter).toMatchObject([{ account_id, balance: 0.5 }]);
      expect(await accounts(`&${filter}&status=closed`), filter).toEqual([]);
    }
    expect(await accounts(`&account_id=${account_id}&key_id=${seller.key_id}`)).toEqual([]);
    expect(await accounts(`&key_id=acf_${'0'.repeat(22)}`)).toEqual([]);
    const keys = await all<{ key_id: string }>('keys', 'keys', `&account_id=${account_id}&role=buyer&status=active`);
    expect(keys.map(({ key_id }) => key_id)).toEqual([buyer.key_id]);
    const services = await all<object>(
      'services',
      'services',
      `&provider_id=${seller.account_id}&q=JANE&category=test`,
    );
    expect(services).toMatchObject([{ id, status: 'active', endpoint: service.url }]);
    for (const filter of [
      `account_id=${account_id}`,
      `key_id=${buyer.key_id}`,
      `service_id=${id}`,
      `provider_id=${seller.account_id}`,
    ]) {
      const calls = await all<object>('calls', 'calls', `&${filter}&outcome=completed`);
      expect(calls, filter).toMatchObject([{ account_id, key_id: buyer.key_id, service_id: id, amount: 0.5 }]);
      expect(await all('calls', 'calls', `&${filter}&outcome=refunded`)).toEqual([]);
    }
    expect(await all('calls', 'calls', `&key_id=${buyer.key_id}&from=2020-01-01&to=2020-01-31`)).toEqual([]);
    const credits = await all<Act>('audit', 'acts', `&actor=${market.admin.account_id}&action=account.credit`);
    expect(credits[0]).toMatchObject({ subject_id: account_id });
    expect(await all('audit', 'acts', '&from=2020-01-01&to=2020-02-01')).toEqual([]);
  });

  it.each([
    ['accounts', 'cursor=x'],
    ['accounts', 'q=%00'],
    ['accounts', 'account_id=acf_1'],
    ['accounts', 'key_id=x'],
    ['keys', `cursor=acf_${'0'.repeat(22)}`],
    ['keys', 'account_id=x'],
    ['services', 'cursor=x'],
    ['audit', 'cursor=999999999999999'],
    ['audit', 'cursor=0x1'],
    ['audit', 'actor=me'],
    ['calls', 'cursor=ffffffff-ffff-7fff-8fff-ffffffffffff'],
    ['calls', 'from=2020-01-01&to=2020-03-01'],
    ['calls', 'outcome=lost'],
    ['credits', 'reference=%00'],
    ['debits', 'reference=%00'],
    ['payouts', 'reference=%00'],
  ])('refuse cursors that they did not issue and parameters that they do not know: %s?%s', async (list, query) => {
    const response = await market.request(`/api/v1/admin/${list}?${query}`, { key: aReader() });
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('invalid_request')]);
  });

  it.each(['to=0001-01-01T00:00:01Z', 'from=9999-12-31T23:59:59Z'])(
    'reach no further back than Postgres can read: %s',
    async (query) => {
      expect(await asAdmin(`calls?${query}`)).toEqual({ calls: [], next_cursor: null });
    },
  );

  it('are for admins only', async () => {
    for (const list of ['accounts', 'keys', 'services', 'calls', 'audit', 'stats']) {
      expect((await market.request(`/api/v1/admin/${list}`, { key: market.provider })).status).toBe(403);
    }
  });

  it('agree with the numbers of the statistics', async () => {
    const stats = await asAdmin<{ accounts: Record<string, number>; keys: Record<string, number> }>('stats');
    const accounts = await all<{ status: string }>('accounts', 'accounts');
    const closed = accounts.filter(({ status }) => status === 'closed').length;
    expect(stats).toMatchObject({
      accounts: { active: accounts.length - closed, suspended: 0, closed },
      backlog: 0,
      rejected_events: 0,
      currency: 'USD',
    });
  });
});

describe('main.js create-admin', () => {
  const migrations = readMigrations('migrations');
  const databaseUrl = async (): Promise<string> => {
    const [row] = await market.stores.sql<{ name: string }[]>`SELECT current_database() AS name`;
    return Object.assign(new URL(inject('postgresAdminUrl')), { pathname: `/${row?.name}` }).href;
  };

  it('makes an admin key that running gateways accept, prints it once, and is recorded', async () => {
    const env = { PATH: process.env.PATH, DATABASE_URL: await databaseUrl() };
    const child = spawn(
      process.execPath,
      [path.join(buildSources(), 'main.js'), 'create-admin', '--label', 'Found again'],
      { env },
    );
    const [output, errors, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
    expect([code, errors]).toEqual([0, '']);
    const [accountId, keyId, secret] = output.split('\n').map((line) => line.split(/\s+/)[1] ?? '');
    const key = { key_id: keyId ?? '', secret: secret ?? '', account_id: accountId ?? '' };
    expect(await market.json('/api/v1/keys/me', { key })).toMatchObject({ role: 'admin', owner_id: 'Found again' });
    expect(await acts(key.account_id)).toMatchObject([{ actor: 'create-admin', action: 'account.create' }]);
  });

  it('refuses a database that is not migrated, is newer, has other migrations, or is away', async () => {
    const database = await createDatabase();
    await expect(createAdminKey(database.url, migrations, [])).rejects.toThrow('migrate it first');
    await database.drop();
    await expect(createAdminKey(database.url, migrations, [])).rejects.toThrow('does not exist');
    const older = migrations.slice(0, -1);
    await expect(createAdminKey(await databaseUrl(), older, [])).rejects.toThrow('use a newer build');
    const edited = migrations.map((migration) => ({ ...migration, sql: `${migration.sql};` }));
    await expect(createAdminKey(await databaseUrl(), edited, [])).rejects.toThrow('made before 0.1.0');
    await expect(createAdminKey(undefined, migrations, [])).rejects.toThrow('DATABASE_URL');
    await expect(createAdminKey('postgres://u:p@[x/y', migrations, [])).rejects.toThrow('DATABASE_URL');
    const wrong = Object.assign(new URL(await databaseUrl()), { username: 'nobody', password: 'wrong' }).href;
    await expect(createAdminKey(wrong, migrations, [])).rejects.toThrow(StartRefused);
    await expect(createAdminKey('postgres://x', migrations, ['--name', 'x'])).rejects.toThrow('--label');
  });
});
