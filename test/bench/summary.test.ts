import { describe, expect, it } from 'vitest';
import { evaluate } from '../../bench/report/bars.mjs';
import { callColumns, median, toRows } from '../../bench/report/summary.mjs';
import { toMarkdown, toTerminal } from '../../bench/report/text.mjs';
import { noErrors, ratioBar, sample, titleOf } from './helpers.ts';

describe('rows of a result', () => {
  it('are medians of the rounds with their ranges, and the sum of the errors', () => {
    const failed = { ...noErrors, status: 1, socket: 2 };
    const rows = toRows([sample('a', 1, 10), sample('a', 2, 90, failed), sample('a', 3, 20, failed)]);
    expect(rows).toHaveLength(1);
    expect(rows[0]?.values).toMatchObject({ proxyMicros: 20, errors: 6, redisMicros: null });
    expect(rows[0]?.ranges.proxyMicros).toEqual([10, 90]);
  });

  it('say INVALID if there was a single error, in the terminal and in Markdown', () => {
    const samples = [sample('a', 1, 10, { ...noErrors, status: 1 }), sample('b', 1, 20)];
    const findings = { columns: callColumns, rows: toRows(samples), bars: evaluate(samples, [ratioBar]) };
    for (const text of [toTerminal(findings, titleOf).join('\n'), toMarkdown(findings, titleOf).join('\n')]) {
      expect(text).toMatch(/INVALID A/);
      expect(text).not.toMatch(/INVALID B/);
      // A ratio that was computed from this row does not meet its bar either.
      expect(text).not.toMatch(/\bmet\b/);
    }
  });

  it('show the CPU of the cheapest and the most expensive round beside the median', () => {
    const samples = [sample('a', 1, 10), sample('a', 2, 12), sample('a', 3, 11)];
    const text = toTerminal({ columns: callColumns, rows: toRows(samples), bars: [] }, titleOf).join('\n');
    expect(text).toContain('11.0 (10.0–12.0)');
  });

  it('add up the CPU of all parts of a peer per call, and show nothing where there is no proxy', () => {
    const cpuMicros = { proxy: 10, redis: 5, replicas: null, writer: 2.5, postgres: 4 };
    const none = { proxy: null, redis: null, replicas: null, writer: null, postgres: null };
    const rows = toRows([
      { ...sample('a', 1, 10), cpuMicros },
      { ...sample('b', 1, 10), cpuMicros: none },
      sample('c', 1, 10),
    ]);
    expect(rows.map(({ values }) => values.wholeMicros)).toEqual([21.5, null, 10]);
  });

  it('use the mean of the two middle rounds as the median if the number of rounds is even', () => {
    expect(median([4, 1, 2, 3])).toBe(2.5);
  });
});
