import { beforeAll, describe, expect, it } from 'vitest';
import {
  addToSums,
  insertRefund,
  type RefundedCall,
  selectRefundedCall,
} from '../../src/accounts/refunds/refund-sql.ts';
import { insertListing } from '../../src/catalog/sql.ts';
import type { Route } from '../../src/http/route.ts';
import type { KeyRecord } from '../../src/keys/caller.ts';
import { uuidv7 } from '../../src/platform/ids.ts';
import { serviceCallsRoutes } from '../../src/routes/service-calls.ts';
import { sumUp } from '../ledger/rollups/sums-oracle.ts';
import { addAccount } from '../support/accounts.ts';
import { ask, bodyOf, LISTING_FIELDS, refusalOf } from '../support/listings.ts';
import { unfenced } from '../support/unfenced.ts';
import { sql, useDatabase } from '../support/use-database.ts';

const HOUR_MS = 3_600_000;
/** Three o'clock, so that the hours before it are of two days. */
const NOW = Date.UTC(2026, 4, 5, 3);

let provider: KeyRecord;
let stranger: KeyRecord;
let admin: KeyRecord;
let buyer: KeyRecord;
let routes: Route[];
let id: string;
/** Ids of the calls that the list has, newest first. */
const listed: string[] = [];
const failed: string[] = [];
let refunds = 0;

type Stored = {
  atMs: number;
  key: string;
  account: string;
  service: string;
  outcome?: string;
  path?: string;
  skewMs?: number;
};

async function store({
  atMs,
  key,
  account,
  service,
  outcome = 'completed',
  path = '/x',
  skewMs = 0,
}: Stored): Promise<string> {
  const usageId = uuidv7(atMs + skewMs);
  await sql`
    INSERT INTO calls (day, usage_id, account_id, key_id, provider_id, service_id, method, path, status, amount, fee, free_tier,
                       outcome, latency_us, request_bytes, response_bytes, created_at, journal_id)
    VALUES (${new Date(atMs + skewMs).toISOString().slice(0, 10)}, ${usageId}, ${account}, ${key}, ${provider.accountId},
            ${service}, 'GET', ${path}, 200, ${outcome === 'completed' && account !== provider.accountId ? 2000 : 0},
            ${outcome === 'completed' && account !== provider.accountId ? 200 : 0}, false, ${outcome}, 1500, 1, 2,
            ${new Date(atMs)}, 1)`;
  return usageId;
}

useDatabase();
beforeAll(async () => {
  [provider, stranger, admin, buyer] = await Promise.all([
    addAccount(sql, 'provider'),
    addAccount(sql, 'provider'),
    addAccount(sql, 'admin'),
    addAccount(sql, 'buyer'),
  ]);
  const fields = { ...LISTING_FIELDS, providerId: provider.accountId };
  id = (await insertListing(sql, fields)).id;
  const other = (await insertListing(sql, fields)).id;
  const another = await addAccount(sql, 'buyer');
  const rows: { id: string; hour: number }[] = [];
  for (let n = 0; n < 60; n++) {
    // A few in each of twelve hours, by two buyers, one gateway's clock minutes behind; a month before that, one more.
    const atMs = n === 59 ? NOW - 40 * 24 * HOUR_MS : NOW - Math.floor(n / 5) * HOUR_MS + n * 1000;
    const by = n % 3 === 0 ? another : buyer;
    const outcome = n % 7 === 0 ? 'refunded:upstream_5xx' : n % 11 === 0 ? 'refunded:caller_gone' : 'completed';
    const call = { atMs, key: by.keyId, account: by.accountId, outcome, skewMs: n % 2 === 0 ? 0 : -240_000 };
    const usageId = await store({ ...call, service: id });
    rows.push({ id: usageId, hour: Math.floor(atMs / HOUR_MS) });
    if (outcome === 'refunded:upstream_5xx') failed.push(usageId);
    if (n % 4 === 0) await store({ ...call, service: other });
  }
  // The provider's own, with a key of that account that has other calls in the same hour, too.
  await store({ atMs: NOW, key: provider.keyId, account: provider.accountId, service: id });
  await sumUp(sql);
  rows.sort((a, b) => b.hour - a.hour || (a.id < b.id ? 1 : -1));
  listed.push(...rows.map((row) => row.id));
  failed.sort((a, b) => listed.indexOf(a) - listed.indexOf(b));
  routes = serviceCallsRoutes({ sql, pseudonymOf: (account, of) => `name of ${account} for ${of}` });
});

/** As `storeRefund` does it, without its limit of 90 days. */
async function giveBack(usageId: string, amountMicros: number): Promise<void> {
  const call = (await selectRefundedCall(sql, usageId)) as RefundedCall;
  const { accountId, providerId } = call;
  const journalId = ++refunds;
  const refund = {
    usageId,
    accountId,
    providerId,
    creditSeq: journalId,
    amountMicros,
    feeMicros: 0,
    totalBeforeMicros: 0,
  };
  const told = { isWhole: amountMicros === call.amountMicros, reason: 'x', reference: usageId, givenBy: providerId };
  await unfenced(sql).begin([accountId], async (tx) => {
    await insertRefund(tx, journalId, { ...refund, ...told }, call);
    await addToSums(tx, journalId);
  });
}

type Page = { records: { usage_id: string; buyer: string }[]; next_cursor: string | null };
const page = async (query: string, by = provider): Promise<Page> =>
  bodyOf(await ask(routes, `GET /services/${id}/calls?${query}`, { by })) as Page;

async function all(query: string): Promise<string[]> {
  const ids: string[] = [];
  let cursor = '';
  do {
    const { records, next_cursor } = await page(`${query}${cursor}`);
    ids.push(...records.map(({ usage_id }) => usage_id));
    cursor = next_cursor === null ? '' : `&cursor=${next_cursor}`;
  } while (cursor !== '');
  return ids;
}

describe("the calls of a provider's service", () => {
  it("are each on exactly one page, newest first, whatever the page size and the clocks, without the provider's own calls", async () => {
    for (const limit of [1, 7, 60, 1000]) expect(await all(`limit=${limit}`)).toEqual(listed);
  });

  it('that failed can be found by their hours', async () => {
    expect(failed.length).toBeGreaterThan(5);
    expect(await all('limit=4&outcome=failed')).toEqual(failed);
    const completed = await all('limit=1000&outcome=completed');
    expect(completed.length).toBeLessThan(listed.length - failed.length);
    expect(completed.some((usageId) => failed.includes(usageId))).toBe(false);
  });

  it('that were given back whole are found among those that failed, and those given back in part are not', async () => {
    const completed = await all('limit=1000&outcome=completed');
    const charged = listed.filter((usageId) => completed.includes(usageId));
    // The oldest call is alone in its hour; beside the other are failed calls, and calls of which a part was given back.
    const whole = [charged[9], charged.at(-1)] as string[];
    for (const usageId of whole) await giveBack(usageId, 2000);
    for (const at of [6, 7, 8, 10, 11, 12]) await giveBack(charged[at] as string, 500);
    const withThem = listed.filter((usageId) => failed.includes(usageId) || whole.includes(usageId));
    for (const limit of [4, 1000]) expect(await all(`limit=${limit}&outcome=failed`)).toEqual(withThem);
    expect(await all('limit=1000&outcome=completed')).toEqual(completed);
  });

  it('can be limited by time, to the second', async () => {
    const [from, to] = [NOW - 3 * HOUR_MS + 17_000, NOW - HOUR_MS + 6_000];
    const query = `from=${new Date(from).toISOString()}&to=${new Date(to).toISOString()}`;
    const rows = await sql<{ id: string }[]>`
      SELECT usage_id AS id FROM calls WHERE service_id = ${id} AND created_at >= ${new Date(from)}
        AND created_at < ${new Date(to)} AND amount + 1 > 0 AND account_id <> provider_id`;
    const found = await all(`limit=3&${query}`);
    expect(found.length).toBeGreaterThan(5);
    expect([...found].sort()).toEqual(rows.map((row) => row.id).sort());
    expect(await all('limit=3&from=0001-01-01&to=9999-12-31')).toEqual(listed);
  });

  it('show the buyer as a pseudonym, and nothing in the records or the answer identifies the buyer', async () => {
    const { records } = await page('limit=1000');
    expect(new Set(records.map(({ buyer: name }) => name)).size).toBe(2);
    const text = JSON.stringify(records.map(({ buyer: _, ...rest }) => rest));
    for (const secret of [buyer.accountId, buyer.keyId, provider.accountId]) expect(text).not.toContain(secret);
    expect(Object.keys(records[0] as object).sort()).toEqual(
      ['usage_id', 'buyer', 'method', 'path', 'status', 'amount', 'fee', 'earned', 'free_tier', 'outcome']
        .concat(['latency_ms', 'request_bytes', 'response_bytes', 'created_at'])
        .sort(),
    );
    expect(records[0]).toMatchObject({ amount: 0.002, fee: 0.0002, earned: 0.0018, outcome: 'completed' });
  });

  it('can be read as a CSV file with the same records', async () => {
    const csv = await ask(routes, `GET /services/${id}/calls?limit=10`, {
      by: provider,
      headers: { accept: 'text/csv' },
    });
    const lines = String(csv.body).trim().split('\r\n');
    expect(lines[0]).toMatch(/^usage_id,buyer,method,/);
    expect(lines.slice(1).map((line) => line.split(',')[0])).toEqual(listed.slice(0, 10));
    expect(csv.headers).toMatchObject({ 'X-ACF-Next-Cursor': expect.any(String) });
  });

  it('are shown to its provider and to admins only', async () => {
    expect((await page('limit=1', admin)).records).toHaveLength(1);
    const path = `GET /services/${id}/calls`;
    expect((await refusalOf(ask(routes, path, { by: stranger }))).code).toBe('forbidden');
    expect((await refusalOf(ask(routes, path, { by: buyer }))).code).toBe('forbidden');
    expect((await refusalOf(ask(routes, `GET /services/${uuidv7()}/calls`, { by: provider }))).code).toBe(
      'service_not_found',
    );
  });

  it.each(['x', '1.x', `99999999.${uuidv7()}`, uuidv7()])('cursor %s is refused', async (cursor) => {
    const error = await refusalOf(ask(routes, `GET /services/${id}/calls?cursor=${cursor}`, { by: provider }));
    expect([error.code, error.message]).toEqual(['invalid_request', 'cursor: not issued by this list.']);
  });
});
