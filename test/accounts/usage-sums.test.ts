import fc from 'fast-check';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { onlyKey } from '../../src/accounts/key-scope.ts';
import { selectKeyActivity, selectUsage } from '../../src/accounts/usage-sums.ts';
import type { KeyRecord } from '../../src/keys/caller.ts';
import { uuidv7 } from '../../src/platform/ids.ts';
import { addAccount, addCall } from '../support/accounts.ts';
import { emptyDatabase } from '../support/empty-database.ts';
import { sql, useDatabase } from '../support/use-database.ts';

const START = Date.UTC(2026, 0, 15, 22);
const HOUR_MS = 3_600_000;
const services = [uuidv7(), uuidv7()];

let buyer: KeyRecord;
let other: KeyRecord;

useDatabase();
beforeAll(async () => {
  [buyer, other] = [await addAccount(sql), await addAccount(sql)];
});
const removeCalls = () => emptyDatabase(sql, ['accounts', 'api_keys']);
beforeEach(removeCalls);

type Call = { readonly atMs: number; readonly amount: number; readonly service: number; readonly path: string };

const add = (call: Call, by = buyer) =>
  addCall(sql, { ...call, buyer: by, serviceId: services[call.service] as string, latencyUs: call.amount + 1 });

/** Moments of a few days that are as often on a whole hour as between two, and often at midnight. */
const moment = fc
  .tuple(fc.nat(2), fc.constantFrom(0, 1, 2, 2, 3, 5), fc.constantFrom(0, 0, 1, 59_000, 1_800_000, 3_599_999))
  .map(([day, hour, ms]) => START + (day * 24 + hour) * HOUR_MS + ms);
const call = fc
  .record({ atMs: moment, amount: fc.integer({ min: 0, max: 5_000 }), service: fc.constantFrom(0, 1) })
  .chain((paid) =>
    fc.constantFrom({ ...paid, path: '/x' }, { ...paid, path: '/x' }, { ...paid, amount: 0, path: '#ping' }),
  );
const bound = fc.option(moment);

function expectedSums(calls: readonly Call[], fromMs: number | null, toMs: number | null, service: number | null) {
  return services
    .map((serviceId, i) => {
      const of = calls.filter(
        ({ atMs, service: its, path }) =>
          its === i &&
          (service === null || its === service) &&
          path === '/x' &&
          atMs >= (fromMs ?? 0) &&
          atMs < (toMs ?? Number.POSITIVE_INFINITY),
      );
      const spentMicros = of.reduce((sum, { amount }) => sum + amount, 0);
      return { serviceId, calls: of.length, spentMicros, latencySumUs: spentMicros + of.length };
    })
    .filter(({ calls: n }) => n > 0);
}

/** `expectedSums`, of each day. */
function expectedDays(calls: readonly Call[], fromMs: number | null, toMs: number | null, service: number | null) {
  const days = [...new Set(calls.map(({ atMs }) => dayOf(atMs)))].sort().reverse();
  return days
    .map((day) => {
      const its = calls.filter(({ atMs }) => dayOf(atMs) === day);
      const sums = expectedSums(its, fromMs, toMs, service);
      return {
        day,
        calls: sums.reduce((sum, { calls: n }) => sum + n, 0),
        spentMicros: sums.reduce((sum, { spentMicros }) => sum + spentMicros, 0),
      };
    })
    .filter(({ calls: n }) => n > 0);
}

const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

const byId = <T extends { serviceId: string }>(rows: readonly T[]) =>
  [...rows].sort((a, b) => (a.serviceId < b.serviceId ? -1 : 1));

describe('the sums of a key', () => {
  it('of any range equal those of its counted calls, read from days, hours that are in no day, and the calls of partial hours', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(call, { maxLength: 12 }),
        fc.array(fc.tuple(bound, bound, fc.constantFrom(null, 0, 1)), { minLength: 3, maxLength: 8 }),
        fc.nat(54),
        async (calls, ranges, hoursInDays) => {
          await removeCalls();
          await sql`UPDATE installation SET days_summed_to = ${new Date(START + hoursInDays * HOUR_MS)}`;
          for (const one of calls) await add(one);
          await add({ atMs: START + 1, amount: 7, service: 0, path: '/x' }, other);
          for (const [a, b, service] of ranges) {
            const [fromMs, toMs] = a !== null && b !== null && a > b ? [b, a] : [a, b];
            const serviceId = service === null ? null : (services[service] as string);
            const filter = { scope: onlyKey(buyer.keyId), fromMs, toMs, serviceId, outcome: null, tag: null };
            const { byService, byDay } = await selectUsage(sql, filter, null, 1);
            const found = byService.map(({ serviceId: id, calls: n, spentMicros, latencySumUs }) => {
              return { serviceId: id, calls: n, spentMicros, latencySumUs };
            });
            expect(byId(found)).toEqual(byId(expectedSums(calls, fromMs, toMs, service)));
            const days = byDay.map(({ day, calls: n, spentMicros }) => ({ day, calls: n, spentMicros }));
            expect(days).toEqual(expectedDays(calls, fromMs, toMs, service));
          }
        },
      ),
      { numRuns: 12 },
    );
  });

  it('say when it was last used, even if that call does not count', async () => {
    await add({ atMs: START, amount: 5, service: 0, path: '/x' });
    await add({ atMs: START + 9 * HOUR_MS, amount: 0, service: 0, path: '#ping' });
    expect(await selectKeyActivity(sql, buyer.keyId)).toEqual({
      lastUsedAt: new Date(START + 9 * HOUR_MS),
      totalSpentMicros: 5,
    });
  });
});

it('a page of calls with one outcome has only those, whatever the refund reason was; the sums have all calls', async () => {
  const outcomes = ['completed', 'refunded:upstream_5xx', 'completed', 'abandoned', 'refunded:caller_gone'];
  const ids: string[] = [];
  for (const [day, outcome] of outcomes.entries()) {
    const of = { buyer, serviceId: services[0] as string, amount: outcome === 'completed' ? 5 : 0, outcome };
    ids.push(await addCall(sql, { ...of, atMs: START - day * 24 * HOUR_MS }));
  }
  const read = async (outcome: 'completed' | 'refunded', before: string | null, limit: number) => {
    const filter = { scope: onlyKey(buyer.keyId), fromMs: null, toMs: null, serviceId: null, outcome, tag: null };
    const usage = await selectUsage(sql, filter, before, limit);
    expect(usage.byService).toMatchObject([{ calls: 5, spentMicros: 10 }]);
    return usage.calls.map(({ usage_id }) => ids.indexOf(usage_id));
  };
  expect(await read('completed', null, 9)).toEqual([0, 2]);
  expect(await read('refunded', null, 2)).toEqual([1, 3]);
  expect(await read('refunded', ids[3] as string, 2)).toEqual([4]);
});

it('pages of calls continue across gaps of days and months', async () => {
  const days = [0, 1, 20, 150, 200, 1_000];
  const ids = [];
  for (const day of days) ids.push(await add({ atMs: START - day * 24 * HOUR_MS, amount: 1, service: 0, path: '/x' }));
  const filter = { scope: onlyKey(buyer.keyId), fromMs: null, toMs: null, serviceId: null, outcome: null, tag: null };
  const read = async (before: string | null, limit: number) =>
    (await selectUsage(sql, filter, before, limit)).calls.map(({ usage_id }) => usage_id);
  expect(await read(null, 10)).toEqual(ids);
  expect(await read(null, 4)).toEqual(ids.slice(0, 4));
  expect(await read(ids[3] as string, 4)).toEqual(ids.slice(4));
});
