import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Listing } from '../../src/catalog/listing.ts';
import type { KeyRecord } from '../../src/keys/caller.ts';
import { uuidv7 } from '../../src/platform/ids.ts';
import { StatsReader } from '../../src/quality/stats-reader.ts';
import { serviceStatsRoutes } from '../../src/routes/stats.ts';
import { addAccount, addCall, addService, json, send, type TestCall } from '../support/accounts.ts';
import { rated } from '../support/listings.ts';
import { sql, useDatabase } from '../support/use-database.ts';

const DAY_MS = 86_400_000;
/** Noon of this day, so that two calls a day apart are on two days. */
const NOON = Math.floor(Date.now() / DAY_MS) * DAY_MS - DAY_MS / 2;

let buyer: KeyRecord;
let provider: KeyRecord;
let serviceId: string;

useDatabase();
beforeAll(async () => {
  [buyer, provider] = [await addAccount(sql), await addAccount(sql, 'provider')];
});
beforeEach(async () => {
  serviceId = await addService(sql, provider.accountId);
});

const routes = (reader = new StatsReader(sql)) => {
  const catalog = {
    get: (id: string) => (id === serviceId ? ({ id } as Listing) : undefined),
    ready: () => true,
    qualityOf: () => rated(61.2),
  };
  return serviceStatsRoutes({ catalog, reader });
};
const stats = (from = routes()) => send(from, 'GET /services/:id/stats', { params: { id: serviceId } });
const call = (atMs: number, latencyUs: number, outcome = 'completed', use?: Partial<TestCall>) => {
  const byUse = use === undefined ? {} : { authorized: 50_000, clamped: false, atCap: false, ...use };
  return addCall(sql, { atMs, latencyUs, outcome, buyer, serviceId, providerId: provider.accountId, ...byUse });
};

describe('GET /services/{id}/stats', () => {
  it('has hours for a service only if all its calls are from the last three days', async () => {
    await call(NOON, 10_000);
    await call(NOON, 30_000);
    await call(NOON - DAY_MS, 1_000, 'refunded:upstream_timeout');
    const hour = (atMs: number): string => new Date(atMs).toISOString();
    expect(json(await stats()).hours).toEqual([
      {
        hour: hour(NOON),
        calls: 2,
        succeeded: 2,
        failed: 0,
        caller_errors: 0,
        caller_left: 0,
        unavailable: 0,
        success_rate: 1,
        latency_ms: 20,
      },
      expect.objectContaining({ hour: hour(NOON - DAY_MS), calls: 1, failed: 1, success_rate: 0, latency_ms: null }),
    ]);
    await call(NOON - 9 * DAY_MS, 1_000);
    const older = json(await stats());
    expect(older.days).toHaveLength(3);
    expect(older).not.toHaveProperty('hours');
  });

  it('has every call of the last 30 days in its class and on its day, and latencies of the successful calls', async () => {
    for (const ms of [10, 500]) await call(NOON, ms * 1_000);
    // Priced by use. One was free, and one of the others cost the highest price.
    for (const use of [{ freeTier: true }, { atCap: true }]) await call(NOON, 10_000, 'completed', use);
    await call(NOON, 10_000, 'completed', {});
    await call(NOON - DAY_MS, 40_000, 'completed', {});
    await call(NOON - DAY_MS, 90_000_000, 'refunded:upstream_timeout');
    await call(NOON - DAY_MS, 1_000, 'refunded:upstream_cut');
    await call(NOON - DAY_MS, 1_000, 'refunded:caller_gone');
    await call(NOON - 2 * DAY_MS, 1_000, 'abandoned');
    await call(NOON - 31 * DAY_MS, 1_000);
    const days = [0, 1].map((ago) => new Date(NOON - ago * DAY_MS).toISOString().slice(0, 10));
    await sql`
      INSERT INTO service_amounts VALUES (${serviceId}, ${days[0] as string}, 2000, 90),
        (${serviceId}, ${days[1] as string}, 2000, 4), (${serviceId}, ${days[1] as string}, 50000, 6)`;
    const body = json(await stats());
    expect(body).toMatchObject({
      service_id: serviceId,
      quality: 61.2,
      quality_inputs: null,
      calls: 10,
      succeeded: 6,
      failed: 2,
      caller_errors: 0,
      caller_left: 1,
      unavailable: 1,
      success_rate: 0.75,
      price_charged: { median: 0.002, p95: 0.05, at_cap: 0.3333 },
    });
    expect(body.days).toHaveLength(3);
    expect(body.days[0]).toMatchObject({ day: days[0], calls: 5, succeeded: 5, success_rate: 1 });
    expect(body.days.map((day: { price_charged: object }) => day.price_charged)).toEqual([
      { median: 0.002, p95: 0.002, at_cap: 0.5 },
      { median: 0.05, p95: 0.05, at_cap: 0 },
      { median: null, p95: null, at_cap: null },
    ]);
    expect(body.days[1]).toMatchObject({ day: days[1], calls: 4, succeeded: 1, failed: 2, caller_left: 1 });
    expect(body.days[2]).toMatchObject({ unavailable: 1, success_rate: null, latency_ms: { p50: null } });
    expect(body.days[0].latency_ms.p50).toBeGreaterThan(9);
    expect(body.days[0].latency_ms.p50).toBeLessThan(11);
    expect(body.latency_ms.p99).toBeGreaterThan(450);
    expect(body.latency_ms.p99).toBeLessThan(550);
  });

  it('is all zeros and nulls for a service without calls, and 404 for one that does not exist', async () => {
    expect(json(await stats())).toMatchObject({
      calls: 0,
      success_rate: null,
      price_charged: { median: null, p95: null, at_cap: null },
      days: [],
    });
    const sent = send(routes(), 'GET /services/:id/stats', { params: { id: uuidv7() } });
    await expect(sent).rejects.toMatchObject({ code: 'service_not_found' });
  });

  it('reads once for everyone who asks within half a minute, but reads again after a failure', async () => {
    const reader = new StatsReader(sql);
    const kept = routes(reader);
    const [first] = [json(await stats(kept))];
    await call(NOON, 1_000);
    expect(json(await stats(kept))).toEqual(first);
    const failing = new StatsReader({ begin: () => Promise.reject(new Error('away')) } as unknown as typeof sql);
    await expect(failing.read(serviceId)).rejects.toThrow('away');
    await expect(failing.read(serviceId)).rejects.toThrow('away');
  });
});
