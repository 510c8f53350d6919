import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Histogram } from '../../bench/load/histogram.mjs';

const filled = (values: readonly number[]): Histogram => {
  const histogram = new Histogram();
  for (const value of values) histogram.record(value);
  return histogram;
};

describe('percentiles of the histogram', () => {
  it('are off by at most one part in 64, whatever was recorded', () => {
    const values = fc.array(fc.integer({ min: 0, max: 60_000_000 }), { minLength: 1, maxLength: 200 });
    const shares = fc.constantFrom(0.5, 0.9, 0.99, 0.999, 1);
    fc.assert(
      fc.property(values, shares, (recorded, share) => {
        const sorted = [...recorded].sort((a, b) => a - b);
        const exact = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] as number;
        const found = filled(recorded).percentile(share);
        expect(found).toBeGreaterThanOrEqual(exact);
        expect(found).toBeLessThanOrEqual(exact + Math.floor(exact / 64) + 1);
      }),
    );
  });

  it('one slow call in a thousand is seen by p99.9 and by max, not by p99', () => {
    const summary = filled([...Array.from({ length: 998 }, () => 100), 50_000, 50_000]).summary();
    expect(summary.p99).toBeLessThan(102);
    expect(summary.p999).toBe(50_000);
    expect(summary.max).toBe(50_000);
  });

  it('of nothing are zero', () => {
    expect(new Histogram().summary()).toEqual({ p50: 0, p90: 0, p99: 0, p999: 0, max: 0 });
  });

  it('a value beyond the range is counted in the last bucket', () => {
    const histogram = filled([1e15]);
    expect(histogram.total).toBe(1);
    expect(histogram.percentile(1)).toBeGreaterThan(1e9);
  });
});
