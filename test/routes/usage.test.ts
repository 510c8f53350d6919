import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Route } from '../../src/http/route.ts';
import type { KeyRecord } from '../../src/keys/caller.ts';
import { uuidv7 } from '../../src/platform/ids.ts';
import { Replays } from '../../src/replay/replays.ts';
import { usageRoutes } from '../../src/routes/usage.ts';
import {
  accepts,
  addAccount,
  addCall,
  addKeyTo,
  addService,
  findRoute,
  json,
  send,
  type TestCall,
} from '../support/accounts.ts';
import { emptyDatabase } from '../support/empty-database.ts';
import { sql, useDatabase } from '../support/use-database.ts';

const NOON = Date.UTC(2026, 0, 15, 12);
const DAY_MS = 86_400_000;

let routes: Route[];
let buyer: KeyRecord;
let provider: KeyRecord;
let weather: string;
let maps: string;

useDatabase();
beforeAll(async () => {
  // A partition per day, as the writer makes them; other days have none.
  for (const day of ['2026-01-14', '2026-01-15', '2026-01-16']) {
    await sql.unsafe(
      `CREATE TABLE "calls_${day}" PARTITION OF calls FOR VALUES FROM ('${day}') TO ('${day}'::date + 1)`,
    );
  }
  routes = usageRoutes({ sql });
});

beforeEach(async () => {
  await emptyDatabase(sql);
  [buyer, provider] = [await addAccount(sql, 'buyer', 'alice'), await addAccount(sql, 'provider')];
  weather = await addService(sql, provider.accountId, 'weather');
  maps = await addService(sql, provider.accountId, 'maps');
});

const call = (fields: Partial<TestCall> = {}) =>
  addCall(sql, { buyer, serviceId: weather, providerId: provider.accountId, ...fields });

const usage = (query: Record<string, unknown> = {}, by = buyer, headers = {}) =>
  send(routes, 'GET /usage/me', { by, query, headers });

const idsOf = (page: { records: { usage_id: string }[] }): string[] => page.records.map((record) => record.usage_id);

describe('GET /usage/me', () => {
  it('is all zeros for a key without calls', async () => {
    expect(json(await usage())).toEqual({
      key_id: buyer.keyId,
      owner_id: 'alice',
      total_calls: 0,
      free_calls: 0,
      total_spent: 0,
      total_refunded: 0,
      avg_latency_ms: 0,
      by_service: [],
      by_day: [],
      records: [],
      next_cursor: null,
    });
  });

  it('sums up by service exactly what the records say', async () => {
    // 0.1 + 0.2 is the sum that floats get wrong.
    const first = await call({ amount: 100_000, latencyUs: 1_000, atMs: NOON, path: '/a/b' });
    await call({ amount: 200_000, latencyUs: 2_001, atMs: NOON + 1 });
    await call({ freeTier: true, latencyUs: 3_000, atMs: NOON + 2 });
    await call({ freeTier: true, outcome: 'refunded:upstream_error', latencyUs: 6_000, atMs: NOON + 3 });
    // Nobody knows how long the call of a dead gateway took: it must not pull the average down.
    await call({ outcome: 'abandoned', latencyUs: 0, atMs: NOON + 4 });
    await call({ serviceId: maps, amount: 1, latencyUs: 9_000, atMs: NOON + 5 });
    const body = json(await usage());
    expect(body).toMatchObject({ total_calls: 6, free_calls: 1, total_spent: 0.300001, avg_latency_ms: 4.2 });
    expect(body.by_service).toEqual([
      { service_id: weather, service_name: 'weather', calls: 5, free_calls: 1, spent: 0.3, avg_latency_ms: 3 },
      { service_id: maps, service_name: 'maps', calls: 1, free_calls: 0, spent: 0.000001, avg_latency_ms: 9 },
    ]);
    expect(body.by_day).toEqual([{ day: '2026-01-15', calls: 6, free_calls: 1, spent: 0.300001, refunded: 0 }]);
    expect(body.records).toHaveLength(6);
    expect(body.records.at(-1)).toEqual({
      usage_id: first,
      service_id: weather,
      service_name: 'weather',
      method: 'GET',
      path: '/a/b',
      status: 200,
      amount: 0.1,
      free_tier: false,
      outcome: 'completed',
      latency_ms: 1,
      request_bytes: 10,
      response_bytes: 20,
      created_at: '2026-01-15T12:00:00.000Z',
      key_id: buyer.keyId,
    });
  });

  it('shows what the service of a call priced by use could charge, and whether it reported more', async () => {
    const fixed = await call({ amount: 2_000, atMs: NOON });
    const byUse = await call({ amount: 50_000, authorized: 50_000, clamped: true, atCap: true, atMs: NOON + 1 });
    const { records, total_spent } = json(await usage());
    expect(records.map((record: { usage_id: string }) => record.usage_id)).toEqual([byUse, fixed]);
    expect(records[0]).toMatchObject({ amount: 0.05, authorized: 0.05, clamped: true });
    for (const name of ['authorized', 'clamped']) expect(records[1]).not.toHaveProperty(name);
    expect(records[0]).not.toHaveProperty('at_cap');
    expect(total_spent).toBe(0.052);
  });

  it('shows free messages and calls of own listings as records, and leaves them out of every sum', async () => {
    await call({ path: '/mcp#tools/list', latencyUs: 9_000, atMs: NOON });
    await addCall(sql, { buyer, serviceId: maps, providerId: buyer.accountId, latencyUs: 9_000, atMs: NOON + 1 });
    expect(json(await usage())).toMatchObject({ total_calls: 0, avg_latency_ms: 0, by_service: [] });
    await addCall(sql, {
      buyer,
      serviceId: maps,
      providerId: buyer.accountId,
      amount: 5,
      latencyUs: 1_000,
      atMs: NOON + 2,
    });
    await call({ latencyUs: 3_000, atMs: NOON + 3 });
    const body = json(await usage());
    expect(body).toMatchObject({ total_calls: 2, total_spent: 0.000005, avg_latency_ms: 2 });
    expect(body.records.map(({ path }: { path: string }) => path)).toEqual(['/x', '/x', '/x', '/mcp#tools/list']);
  });

  it('shows the calls of this key only, not those of other keys of its account', async () => {
    const sibling = await addKeyTo(sql, buyer.accountId, 'buyer');
    await call({ buyer: sibling, amount: 5 });
    expect(json(await usage())).toMatchObject({ total_calls: 0, total_spent: 0, records: [] });
    expect(json(await usage({}, sibling))).toMatchObject({ total_calls: 1, key_id: sibling.keyId });
  });

  it('pages through every call once, newest first, across days, with the sums of all calls on each page', async () => {
    const ids: string[] = [];
    for (let i = 0; i < 25; i++) ids.push(await call({ atMs: NOON - 3 * DAY_MS + i * DAY_MS * 0.3, amount: 1 }));
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const page = json(await usage(cursor === null ? { limit: 7 } : { limit: 7, cursor }));
      expect(page.total_calls).toBe(25);
      expect(page.records.length).toBeLessThanOrEqual(7);
      seen.push(...idsOf(page));
      cursor = page.next_cursor;
    } while (cursor !== null);
    expect(seen).toEqual([...ids].reverse());
  });

  it('returns 100 records if no limit is given', async () => {
    for (let i = 0; i < 101; i++) await call({ atMs: NOON + i });
    const page = json(await usage());
    expect([page.records.length, page.total_calls]).toEqual([100, 101]);
    expect(page.next_cursor).toBe(page.records.at(-1).usage_id);
  });

  it('has the newest 366 days with calls, each from midnight to midnight UTC', async () => {
    const midnight = Date.UTC(2026, 0, 15);
    await call({ atMs: midnight - 1, amount: 1 });
    await call({ atMs: midnight, amount: 20 });
    await call({ atMs: midnight + DAY_MS - 1, amount: 300, serviceId: maps });
    await call({ atMs: midnight + DAY_MS, freeTier: true });
    const day = (date: string, calls: number, free: number, spent: number) => {
      return { day: date, calls, free_calls: free, spent, refunded: 0 };
    };
    expect(json(await usage()).by_day).toEqual([
      day('2026-01-16', 1, 1, 0),
      day('2026-01-15', 2, 0, 0.00032),
      day('2026-01-14', 1, 0, 0.000001),
    ]);
    for (let i = 0; i < 366; i++) await call({ atMs: midnight - (i + 2) * DAY_MS, amount: 1 });
    const { by_day: days, total_calls: calls } = json(await usage());
    expect([days.length, days[0].day, days[365].day, calls]).toEqual([366, '2026-01-16', '2025-01-16', 370]);
  });

  it('filters by time: from is inclusive, to is exclusive', async () => {
    const ids: string[] = [];
    for (const at of [-1, 0, 1, DAY_MS - 1, DAY_MS])
      ids.push(await call({ atMs: Date.UTC(2026, 0, 15) + at, amount: 1 }));
    const within = async (query: object) => {
      const page = json(await usage(query as Record<string, unknown>));
      expect(page.total_calls).toBe(page.records.length);
      return idsOf(page)
        .map((id) => ids.indexOf(id))
        .reverse();
    };
    expect(await within({ from: '2026-01-15', to: '2026-01-16' })).toEqual([1, 2, 3]);
    expect(await within({ from: '2026-01-15T00:00:00.001Z' })).toEqual([2, 3, 4]);
    expect(await within({ to: '2026-01-15T01:00:00+01:00' })).toEqual([0]);
    expect(await within({ from: '0001-01-01', to: '9999-12-31' })).toEqual([0, 1, 2, 3, 4]);
    expect(await within({ from: '9999-12-30T00:00:00Z' })).toEqual([]);
    expect(await within({ to: '1969-01-01' })).toEqual([]);
  });

  it('filters by the recorded time even if the clocks of gateway and Redis disagree', async () => {
    const id = await call({ atMs: Date.UTC(2026, 0, 14, 23, 59, 59) });
    await sql`UPDATE calls SET created_at = '2026-01-15T00:00:02Z' WHERE usage_id = ${id}`;
    expect(idsOf(json(await usage({ from: '2026-01-15', to: '2026-01-16' })))).toEqual([id]);
    expect(idsOf(json(await usage({ to: '2026-01-15' })))).toEqual([]);
  });

  it('filters by service, and so do its sums', async () => {
    await call({ amount: 1 });
    const id = await call({ serviceId: maps, amount: 2 });
    const page = json(await usage({ service_id: maps }));
    expect([page.total_calls, page.total_spent, idsOf(page)]).toEqual([1, 0.000002, [id]]);
  });

  it.each([
    [{ from: 'yesterday' }, /^from:/],
    [{ from: '2026-02-30' }, /^from:/],
    [{ from: '2026-01-15T12:00:00' }, /^from:/],
    [{ to: '2026-13-01' }, /^to:/],
    [{ to: '2026-01-15T25:00:00Z' }, /^to:/],
    [{ from: '2026-01-02', to: '2026-01-02' }, /^from: must be before/],
    [{ service_id: 'weather' }, /^service_id:/],
    [{ cursor: 'x' }, /^cursor:/],
    [{ cursor: 'ffffffff-ffff-7fff-bfff-ffffffffffff' }, /^cursor:/],
  ])('refuses %j, naming the parameter', async (query, message) => {
    const attempt = async () => usage(query);
    await expect(attempt()).rejects.toMatchObject({ code: 'invalid_request', message: expect.stringMatching(message) });
  });

  it('accepts a limit of 1 to 1000', () => {
    const { query } = findRoute(routes, 'GET /usage/me');
    for (const limit of [1, 1000]) expect(accepts(query, { limit })).toBe(true);
    for (const limit of [0, 1001, 1.5]) expect(accepts(query, { limit })).toBe(false);
    expect(accepts(query, { form: '2026-01-01' })).toBe(false);
  });

  it('is for every role', () => {
    expect(findRoute(routes, 'GET /usage/me').access).toEqual(['buyer', 'provider', 'admin']);
  });
});

describe('GET /usage/me as text/csv', () => {
  const csv = async (query: Record<string, unknown> = {}) => usage(query, buyer, { accept: 'text/csv' });

  it('has the columns of the records, CRLF line ends, and quotes where RFC 4180 requires them', async () => {
    const id = await call({ amount: 100_000, atMs: NOON, path: '/say,"hi"' });
    const response = await csv();
    expect(response.headers?.['Content-Type']).toBe('text/csv; charset=utf-8; header=present');
    expect(response.body).toBe(
      'usage_id,service_id,service_name,method,path,status,amount,free_tier,outcome,latency_ms,request_bytes,response_bytes,created_at,key_id,key_label,authorized,clamped,tag,replays,refunded\r\n' +
        `${id},${weather},weather,GET,"/say,""hi""",200,0.1,false,completed,1.5,10,20,2026-01-15T12:00:00.000Z,${buyer.keyId},,,,,,\r\n`,
    );
  });

  it('escapes a service name that a spreadsheet would run as a formula', async () => {
    for (const name of ['=HYPERLINK("http://evil")', '+1', '-1', '@SUM(A1)', '\tx']) {
      await sql`UPDATE services SET name = ${name} WHERE id = ${weather}`;
      await emptyDatabase(sql, ['accounts', 'api_keys', 'services']);
      await call();
      const cell = String((await csv()).body)
        .split('\r\n')[1]
        ?.split(',')[2];
      expect(cell, name).toMatch(/^"?'/);
    }
  });

  it('has all calls up to 10 000, and says in a header where the next file begins', async () => {
    await sql`
      INSERT INTO calls (day, usage_id, account_id, key_id, provider_id, service_id, method, path, status, amount, fee,
                         free_tier, outcome, latency_us, request_bytes, response_bytes, created_at, journal_id)
      SELECT '2026-01-15', ('019bc000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, ${buyer.accountId},
             ${buyer.keyId}, ${provider.accountId}, ${weather}, 'GET', '/', 200, 1, 0, false, 'completed', 1, 0, 0,
             '2026-01-15T12:00:00Z', 1
      FROM generate_series(1, 10003) i`;
    const linesOf = (body: unknown) => String(body).trimEnd().split('\r\n').slice(1);
    const first = await csv();
    expect(linesOf(first.body)).toHaveLength(10_000);
    const second = await csv({ cursor: first.headers?.['X-ACF-Next-Cursor'] });
    expect(second.headers).not.toHaveProperty('X-ACF-Next-Cursor');
    const ids = [...linesOf(first.body), ...linesOf(second.body)].map((line) => line.slice(0, 36));
    expect(new Set(ids).size).toBe(10_003);
    expect(linesOf((await csv({ limit: 5 })).body)).toHaveLength(5);
  });

  it.each([
    ['text/csv', true],
    ['TEXT/CSV; q=0.5', true],
    ['text/csv, */*;q=0.1', true],
    ['application/json;q=0.5, text/csv', true],
    ['application/json, text/csv', false],
    ['application/json, text/csv;q=0.9', false],
    ['text/csv;q=0', false],
    ['*/*', false],
    [undefined, false],
  ])('Accept: %s → %s', async (accept, expected) => {
    const response = await usage({}, buyer, accept === undefined ? {} : { accept });
    expect(typeof response.body === 'string').toBe(expected);
    expect(response.headers?.Vary).toBe('Accept');
  });
});

describe('GET /usage/:usage_id', () => {
  const read = async (id: string, by: KeyRecord) =>
    json(await send(routes, 'GET /usage/:usage_id', { by, params: { usage_id: id } }));

  it('shows the buyer, the provider and an admin only what each of them may see', async () => {
    const id = await call({ amount: 1_000, fee: 50, atMs: NOON });
    const sibling = await addKeyTo(sql, buyer.accountId, 'buyer');
    const admin = await addAccount(sql, 'admin');
    for (const by of [buyer, sibling]) {
      const seen = await read(id, by);
      expect(seen).toMatchObject({ usage_id: id, amount: 0.001, key_id: buyer.keyId });
      for (const hidden of ['fee', 'earned', 'account_id', 'provider_id']) expect(seen).not.toHaveProperty(hidden);
    }
    const byProvider = await read(id, provider);
    expect(byProvider).toMatchObject({ usage_id: id, amount: 0.001, fee: 0.00005, earned: 0.00095 });
    expect(JSON.stringify(byProvider)).not.toContain(buyer.keyId);
    expect(JSON.stringify(byProvider)).not.toContain(buyer.accountId);
    expect(await read(id, admin)).toMatchObject({
      key_id: buyer.keyId,
      account_id: buyer.accountId,
      provider_id: provider.accountId,
      fee: 0.00005,
    });
  });

  it('tells the buyer and an admin how often the answer was replayed, whichever gateways replayed it', async () => {
    const [id, other] = [await call({ amount: 1_000, atMs: NOON }), await call({ atMs: NOON + 1 })];
    const lines: string[] = [];
    const log = { warn: (_: object, line: string) => void lines.push(line), info: () => {} };
    for (const times of [1, 2]) {
      const gateway = new Replays({ sql, log });
      // A damaged claim names no call. A call that is not stored yet has its count already.
      for (const usageId of ['damaged', ...Array.from({ length: times }, () => id), uuidv7()]) gateway.count(usageId);
      await gateway.stop();
    }
    expect(lines).toEqual([]);
    expect(await read(id, buyer)).toMatchObject({ replays: 3 });
    expect(await read(id, await addAccount(sql, 'admin'))).toMatchObject({ replays: 3 });
    for (const seen of [await read(id, provider), await read(other, buyer)]) expect(seen).not.toHaveProperty('replays');
    const listed = json(await usage()).records.map((record: { replays?: number }) => record.replays);
    expect(listed).toEqual([undefined, 3]);
  });

  it('answers everyone else as if the call did not exist', async () => {
    const id = await call();
    const strangers = [await addAccount(sql, 'buyer', 'alice'), await addAccount(sql, 'provider')];
    for (const by of strangers) await expect(read(id, by)).rejects.toMatchObject({ code: 'not_found' });
    for (const none of [uuidv7(), 'x', '', id.toUpperCase(), 'ffffffff-ffff-7fff-bfff-ffffffffffff']) {
      await expect(read(none, buyer)).rejects.toMatchObject({ code: 'not_found' });
    }
  });
});
