import { describe, expect, it } from 'vitest';
import { newHistogram, recordMicros, summaryOf } from '../../bench/load/histogram.mjs';

const filled = (values: readonly number[]) => {
  const histogram = newHistogram();
  for (const value of values) recordMicros(histogram, value);
  return histogram;
};

describe('a summary of latencies', () => {
  it('shows one slow call in a thousand in p99.9 and in max, not in p99', () => {
    const { p50, p99, p999, max } = summaryOf(filled([...Array.from({ length: 998 }, () => 100), 50_000, 50_000]));
    expect([p50, p99]).toEqual([100, 100]);
    for (const slow of [p999, max]) {
      expect(slow).toBeGreaterThanOrEqual(50_000);
      expect(slow).toBeLessThanOrEqual(50_050);
    }
  });

  it('is never below the recorded value, and is above it by at most one part in a thousand', () => {
    for (let micros = 1; micros < 3.5e9; micros = Math.ceil(micros * 1.037)) {
      for (const found of Object.values(summaryOf(filled([micros])))) {
        expect(found).toBeGreaterThanOrEqual(micros);
        expect(found).toBeLessThanOrEqual(micros * 1.001);
      }
    }
  });

  it('is zero when nothing was recorded', () => {
    expect(summaryOf(newHistogram())).toEqual({ p50: 0, p90: 0, p99: 0, p999: 0, max: 0 });
  });

  it('counts every latency: zero, fractions, and values beyond the range', () => {
    const histogram = filled([0, 0.4, 12.6, 1e15]);
    expect(histogram.count).toBe(4);
    expect(histogram.percentile(75)).toBe(13);
    expect(histogram.max).toBeGreaterThanOrEqual(3.6e9);
  });
});
