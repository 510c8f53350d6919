import { describe, expect, it } from 'vitest';
import { evaluate } from '../../bench/report/bars.mjs';
import { callColumns, median, toRows } from '../../bench/report/summary.mjs';
import { toMarkdown, toTerminal } from '../../bench/report/text.mjs';
import { noErrors, ratioBar, sample, titleOf } from './helpers.ts';

describe('rows of a result', () => {
  it('are medians over the rounds with their range, and the sum of the errors', () => {
    const failed = { ...noErrors, status: 1, socket: 2 };
    const rows = toRows([sample('a', 1, 10), sample('a', 2, 90, failed), sample('a', 3, 20, failed)]);
    expect(rows).toHaveLength(1);
    expect(rows[0]?.values).toMatchObject({ proxyMicros: 20, errors: 6, redisMicros: null });
    expect(rows[0]?.ranges.proxyMicros).toEqual([10, 90]);
  });

  it('with a single error say INVALID, in the terminal and in Markdown', () => {
    const samples = [sample('a', 1, 10, { ...noErrors, status: 1 }), sample('b', 1, 20)];
    const findings = { columns: callColumns, rows: toRows(samples), bars: evaluate(samples, [ratioBar]) };
    for (const text of [toTerminal(findings, titleOf).join('\n'), toMarkdown(findings, titleOf).join('\n')]) {
      expect(text).toMatch(/INVALID A/);
      expect(text).not.toMatch(/INVALID B/);
      // Nor does a ratio that rests on the row count as a bar met.
      expect(text).not.toMatch(/\bmet\b/);
    }
  });

  it('show the CPU of the slowest and the fastest round beside the median', () => {
    const samples = [sample('a', 1, 10), sample('a', 2, 12), sample('a', 3, 11)];
    const text = toTerminal({ columns: callColumns, rows: toRows(samples), bars: [] }, titleOf).join('\n');
    expect(text).toContain('11.0 (10.0–12.0)');
  });

  it('the median of an even number of rounds is the mean of the two in the middle', () => {
    expect(median([4, 1, 2, 3])).toBe(2.5);
  });
});
