import { describe, expect, it } from 'vitest';
import type { Sample } from '../../bench/measure/sample.mjs';
import { type Bar, callColumns, compare, median, toRows } from '../../bench/report/summary.mjs';
import { toMarkdown, toTerminal } from '../../bench/report/text.mjs';

const noErrors = { connect: 0, socket: 0, timeout: 0, status: 0 };

const sample = (peer: string, round: number, proxyMicros: number, errors = noErrors): Sample => ({
  peer,
  round,
  errors,
  variant: '',
  tolerated: 0,
  connections: 64,
  seconds: 4,
  calls: 40_000,
  callsPerSecond: 10_000,
  latency: { p50: 1000, p90: 2000, p99: 3000, p999: 4000, max: 5000 },
  bytes: 1,
  cpuMicros: { proxy: proxyMicros, redis: null, writer: null, postgres: null },
  tripsPerCall: null,
  rssBytes: 2 ** 20,
  rssDuringBytes: 2 ** 20,
  settledSeconds: 0,
  foreignShare: 0,
  stolenShare: 0,
});

const bar: Bar = {
  what: 'CPU of a to b',
  of: { peer: 'a' },
  against: { peer: 'b' },
  metric: ({ cpuMicros }) => cpuMicros.proxy,
  bar: 0.6,
  stretch: 0.45,
};
const titleOf = (peer: string): string => peer.toUpperCase();

describe('rows of a result', () => {
  it('are medians over the rounds, with the sum of the errors', () => {
    const failed = { ...noErrors, status: 1, socket: 2 };
    const rows = toRows([sample('a', 1, 10), sample('a', 2, 90, failed), sample('a', 3, 20, failed)]);
    expect(rows).toHaveLength(1);
    expect(rows[0]?.values).toMatchObject({ proxyMicros: 20, errors: 6, redisMicros: null });
  });

  it('with a single error say INVALID, in the terminal and in Markdown', () => {
    const samples = [sample('a', 1, 10, { ...noErrors, status: 1 }), sample('b', 1, 20)];
    const findings = { columns: callColumns, rows: toRows(samples), comparisons: compare(samples, [bar]) };
    for (const text of [toTerminal(findings, titleOf).join('\n'), toMarkdown(findings, titleOf).join('\n')]) {
      expect(text).toMatch(/INVALID A/);
      expect(text).not.toMatch(/INVALID B/);
      // Nor does a ratio that rests on the row count as a bar met.
      expect(text).not.toMatch(/bar met|bar and stretch met/);
    }
  });
});

describe('ratios of two peers', () => {
  it('are taken within a round, so that a machine that slows down for both changes nothing', () => {
    const samples = [1, 2, 4].flatMap((factor, index) => [
      sample('a', index + 1, 5 * factor),
      sample('b', index + 1, 10 * factor),
    ]);
    expect(compare(samples, [bar])).toMatchObject([{ ratio: 0.5, lowest: 0.5, highest: 0.5, isValid: true }]);
  });

  it('are left out when one of the two was not measured', () => {
    expect(compare([sample('a', 1, 10)], [bar])).toEqual([]);
  });

  it('the median of an even number of rounds is the mean of the two in the middle', () => {
    expect(median([4, 1, 2, 3])).toBe(2.5);
  });
});
