import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { UNKNOWN_QUALITY } from '../../src/catalog/quality.ts';
import { newKeyId } from '../../src/keys/credentials.ts';
import { uuidv7 } from '../../src/platform/ids.ts';
import { type Evidence, lowerBoundFrom, qualityFrom, trendFrom } from '../../src/quality/formula.ts';
import { selectEvidence } from '../../src/quality/quality-sql.ts';
import { addAccount, addService } from '../support/accounts.ts';
import { emptyDatabase } from '../support/empty-database.ts';
import { sql, useDatabase } from '../support/use-database.ts';

useDatabase();

let providerId: string;
beforeEach(async () => {
  await emptyDatabase(sql);
  providerId = (await addAccount(sql, 'provider')).accountId;
});

/** Calls of one buyer in one hour. */
type Calls = {
  readonly buyer: number;
  readonly hoursAgo: number;
  readonly succeeded: number;
  readonly failed: number;
  /** The latency of each call; 20 if absent. */
  readonly latencyMs?: number;
};

const buyerIds = Array.from({ length: 200 }, () => ({ accountId: uuidv7(), keyId: newKeyId() }));

/** Qualities of services that had these calls, each service for itself. All compare with a typical latency of 20 ms. */
async function qualitiesOf(...services: readonly (readonly Calls[])[]): Promise<number[]> {
  const ids = [];
  for (const calls of services) {
    const id = await addService(sql, providerId);
    ids.push(id);
    for (const each of calls) await add(id, each);
  }
  const evidence = await selectEvidence(sql, ids);
  return ids.map((id) => {
    const of = evidence.find(({ serviceId }) => serviceId === id);
    if (of === undefined) throw new Error('no evidence of a service');
    return qualityFrom(of, 20_000);
  });
}

async function add(serviceId: string, calls: Calls, buyer = buyerIds[calls.buyer] as (typeof buyerIds)[0]) {
  const n = calls.succeeded + calls.failed;
  const hour = new Date(Math.floor(Date.now() / 3_600_000 - calls.hoursAgo) * 3_600_000);
  await sql`
    INSERT INTO key_hours AS h (key_id, hour, service_id, account_id, calls, completed, free_calls, succeeded, failed,
                                spent, latency_sum_us, latency_count, succeeded_us, first_call_at, last_call_at)
    VALUES (${buyer.keyId}, ${hour}, ${serviceId}, ${buyer.accountId}, ${n}, ${calls.succeeded}, 0, ${calls.succeeded},
            ${calls.failed}, 0, ${n * (calls.latencyMs ?? 20) * 1_000}, ${n}, ${calls.succeeded * (calls.latencyMs ?? 20) * 1_000}, ${hour}, ${hour})
    ON CONFLICT (key_id, hour, service_id) DO UPDATE SET calls = h.calls + excluded.calls,
      succeeded = h.succeeded + excluded.succeeded, failed = h.failed + excluded.failed,
      latency_sum_us = h.latency_sum_us + excluded.latency_sum_us, latency_count = h.latency_count + excluded.latency_count,
      succeeded_us = h.succeeded_us + excluded.succeeded_us`;
}

const each = (buyers: number, calls: Omit<Calls, 'buyer'>): Calls[] =>
  Array.from({ length: buyers }, (_, buyer) => ({ buyer, ...calls }));

const calls = fc.record({
  buyer: fc.integer({ min: 0, max: 5 }),
  hoursAgo: fc.integer({ min: 0, max: 600 }),
  succeeded: fc.integer({ min: 0, max: 500 }),
  failed: fc.integer({ min: 0, max: 500 }),
});
const history = fc.array(calls, { maxLength: 8 });

describe('the quality of a service', () => {
  it('is 50 without calls, and near 50 with few calls', async () => {
    const one = { buyer: 0, hoursAgo: 0, succeeded: 1, failed: 0 };
    const [none, good, bad] = await qualitiesOf([], [one], [{ ...one, succeeded: 0, failed: 1 }]);
    expect(none).toBe(50);
    expect(good).toBeGreaterThan(50);
    expect(good).toBeLessThan(53);
    expect(bad).toBeLessThan(50);
    expect(bad).toBeGreaterThan(47);
  });

  it('is never lowered by more successes, nor raised by more failures', async () => {
    await fc.assert(
      fc.asyncProperty(history, calls, async (before, { buyer, hoursAgo, succeeded: n }) => {
        const more = { buyer, hoursAgo, succeeded: n + 1, failed: 0 };
        const [was, better, worse] = await qualitiesOf(
          before,
          [...before, more],
          [...before, { ...more, succeeded: 0, failed: n + 1 }],
        );
        expect(better).toBeGreaterThanOrEqual(was as number);
        expect(worse).toBeLessThanOrEqual(was as number);
      }),
      { numRuns: 25 },
    );
  });

  it('cannot be pushed to the top or to the bottom by one buyer alone', async () => {
    const [up, down] = await qualitiesOf(
      each(1, { hoursAgo: 0, succeeded: 1_000_000, failed: 0, latencyMs: 1 }),
      each(1, { hoursAgo: 0, succeeded: 0, failed: 1_000_000, latencyMs: 60_000 }),
    );
    expect(up).toBeLessThan(61);
    expect(down).toBeGreaterThan(39);
  });

  it('moves by less than five points, whatever one buyer of a hundred does', async () => {
    const others = each(99, { hoursAgo: 30, succeeded: 3, failed: 0 });
    const attack = { buyer: 99, hoursAgo: 0 };
    const [alone, failing, slow, fast] = await qualitiesOf(
      others,
      [...others, { ...attack, succeeded: 0, failed: 1_000_000, latencyMs: 300_000 }],
      [...others, { ...attack, succeeded: 1_000_000, failed: 0, latencyMs: 300_000 }],
      [...others, { ...attack, succeeded: 1_000_000, failed: 0, latencyMs: 1 }],
    );
    expect(alone).toBeGreaterThan(85);
    for (const moved of [failing, slow, fast]) expect(Math.abs((moved as number) - (alone as number))).toBeLessThan(5);
  });

  it('drops little after one bad hour in a good month, and recovers from a bad week within a month', async () => {
    const month = Array.from({ length: 29 }, (_, day) =>
      each(12, { hoursAgo: 24 * day + 2, succeeded: 240, failed: 0 }),
    );
    const badHour = each(12, { hoursAgo: 0, succeeded: 0, failed: 10 });
    const badWeek = each(12, { hoursAgo: 24 * 26, succeeded: 0, failed: 1_000 });
    const now = each(12, { hoursAgo: 1, succeeded: 1_000, failed: 0 });
    const [good, afterHour, afterWeek] = await qualitiesOf(
      month.flat(),
      [...month.flat(), ...badHour],
      [...badWeek, ...now],
    );
    expect((good as number) - (afterHour as number)).toBeLessThan(2);
    expect((good as number) - (afterWeek as number)).toBeLessThan(4);
  });

  it('weighs success most: the slowest working service ranks above the fastest one that fails half of the time', async () => {
    const [slow, fast, usual] = await qualitiesOf(
      each(60, { hoursAgo: 0, succeeded: 10, failed: 0, latencyMs: 200_000 }),
      each(60, { hoursAgo: 0, succeeded: 5, failed: 5, latencyMs: 1 }),
      each(60, { hoursAgo: 0, succeeded: 10, failed: 0 }),
    );
    expect(slow).toBeGreaterThan(fast as number);
    expect(usual).toBeGreaterThan(slow as number);
  });

  it("leaves out the provider's own calls", async () => {
    const id = await addService(sql, providerId);
    const own = { accountId: providerId, keyId: newKeyId() };
    await add(id, { buyer: 0, hoursAgo: 0, succeeded: 1_000, failed: 0 }, own);
    const [evidence] = await selectEvidence(sql, [id]);
    expect(evidence).toMatchObject({ serviceId: id, buyers: 0, weight: 0 });
  });

  it('has a trend over seven days if enough was known then, and rates the past as it was rated then', async () => {
    const week = 24 * 7;
    const good = each(4, { hoursAgo: week + 10, succeeded: 100, failed: 0 });
    const bad = each(4, { hoursAgo: 2, succeeded: 0, failed: 100 });
    const old = each(4, { hoursAgo: 24 * 36, succeeded: 100, failed: 0 });
    const few = each(1, { hoursAgo: week + 10, succeeded: 100, failed: 0 });
    const moved = (calls: readonly Calls[], by: number) => calls.map((c) => ({ ...c, hoursAgo: c.hoursAgo - by }));
    const ids: string[] = [];
    for (const calls of [[...good, ...bad], bad, few, old, moved(good, week), moved(old, week)]) {
      const id = await addService(sql, providerId);
      ids.push(id);
      for (const each of calls) await add(id, each);
    }
    const found = await selectEvidence(sql, ids);
    const of = (i: number) => found.find(({ serviceId }) => serviceId === ids[i]) as (typeof found)[0];
    const [fallen, young, thin, aged, goodThen, oldThen] = [of(0), of(1), of(2), of(3), of(4), of(5)];
    const trends = [fallen, young, thin].map((service) => trendFrom(service, service.before, 20_000));
    expect(trends).toEqual([expect.any(Number), null, null]);
    expect(trends[0]).toBeLessThan(-15);
    // What was known seven days ago is what would be known now, had everything happened seven days later.
    expect(fallen.before.weight).toBeCloseTo(goodThen.weight, 1);
    expect(qualityFrom(fallen.before, 20_000)).toBeCloseTo(qualityFrom(goodThen, 20_000), 0);
    // Calls that are too old to count now counted then.
    expect(aged).toMatchObject({ weight: 0, succeeded: 0, latencyUs: null, buyers: 0 });
    expect(aged.before.weight).toBeCloseTo(oldThen.weight, 1);
  });

  it('matches what docs/quality.md says about its examples', async () => {
    const [quality] = await qualitiesOf([
      { buyer: 0, hoursAgo: 0, succeeded: 95, failed: 5, latencyMs: 40 },
      { buyer: 1, hoursAgo: 0, succeeded: 5, failed: 0, latencyMs: 20 },
    ]);
    expect(quality).toBe(60.9);
  });
});

type Tally = readonly [succeeded: number, failed: number];

/** The evidence from buyers with these successes and failures just now. */
function evidenceOf(buyers: readonly Tally[]): Evidence {
  const weights = buyers.map(([good, bad]) => ({ v: ((good + bad) * 5) / (good + bad + 5), p: good / (good + bad) }));
  return {
    weight: weights.reduce((sum, { v }) => sum + v, 0),
    succeeded: weights.reduce((sum, { v, p }) => sum + v * p, 0),
    latencyUs: 20_000,
  };
}
const bound = (...buyers: readonly Tally[]): number => lowerBoundFrom(evidenceOf(buyers), 20_000);
const times = <T>(n: number, value: T): T[] => Array.from({ length: n }, () => value);

describe('the lower bound of the quality, by which catalogs sort', () => {
  const tally = fc.tuple(fc.nat(500), fc.nat(500)).filter(([good, bad]) => good + bad > 0);

  it('is never lowered by more successes, nor raised by more failures', () => {
    fc.assert(
      fc.property(tally, fc.array(tally, { maxLength: 11 }), fc.integer({ min: 1, max: 500 }), (first, others, n) => {
        const [[good, bad], buyers] = [first, [first, ...others]];
        const was = bound(...buyers);
        expect(bound([good + n, bad], ...others)).toBeGreaterThanOrEqual(was);
        expect(bound([good, bad + n], ...others)).toBeLessThanOrEqual(was);
        expect(bound(...buyers, [n, 0])).toBeGreaterThanOrEqual(was);
        expect(bound(...buyers, [0, n])).toBeLessThanOrEqual(was);
        expect(was).toBeLessThanOrEqual(100);
      }),
    );
  });

  it('ranks a service that works for three buyers above one that fails a fifth of the calls of a hundred buyers', () => {
    expect(bound(...times(3, [100, 0] as const))).toBeGreaterThan(bound(...times(100, [80, 20] as const)));
  });

  it('does not let 201 calls by one buyer put a service first', () => {
    const alone = bound([201, 0]);
    expect(bound(...times(12, [20, 0] as const))).toBeGreaterThan(alone + 20);
    expect(bound(...times(100, [70, 30] as const))).toBeGreaterThan(alone);
  });

  it('matches what docs/quality.md says about its examples', () => {
    expect(
      lowerBoundFrom(
        {
          ...evidenceOf([
            [95, 5],
            [5, 0],
          ]),
          latencyUs: 31_500,
        },
        20_000,
      ),
    ).toBe(63.7);
    const rows = [[[201, 0]], times(3, [100, 0]), times(100, [80, 20]), times(12, [20, 0])] as Tally[][];
    const found = rows.map((buyers) => [qualityFrom(evidenceOf(buyers), 20_000), bound(...buyers)]);
    expect(found).toEqual([
      [58.8, 59.4],
      [68.8, 77],
      [75.9, 74.7],
      [81.8, 88.5],
    ]);
  });

  it('is that of an unknown service if nothing is known', () => {
    expect(lowerBoundFrom({ weight: 0, succeeded: 0, latencyUs: null }, null)).toBe(UNKNOWN_QUALITY.lowerBound);
  });
});
