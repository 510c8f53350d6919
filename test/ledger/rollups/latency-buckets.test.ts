import fc from 'fast-check';
import { expect, it } from 'vitest';
import { BUCKETS, bucketOf, quantile } from '../../../src/ledger/rollups/latency-buckets.ts';

const histogramOf = (latencies: readonly number[]): number[] => {
  const histogram = new Array<number>(BUCKETS).fill(0);
  for (const latency of latencies) histogram[bucketOf(latency)] = (histogram[bucketOf(latency)] as number) + 1;
  return histogram;
};

it('a quantile is within 10 % of the true one, from 1 ms to 1 h', () => {
  const latency = fc.double({ min: 0, max: 1, noNaN: true }).map((x) => Math.round(1_000 * 3_600_000 ** x));
  const property = fc.property(
    fc.array(latency, { minLength: 1, maxLength: 200 }),
    fc.constantFrom(0.01, 0.5, 0.95, 0.99, 1),
    (latencies, q) => {
      const sorted = [...latencies].sort((a, b) => a - b);
      const exact = sorted[Math.max(0, Math.ceil(q * sorted.length - 1e-9) - 1)] as number;
      const found = quantile(histogramOf(latencies), q) as number;
      expect(Math.abs(found / exact - 1)).toBeLessThan(0.1);
    },
  );
  fc.assert(property, { numRuns: 500 });
});

it('a quantile of no calls is absent, and latencies beyond the buckets count in the first and the last bucket', () => {
  expect(quantile(histogramOf([]), 0.5)).toBeNull();
  expect([bucketOf(0), bucketOf(999), bucketOf(1_000)]).toEqual([0, 0, 1]);
  expect(bucketOf(Number.MAX_SAFE_INTEGER)).toBe(BUCKETS - 1);
  expect(quantile(histogramOf([Number.MAX_SAFE_INTEGER]), 0.99)).toBeGreaterThan(3_600_000_000);
});
