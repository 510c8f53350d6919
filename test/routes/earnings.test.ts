import fc from 'fast-check';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Route } from '../../src/http/route.ts';
import type { KeyRecord } from '../../src/keys/caller.ts';
import { openPostgres } from '../../src/platform/postgres.ts';
import { earningsRoutes } from '../../src/routes/earnings.ts';
import { addAccount, addService, findRoute, json, send } from '../support/accounts.ts';
import { emptyDatabase } from '../support/empty-database.ts';
import { sql, url, useDatabase } from '../support/use-database.ts';

let routes: Route[];
let provider: KeyRecord;
let weather: string;
let maps: string;

useDatabase();
beforeAll(async () => {
  routes = earningsRoutes({ sql, feeBasisPoints: 1_250 });
});

async function reset(): Promise<void> {
  await emptyDatabase(sql);
  provider = await addAccount(sql, 'provider');
  weather = await addService(sql, provider.accountId, 'weather');
  maps = await addService(sql, provider.accountId, 'maps');
}
beforeEach(reset);

const earnings = async (query = {}, by = provider) => json(await send(routes, 'GET /earnings/me', { by, query }));

async function post(kind: 'usage' | 'payout', accountId: string, amount: number, at = '2026-01-15'): Promise<void> {
  const [journal] = await sql`INSERT INTO journal (kind, created_at) VALUES (${kind}, ${at}) RETURNING id`;
  await sql`INSERT INTO entries VALUES (${journal?.id}, ${accountId}, 'earnings', ${amount})`;
  await sql`
    INSERT INTO balances AS b VALUES (${accountId}, 'earnings', ${amount})
    ON CONFLICT (account_id, ledger) DO UPDATE SET balance = b.balance + excluded.balance`;
}

type Day = { serviceId: string; day: string; calls: number; free: number; gross: number; fees: number };

/** Stores what the writer stores of these calls, all at the day's noon: the sums of the hour, the entry and the balance. */
async function earn(day: Day, accountId = provider.accountId, hour = 12): Promise<void> {
  const at = new Date(`${day.day}T${String(hour).padStart(2, '0')}:00:00Z`);
  await sql`
    INSERT INTO service_hours AS h (service_id, hour, provider_id, calls, completed, free_calls, succeeded, caller_errors,
      caller_left, upstream_error, upstream_timeout, upstream_5xx, upstream_cut, unavailable, charged, fees, latency_sum_us,
      first_call_at, last_call_at)
    VALUES (${day.serviceId}, ${at}, ${accountId}, ${day.calls + 9}, ${day.calls}, ${day.free}, ${day.calls}, 9,
            0, 0, 0, 0, 0, 0, ${day.gross}, ${day.fees}, 0, ${at}, ${at})
    ON CONFLICT (service_id, hour) DO UPDATE SET completed = h.completed + excluded.completed,
      free_calls = h.free_calls + excluded.free_calls, charged = h.charged + excluded.charged, fees = h.fees + excluded.fees`;
  await post('usage', accountId, day.gross - day.fees, day.day);
}

describe('GET /earnings/me', () => {
  it('is all zeros for a provider without calls', async () => {
    expect(await earnings()).toEqual({
      gross: 0,
      refunded: 0,
      fees: 0,
      earned: 0,
      paid_out: 0,
      payable: 0,
      fee_percent: 12.5,
      currency: 'USD',
      by_service: [],
      by_day: [],
    });
  });

  it('adds up by service and by day, newest day first, and shows what is owed', async () => {
    await earn({ serviceId: weather, day: '2026-01-14', calls: 3, free: 1, gross: 200_000, fees: 10_000 });
    await earn({ serviceId: weather, day: '2026-01-15', calls: 1, free: 0, gross: 100_000, fees: 5_000 });
    await earn({ serviceId: maps, day: '2026-01-15', calls: 2, free: 0, gross: 1, fees: 0 });
    await post('payout', provider.accountId, -50_000);
    expect(await earnings()).toEqual({
      gross: 0.300001,
      refunded: 0,
      fees: 0.015,
      earned: 0.285001,
      paid_out: 0.05,
      payable: 0.235001,
      fee_percent: 12.5,
      currency: 'USD',
      by_service: [
        {
          service_id: weather,
          service_name: 'weather',
          calls: 4,
          free_calls: 1,
          gross: 0.3,
          refunded: 0,
          fees: 0.015,
          earned: 0.285,
        },
        {
          service_id: maps,
          service_name: 'maps',
          calls: 2,
          free_calls: 0,
          gross: 0.000001,
          refunded: 0,
          fees: 0,
          earned: 0.000001,
        },
      ],
      by_day: [
        { day: '2026-01-15', calls: 3, free_calls: 0, gross: 0.100001, refunded: 0, fees: 0.005, earned: 0.095001 },
        { day: '2026-01-14', calls: 3, free_calls: 1, gross: 0.2, refunded: 0, fees: 0.01, earned: 0.19 },
      ],
    });
  });

  it('adds up by hour too, if the whole range is in the last days', async () => {
    const hour = Math.floor(Date.now() / 3_600_000) * 3_600_000;
    const earnAt = (ms: number, gross: number) => {
      const time = new Date(ms).toISOString();
      return earn(
        { serviceId: weather, day: time.slice(0, 10), calls: 2, free: 1, gross, fees: 100 },
        provider.accountId,
        Number(time.slice(11, 13)),
      );
    };
    await earnAt(hour, 2_000);
    await earnAt(hour - 24 * 3_600_000, 1_000);
    const sums = { calls: 2, free_calls: 1, refunded: 0, fees: 0.0001 };
    expect((await earnings()).by_hour).toEqual([
      { hour: new Date(hour).toISOString(), ...sums, gross: 0.002, earned: 0.0019 },
      { hour: new Date(hour - 24 * 3_600_000).toISOString(), ...sums, gross: 0.001, earned: 0.0009 },
    ]);
    await earnAt(hour - 96 * 3_600_000, 1);
    expect(await earnings()).not.toHaveProperty('by_hour');
    const from = new Date(hour).toISOString().slice(0, 10);
    expect((await earnings({ from })).by_hour).toHaveLength(1);
  });

  it('counts UTC days from `from` up to, not including, `to`, whatever time zone the database session has', async () => {
    for (const day of ['2026-01-14', '2026-01-15', '2026-01-16']) {
      await earn({ serviceId: weather, day, calls: 1, free: 0, gross: 50, fees: 0 }, provider.accountId, 10);
      await earn({ serviceId: weather, day, calls: 1, free: 0, gross: 50, fees: 0 }, provider.accountId, 23);
    }
    await post('payout', provider.accountId, -30, '2026-01-13T12:00:00Z');
    await post('payout', provider.accountId, -40, '2026-01-15T12:00:00Z');
    const query = { from: '2026-01-15', to: '2026-01-16' };
    for (const zone of ['Pacific/Auckland', 'America/Los_Angeles', 'UTC']) {
      const session = new URL(url);
      session.searchParams.set('timezone', zone);
      const there = openPostgres({ url: session.href, maxConnections: 1, applicationName: 'test' });
      const [row] = await there`SHOW timezone`;
      expect(row?.TimeZone).toBe(zone);
      const body = json(
        await send(earningsRoutes({ sql: there, feeBasisPoints: 1_250 }), 'GET /earnings/me', { by: provider, query }),
      );
      await there.end();
      expect(body.by_day.map(({ day }: { day: string }) => day)).toEqual(['2026-01-15']);
      expect(body).toMatchObject({ earned: 0.0001, paid_out: 0.00004, payable: 0.00023 });
    }
  });

  it('shows the earnings of this provider only', async () => {
    const other = await addAccount(sql, 'provider');
    const service = await addService(sql, other.accountId);
    await earn({ serviceId: service, day: '2026-01-15', calls: 1, free: 0, gross: 5, fees: 1 }, other.accountId);
    await post('payout', other.accountId, -1);
    expect(await earnings()).toMatchObject({ earned: 0, paid_out: 0, payable: 0, by_service: [], by_day: [] });
  });

  it.each([{ from: '2026-01-15T00:00:00Z' }, { to: 'x' }, { from: '2026-01-16', to: '2026-01-15' }])(
    'refuses %j',
    async (query) => {
      await expect(earnings(query)).rejects.toMatchObject({ code: 'invalid_request' });
    },
  );

  it('is for providers only', () => {
    expect(findRoute(routes, 'GET /earnings/me').access).toEqual(['provider']);
  });

  it('payable = gross − fees − paid out, and both tables add up to the totals, whatever happened', async () => {
    const micros = (usd: number): number => Math.round(usd * 1e6);
    const event = fc.record({
      service: fc.boolean(),
      day: fc.constantFrom('2026-01-13', '2026-01-14', '2026-01-15'),
      gross: fc.integer({ min: 0, max: 1_000_000_000 }),
      feePercent: fc.integer({ min: 0, max: 100 }),
      payout: fc.integer({ min: 0, max: 1_000 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 8 }), async (events) => {
        await reset();
        for (const { service, day, gross, feePercent, payout } of events) {
          const fees = Math.floor((gross * feePercent) / 100);
          await earn({ serviceId: service ? weather : maps, day, calls: 1, free: 0, gross, fees });
          if (payout > 0) await post('payout', provider.accountId, -payout);
        }
        const body = await earnings();
        expect(micros(body.payable)).toBe(micros(body.gross) - micros(body.fees) - micros(body.paid_out));
        expect(micros(body.payable)).toBe(micros(body.earned) - micros(body.paid_out));
        for (const rows of [body.by_service, body.by_day] as { gross: number; fees: number; calls: number }[][]) {
          const sum = (pick: (row: { gross: number; fees: number }) => number): number =>
            rows.reduce((total, row) => total + micros(pick(row)), 0);
          expect(sum((row) => row.gross)).toBe(micros(body.gross));
          expect(sum((row) => row.fees)).toBe(micros(body.fees));
          expect(rows.reduce((total, row) => total + row.calls, 0)).toBe(events.length);
        }
      }),
      { numRuns: 20 },
    );
  });
});
