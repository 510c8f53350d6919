import { expect, it } from 'vitest';
import { chartData } from '../../web/src/site/service-chart-data.ts';

it('30 days up to today in UTC: counts of a day without calls are 0, and what was not measured is a gap', () => {
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
