import { expect, it } from 'vitest';
import { bucketOf, countLatency, noLatencies, quantile } from '../../src/ledger/rollups/latency-buckets.ts';
import { trafficJson } from '../../src/routes/admin/traffic.ts';
import { RecentCallsWindow } from '../../src/traffic/recent-calls.ts';
import { encodeReport, type Report } from '../../src/traffic/report.ts';

const process = { host: 'a', pid: 1, version: '1', startedAtMs: 0, role: 'gateway', shards: null } as const;
const load = { memoryBytes: 1, cpu: 0, loopDelayMs: 0 };
const none = { admitted: 0, completed: 0, open: 1, refunded: {}, refused: {} };

it('the rates cover the last five seconds, and count only calls that ended in them', () => {
  const histogram = noLatencies();
  const window = new RecentCallsWindow(histogram);
  countLatency(histogram, 5_000);
  window.start(0);
  expect(window.read(0)).toBeNull();
  for (let second = 1; second <= 20; second++) {
    countLatency(histogram, 2_000);
    const recent = window.read(second * 1_000);
    expect(recent?.buckets).toEqual([[bucketOf(2_000), Math.min(second, 5)]]);
    expect(recent?.seconds).toBe(Math.min(second, 5));
  }
  expect(window.read(21_000)).toMatchObject({ buckets: [[bucketOf(2_000), 4]] });
});

it('the rates of all workers are added up, and percentiles are computed over all calls, not over percentiles', () => {
  // A worker with 98 quick calls, and one with two slow ones: the p99 of all is slow, the median is quick.
  const of = (instance: string, latencyUs: number, calls: number): Report => ({
    ...process,
    instance,
    worker: 1,
    load,
    calls: none,
    recent: { seconds: 2, buckets: [[bucketOf(latencyUs), calls]] },
  });
  const { totals, workers } = trafficJson([of('a', 10_000, 98), of('b', 900_000, 2)]) as {
    totals: { p50_ms: number; p99_ms: number };
    workers: { recent: unknown }[];
  };
  const slow = Math.round((quantile([...Array(bucketOf(900_000)).fill(0), 1], 1) ?? 0) / 100) / 10;
  expect(totals).toMatchObject({ workers: 2, open: 2, calls_per_second: 50, p99_ms: slow });
  expect(totals.p50_ms).toBeGreaterThan(9);
  expect(totals.p50_ms).toBeLessThan(11);
  expect(workers[1]?.recent).toMatchObject({ calls: 2, calls_per_second: 1, p50_ms: slow });
});

it('a value is null, not zero, when no call ended', () => {
  const quiet: Report = {
    ...process,
    instance: 'a',
    worker: 1,
    load,
    calls: none,
    recent: { seconds: 1, buckets: [] },
  };
  expect(trafficJson([quiet, { ...quiet, recent: null }])).toMatchObject({
    totals: { calls_per_second: 0, p50_ms: null, p99_ms: null },
    workers: [{ recent: { p99_ms: null } }, { recent: null }],
  });
  expect(encodeReport(quiet).length).toBeLessThan(400);
});
