import { describe, expect, it } from 'vitest';
import { parseOptions } from '../../bench/options.mjs';
import { estimateRun } from '../../bench/plan.mjs';
import { type BarResult, evaluate, found, promisedBars, usedShare, verdictOf } from '../../bench/report/bars.mjs';
import { barsToMarkdown, barsToTerminal } from '../../bench/report/text.mjs';
import { findScenarios } from '../../bench/scenarios/index.mjs';
import { ratioBar, sample } from './helpers.ts';

const of = (measured: number, promised: Partial<BarResult> = {}): BarResult =>
  found({ ...ratioBar, ...promised }, '64 connections', [measured], promised.isValid ?? true);

describe('a bar on the ratio of two peers', () => {
  it('compares the peers within each round, so a machine that slows down for both changes nothing', () => {
    const samples = [1, 2, 4].flatMap((factor, index) => [
      sample('a', index + 1, 5 * factor),
      sample('b', index + 1, 10 * factor),
    ]);
    expect(evaluate(samples, [ratioBar])).toMatchObject([{ measured: 0.5, lowest: 0.5, highest: 0.5, isValid: true }]);
  });

  it('says that it was not measured if one of the two peers was left out', () => {
    const results = evaluate([sample('a', 1, 10)], [{ ...ratioBar, loads: 'few' }]);
    expect(results.map(verdictOf)).toEqual(['not measured']);
    expect(barsToTerminal(results).join('\n')).toMatch(/few .*not measured/);
  });

  it('is evaluated only for the loads that it names', () => {
    const samples = [16, 64].flatMap((connections) =>
      ['a', 'b'].map((peer) => ({ ...sample(peer, 1, connections), connections })),
    );
    const results = evaluate(samples, [{ ...ratioBar, where: (connections: number) => connections > 16 }]);
    expect(results.map(({ label }) => label)).toEqual(['64 connections']);
  });
});

it('a bar on a single peer compares the median of its rounds', () => {
  const samples = [1, 2, 9].map((micros, index) => sample('a', index + 1, micros));
  const bar = { ...ratioBar, against: null, unit: 'KiB', bar: 2, stretch: 1 };
  expect(evaluate(samples, [bar])).toMatchObject([{ measured: 2, lowest: 1, highest: 9 }]);
});

describe('the verdict on a bar', () => {
  const throughput = { is: 'at least', bar: 0.9, stretch: 0.97 } as const;
  it.each([
    ['at most 0.6', 0.45, {}, 'stretch met'],
    ['at most 0.6', 0.46, {}, 'met'],
    ['at most 0.6', 0.6, {}, 'met'],
    ['at most 0.6', 0.61, {}, 'MISSED'],
    ['at least 0.9', 0.97, throughput, 'stretch met'],
    ['at least 0.9', 0.9, throughput, 'met'],
    ['at least 0.9', 0.89, throughput, 'MISSED'],
    ['a failed run', 0.1, { isValid: false }, 'INVALID'],
    ['no bar', 0.1, { bar: null, stretch: null }, ''],
  ] as const)('of $0 with $1 measured is $3', (_bar, measured, promised, verdict) => {
    expect(verdictOf(of(measured, promised))).toBe(verdict);
  });

  it('says by how much a bar was missed, for "at most" and for "at least"', () => {
    expect(barsToMarkdown([of(0.9)]).join('\n')).toContain('MISSED by 50 %');
    const slow = of(40_000, { is: 'at least', unit: 'events/s', bar: 50_000, stretch: 100_000 });
    expect(barsToMarkdown([slow]).join('\n')).toMatch(/40\u2009?.000 events\/s .*≥ 50.000 events\/s .*MISSED by 20 %/);
    expect(usedShare(slow, 40_000)).toBe(1.25);
  });
});

it('the bars of a failed scenario count as not measured', () => {
  const [result] = promisedBars([{ findings: null, bars: [ratioBar] }]);
  expect(result && verdictOf(result)).toBe('not measured');
});

describe('the scenarios', () => {
  it('include every bar that the project promises, and set each stretch goal beyond its bar', async () => {
    const bars = (await findScenarios(null)).flatMap((scenario) => scenario.bars).filter(({ bar }) => bar !== null);
    const limits = bars.map(({ bar, stretch }) => `${bar}/${stretch}`).sort();
    const promised = ['0.6/0.45', '0.75/0.6', '2.6/2', '0.25/0.15', '1/0.7', '1/0.7', '1.3/1', '20/10', '256/64'];
    promised.push('0.6/0.4', '0.6/0.4', '50000/100000', '0.9/0.97');
    // CPU, p50 and p99 at two modest rates (p50 has no stretch goal), and an idle installation.
    promised.push('1/0.8', '1/0.8', '1/null', '1/null', '1/0.7', '1/0.7', '5/2');
    // CPU of the whole call: few and many connections, two modest rates; and the p99 next to nginx + Lua + Redis.
    promised.push('0.95/null', '0.8/null', '1/null', '1/null', '1.2/null');
    expect(limits).toEqual(promised.sort());
    for (const { is, bar, stretch } of bars) {
      if (stretch === null) continue;
      expect(is === 'at most' ? Number(stretch) < Number(bar) : Number(stretch) > Number(bar)).toBe(true);
    }
  });

  it('each state a question, and take at most 21 minutes in total', async () => {
    const scenarios = await findScenarios(null);
    for (const { question } of scenarios) expect(question).toMatch(/\?$/);
    expect(estimateRun(scenarios, parseOptions([]))).toBeLessThanOrEqual(21 * 60);
  });

  it('are listed in the error for an unknown scenario name', async () => {
    await expect(findScenarios(['nothing'])).rejects.toThrow(/there are: metered-get/);
  });
});
