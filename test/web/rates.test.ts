import { describe, expect, it } from 'vitest';
import {
  everySecond,
  outcomes,
  ratesBetween,
  type Traffic,
  withSnapshot,
} from '../../web/src/console/admin/live/rates.ts';

type Worker = Traffic['workers'][number];

const worker = (instance: string, completed: number, more: Partial<Worker['calls']> = {}, startedAt = 0): Worker => ({
  instance,
  worker: 1,
  host: 'a',
  pid: 1,
  version: '1',
  started_at: new Date(startedAt).toISOString(),
  uptime_seconds: 1,
  memory_bytes: 1,
  cpu: 0,
  event_loop_delay_ms: 0,
  recent: null,
  calls: { admitted: completed, completed, refunded: {}, refused: {}, open: 0, ...more },
});
const at = (second: number, ...workers: Worker[]): Traffic => ({
  at: new Date(second * 1_000).toISOString(),
  totals: { workers: workers.length, open: 0, calls_per_second: 0, p50_ms: 1, p99_ms: second },
  workers,
});

describe('rates between two snapshots', () => {
  it('add up over workers, by the outcome of the calls', () => {
    const before = at(100, worker('a', 10), worker('b', 5, { refused: { rate_limited: 1 } }));
    const after = at(
      102,
      worker('a', 30, { refunded: { upstream_5xx: 3, caller_gone: 1 } }),
      worker('b', 5, { refused: { rate_limited: 1, unauthorized: 6 } }),
    );
    expect(ratesBetween(before, after)).toEqual({ completed: 10, refunded: 2, refused: 3 });
  });

  it('are not distorted by workers that start, stop or are missed once', () => {
    const before = at(100, worker('a', 10), worker('gone', 1_000));
    const started = worker('new', 4, {}, 101_000);
    const missedBefore = worker('old', 5_000, {}, 0);
    expect(ratesBetween(before, at(102, worker('a', 10), started, missedBefore))?.completed).toBe(2);
  });

  it('are unknown if no time passed between the snapshots', () => {
    expect(ratesBetween(at(100), at(100))).toBeNull();
    expect(ratesBetween(at(100), at(99))).toBeNull();
  });
});

it('the chart covers the last two minutes, with gaps where nothing arrived', () => {
  let points = withSnapshot([], null, at(1, worker('a', 0)));
  for (let second = 2; second <= 300; second++) {
    if (second >= 290 && second < 295) continue;
    points = withSnapshot(points, at(second - 1, worker('a', second - 1)), at(second, worker('a', second)));
  }
  const shown = everySecond(points, 300);
  expect(shown.map((point) => point.at)).toEqual(Array.from({ length: 120 }, (_, index) => 181 + index));
  expect(shown.filter(({ rates }) => rates === null).map((point) => point.at)).toEqual([290, 291, 292, 293, 294]);
  expect(shown.at(-1)).toEqual({ at: 300, rates: { completed: 1, refunded: 0, refused: 0 }, p99: 300 });
  expect(points.length).toBeLessThanOrEqual(120);
});

it('outcomes are totals over all workers, the most frequent first', () => {
  const one = worker('a', 5, { refunded: { upstream_5xx: 7 }, refused: { rate_limited: 1 } });
  expect(outcomes(at(1, one, worker('b', 1)))).toEqual([
    ['refunded', 'upstream_5xx', 7],
    ['completed', '', 6],
    ['refused', 'rate_limited', 1],
  ]);
});
