import { expect, it } from 'vitest';
import { chartData, hourData } from '../../web/src/site/service-chart-data.ts';

it('the chart covers 30 days up to today in UTC, with 0 calls on days without calls and gaps for unmeasured values', () => {
  const day = (of: string, calls: number) => ({
    day: of,
    calls,
    succeeded: calls,
    failed: 0,
    caller_errors: 0,
    caller_left: 0,
    unavailable: 0,
    success_rate: 1,
    latency_ms: { p50: 5, p95: 9, p99: 9 },
    price_charged: { median: 0.002, p95: 0.01, at_cap: null },
  });
  const data = chartData(
    [day('2026-11-22', 3), day('2026-10-24', 1), day('2026-10-23', 7)],
    Date.parse('2026-11-22T23:59:59Z'),
  );
  expect(data.times).toHaveLength(30);
  expect(data.times[0]).toBe(Date.parse('2026-10-24T00:00:00Z') / 1_000);
  expect(data.times[29]).toBe(Date.parse('2026-11-22T00:00:00Z') / 1_000);
  expect(data.succeeded).toEqual([1, ...Array(28).fill(0), 3]);
  expect(data.successRate).toEqual([1, ...Array(28).fill(null), 1]);
  expect(data.p95).toEqual([9, ...Array(28).fill(null), 9]);
  expect(data.priceMedian).toEqual([0.002, ...Array(28).fill(null), 0.002]);
});

it('the chart covers hours from the first call of a new service, at least a day of them, with gaps for unmeasured values', () => {
  const hour = (of: string, latency: number | null) => ({
    hour: of,
    calls: 2,
    succeeded: latency === null ? 0 : 2,
    failed: latency === null ? 2 : 0,
    caller_errors: 0,
    caller_left: 0,
    unavailable: 0,
    success_rate: latency === null ? 0 : 1,
    latency_ms: latency,
  });
  const now = Date.parse('2026-11-22T10:59:59Z');
  const young = hourData([hour('2026-11-22T09:00:00.000Z', 21.4)], now);
  expect(young.times).toHaveLength(24);
  expect(young.times.at(-1)).toBe(Date.parse('2026-11-22T10:00:00Z') / 1_000);
  expect(young.succeeded).toEqual([...Array(22).fill(0), 2, 0]);
  expect(young.latency).toEqual([...Array(22).fill(null), 21.4, null]);
  const older = hourData([hour('2026-11-20T23:00:00.000Z', null), hour('2026-11-22T10:00:00.000Z', 5)], now);
  expect(older.times).toHaveLength(36);
  expect(older.failed).toEqual([2, ...Array(35).fill(0)]);
  expect(older.successRate).toEqual([0, ...Array(34).fill(null), 1]);
});
