import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BOUNDS_SECONDS, LatencyHistogram } from '../../src/observability/latency-histogram.ts';
import { labelled, Metrics, renderFamilies } from '../../src/observability/metrics.ts';

const bucketOf = (us: number): number => {
  const histogram = new LatencyHistogram();
  histogram.count(us);
  return histogram.read().counts.indexOf(1);
};

describe('a latency', () => {
  it('is counted in the first bucket whose bound it does not exceed, however long it took', () => {
    const anyLatency = fc.oneof(
      fc.integer({ min: 0, max: 1_000_000 }),
      fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
      fc.constantFrom(...BOUNDS_SECONDS.flatMap((bound) => [-1, 0, 1].map((us) => Math.round(bound * 1e6) + us))),
    );
    fc.assert(
      fc.property(anyLatency, (us) => {
        const fits = BOUNDS_SECONDS.findIndex((bound) => us <= Math.round(bound * 1e6));
        expect(bucketOf(us)).toBe(fits === -1 ? BOUNDS_SECONDS.length : fits);
      }),
    );
  });

  it('of an hour has its own bucket, and a latency of days is counted in the last bucket', () => {
    expect(bucketOf(3_600e6)).toBe(BOUNDS_SECONDS.length - 1);
    expect(bucketOf(5 * 86_400e6)).toBe(BOUNDS_SECONDS.length);
  });
});

describe('a histogram of the metrics page', () => {
  it('has cumulative buckets with their sum and count, even behind the label of a worker', async () => {
    const histogram = new LatencyHistogram();
    for (const us of [100, 125, 126, 1_000, 9e9]) histogram.count(us);
    const metrics = new Metrics();
    metrics.add([{ name: 'a_seconds', help: 'A', type: 'histogram', histogram }]);
    const page = await metrics.render();
    expect(page).toContain('# TYPE a_seconds histogram');
    const samples = page.match(/^a_seconds.*$/gm) ?? [];
    expect(samples.slice(0, 5)).toEqual([
      'a_seconds_bucket{le="0.000125"} 2',
      'a_seconds_bucket{le="0.00025"} 3',
      'a_seconds_bucket{le="0.0005"} 3',
      'a_seconds_bucket{le="0.001"} 4',
      'a_seconds_bucket{le="0.002"} 4',
    ]);
    expect(samples.slice(-3)).toEqual([
      'a_seconds_bucket{le="+Inf"} 5',
      'a_seconds_sum 9000.001351',
      'a_seconds_count 5',
    ]);
    const sent = JSON.parse(JSON.stringify(labelled(await metrics.families(), 'worker', '1')));
    expect(await renderFamilies(sent)).toContain('a_seconds_bucket{worker="1",le="0.001"} 4');
  });

  it('has a series for each value of its label, and none for a value that no longer exists', async () => {
    const nodes = new Map(['a', 'b'].map((node) => [node, new LatencyHistogram()]));
    nodes.get('b')?.count(1_000);
    const metrics = new Metrics();
    const label = 'node';
    metrics.add([
      { name: 'trip_seconds', help: 'A', type: 'histogram', label, histogram: () => nodes },
      {
        name: 'ready',
        help: 'B',
        type: 'gauge',
        label,
        read: () => new Map(Array.from(nodes.keys(), (node) => [node, 1])),
      },
    ]);
    const samples = async (): Promise<unknown> => (await metrics.render()).match(/^(trip_seconds_count|ready).*$/gm);
    expect(await samples()).toEqual([
      'trip_seconds_count{node="a"} 0',
      'trip_seconds_count{node="b"} 1',
      'ready{node="a"} 1',
      'ready{node="b"} 1',
    ]);
    nodes.delete('a');
    expect(await samples()).toEqual(['trip_seconds_count{node="b"} 1', 'ready{node="b"} 1']);
  });
});
