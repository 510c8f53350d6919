import { beforeAll, expect, it } from 'vitest';
import { selectEarnings } from '../../src/accounts/earnings-sql.ts';
import { selectStatement } from '../../src/accounts/statement-sql.ts';
import { selectKeyActivity } from '../../src/accounts/usage-sums.ts';
import type { Route } from '../../src/http/route.ts';
import type { KeyRecord } from '../../src/keys/caller.ts';
import { RetentionJob } from '../../src/ledger/retention/retention-job.ts';
import { uuidv7 } from '../../src/platform/ids.ts';
import { adminCallsRoutes } from '../../src/routes/admin/calls.ts';
import { serviceCallsRoutes } from '../../src/routes/service-calls.ts';
import { usageRoutes } from '../../src/routes/usage.ts';
import { addAccount, addCall, addService, json, send } from '../support/accounts.ts';
import { QUIET } from '../support/store.ts';
import { sql, url, useDatabase } from '../support/use-database.ts';

const DAY_MS = 86_400_000;
const [DROPPED, KEPT] = ['2026-01-14', '2026-01-15'];
const at = (day: string, time: string): number => Date.parse(`${day}T${time}Z`);

let routes: Route[];
let [buyer, provider, admin] = [] as unknown as [KeyRecord, KeyRecord, KeyRecord];
let serviceId: string;
let [droppedId, keptId] = ['', ''];
let before: unknown;

useDatabase();
beforeAll(async () => {
  for (const day of [DROPPED, KEPT]) {
    await sql.unsafe(
      `CREATE TABLE calls_${day.replaceAll('-', '')} PARTITION OF calls FOR VALUES FROM ('${day}') TO ('${day}'::date + 1)`,
    );
  }
  routes = [
    ...usageRoutes({ sql }),
    ...adminCallsRoutes({ sql }),
    ...serviceCallsRoutes({ sql, pseudonymOf: () => 'buyer' }),
  ];
  [buyer, provider, admin] = [await addAccount(sql), await addAccount(sql, 'provider'), await addAccount(sql, 'admin')];
  serviceId = await addService(sql, provider.accountId);
  const call = { buyer, serviceId, providerId: provider.accountId, amount: 1_000, fee: 100 };
  droppedId = await addCall(sql, { ...call, atMs: at(DROPPED, '12:10:00') });
  await addCall(sql, { ...call, atMs: at(DROPPED, '12:50:00') });
  keptId = await addCall(sql, { ...call, atMs: at(KEPT, '12:10:00') });
  before = await sums();
  const [row] = await sql<{ id: string }[]>`SELECT id FROM installation`;
  const job = new RetentionJob({
    databaseUrl: url,
    installation: row?.id as string,
    retentionDays: 400,
    exportDir: null,
    keptDays: 0,
    now: () => at(KEPT, '00:00:01') + 400 * DAY_MS,
    log: QUIET,
  });
  expect(await job.runOnce()).toBe('done');
});

const pageOf = async (name: string, by: KeyRecord, query = {}, params = {}, headers = {}) =>
  json(await send(routes, name, { by, query, params, headers }));

const range = { fromMs: null, toMs: null };
/** What pages say of all calls, whether they have records or not. */
async function sums() {
  const { records, next_cursor, records_since, ...usage } = await pageOf('GET /usage/me', buyer);
  const statement = (ledger: 'wallet' | 'earnings', { accountId }: KeyRecord) =>
    selectStatement(sql, { accountId, ledger, ...range, before: null, limit: 100 });
  return {
    usage,
    wallet: await statement('wallet', buyer),
    earned: await statement('earnings', provider),
    earnings: await selectEarnings(sql, provider.accountId, range),
    spentMicros: (await selectKeyActivity(sql, buyer.keyId)).totalSpentMicros,
  };
}

it('sums, statements and earnings are the same as before calls were dropped', async () => {
  expect(await sums()).toEqual(before);
});

it('lists of calls end at the first day that is kept, and say so', async () => {
  const ids = ({ records }: { records: { usage_id: string }[] }) => records.map(({ usage_id }) => usage_id);
  const usage = await pageOf('GET /usage/me', buyer, { from: DROPPED });
  expect([ids(usage), usage.next_cursor, usage.records_since, usage.total_calls]).toEqual([[keptId], null, KEPT, 3]);
  const sold = await pageOf('GET /services/:id/calls', provider, {}, { id: serviceId });
  expect([ids(sold), sold.next_cursor, sold.records_since]).toEqual([[keptId], null, KEPT]);
  const all = await pageOf('GET /admin/calls', admin, { from: DROPPED, to: '2026-01-17' });
  expect([all.calls.length, all.next_cursor, all.records_since]).toEqual([1, null, KEPT]);
  const csv = await pageOf('GET /usage/me', buyer, { from: '2026-01-14T12:30:00Z' }, {}, { accept: 'text/csv' });
  expect(csv.trim().split('\r\n')).toHaveLength(2);
});

it('a dropped call is 404 with a reason, and so is a call that never existed', async () => {
  const refusal = (id: string) => pageOf('GET /usage/:usage_id', buyer, {}, { usage_id: id });
  const message = 'Calls before 2026-01-15 (UTC) are no longer kept one by one.';
  for (const id of [droppedId, uuidv7(at('2020-01-01', '00:00:00'))])
    await expect(refusal(id)).rejects.toMatchObject({ code: 'not_found', message });
  await expect(refusal(uuidv7())).rejects.toMatchObject({
    code: 'not_found',
    message: expect.stringMatching(/^There is no such call\. A record/),
  });
  expect(await refusal(keptId)).toMatchObject({ usage_id: keptId });
});

it('sums over part of an hour are refused if its calls were dropped, and right if they were not', async () => {
  const usage = (query: object) => pageOf('GET /usage/me', buyer, query);
  for (const [name, query] of [
    ['from', { from: '2026-01-14T12:30:00Z' }],
    ['to', { to: '2026-01-14T12:30:00Z' }],
    ['from', { from: '2026-01-15T00:59:59Z' }],
  ] as const) {
    await expect(usage(query)).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringMatching(`^${name}: `),
    });
  }
  expect((await usage({ from: '2026-01-14T12:00:00Z', to: '2026-01-14T13:00:00Z' })).total_calls).toBe(2);
  expect((await usage({ from: '2026-01-15T12:05:00Z' })).total_calls).toBe(1);
});

it('a key whose last call was dropped still shows when it was last used', async () => {
  await sql`DELETE FROM key_hours WHERE hour >= ${new Date(at(KEPT, '00:00:00'))}`;
  await sql`DELETE FROM calls`;
  expect((await selectKeyActivity(sql, buyer.keyId)).lastUsedAt).toEqual(new Date(at(DROPPED, '12:50:00')));
});
