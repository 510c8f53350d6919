import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { evaluate, promisedOf } from '../../bench/report/bars.mjs';
import { drawChart } from '../../bench/report/chart.mjs';
import { type Run, saveRun } from '../../bench/report/save.mjs';
import { callColumns, toRows } from '../../bench/report/summary.mjs';
import { noErrors, ratioBar, runOf, sample, titleOf } from './helpers.ts';

const samples = [1, 2, 3].flatMap((round) => [sample('a', round, 11.25 + round), sample('b', round, 30.5 + round)]);

function findings(of = samples): Run['results'][number]['findings'] {
  return { columns: callColumns, rows: toRows(of), bars: evaluate(of, [ratioBar]), samples: of, notes: [] };
}

const meteredGet = (of = samples): Run =>
  runOf([{ name: 'metered-get', bars: [promisedOf(ratioBar)], findings: findings(of) }]);

/** Throws unless every opened tag is closed in order and every & begins an entity. Returns the contents of all text elements. */
function parseXml(xml: string): { texts: string[] } {
  const open: string[] = [];
  const texts: string[] = [];
  const token = /<(\/?)([a-z]+)((?: [\w:-]+="[^"<]*")*)(\/?)>|([^<]+)|</gy;
  for (const [whole, closing, name, , isEmpty, text] of xml.matchAll(token)) {
    if (text !== undefined) {
      if (/&(?!amp;|lt;|gt;|quot;)/.test(text)) throw new Error(`a bare & in ${text}`);
      if (open.at(-1) === 'text') texts.push(text);
    } else if (name === undefined) throw new Error(`not a tag: ${whole}`);
    else if (closing) {
      if (open.pop() !== name) throw new Error(`</${name}> closes nothing`);
    } else if (!isEmpty) open.push(name);
  }
  if (open.length > 0) throw new Error(`not closed: ${open}`);
  return { texts };
}

describe('the chart of a run', () => {
  it('is well-formed XML even if the processor name contains special characters', () => {
    const svg = drawChart(meteredGet(), titleOf) ?? '';
    const { texts } = parseXml(svg);
    expect(texts.join('\n')).toContain('R&amp;D &lt;chip&gt;');
    expect(() => parseXml(svg.replace('</text>', ''))).toThrow();
  });

  it('shows every peer with its median, and every bar with the measured value, the limit and the verdict', () => {
    const { texts } = parseXml(drawChart(meteredGet(), titleOf) ?? '');
    for (const wanted of [
      'A',
      '13.3',
      'B',
      '32.5',
      '64 connections',
      'CPU of a to b',
      '0.41',
      '≤ 0.6',
      'stretch met',
    ]) {
      expect(texts).toContain(wanted);
    }
  });

  it('draws bars whose lengths are proportional to their values', () => {
    const svg = drawChart(meteredGet(), titleOf) ?? '';
    const [a, b] = [...svg.matchAll(/<rect x="384" [^>]*width="([\d.]+)"/g)].map((match) => Number(match[1]));
    expect(Number(a) / Number(b)).toBeCloseTo(13.25 / 32.5, 3);
  });

  it('shows INVALID instead of an invalid value', () => {
    const failed = samples.map((one) => (one.peer === 'a' ? { ...one, errors: { ...noErrors, status: 1 } } : one));
    const { texts } = parseXml(drawChart(meteredGet(failed), titleOf) ?? '');
    expect(texts.filter((text) => text === 'INVALID')).toHaveLength(2);
    expect(texts).not.toContain('13.3');
  });

  it('draws its own background', () => {
    expect(drawChart(meteredGet(), titleOf)).toMatch(/<rect x="0.5" y="0.5" [^>]*fill="#ffffff"/);
  });

  it('is not drawn if there is nothing to show', () => {
    expect(drawChart(runOf([{ name: 'target', bars: [], findings: findings() }]), titleOf)).not.toContain(
      'CPU of the proxy',
    );
    expect(drawChart(runOf([{ name: 'target', bars: [], findings: null }]), titleOf)).toBeNull();
  });
});

describe('a run that is saved', () => {
  let resultsDir = '';
  beforeEach(() => {
    resultsDir = mkdtempSync(path.join(tmpdir(), 'tollgate-results-'));
  });
  afterEach(() => rmSync(resultsDir, { recursive: true }));

  it('is written as one JSON file, one page and one chart, and replaces the latest chart if everything was measured', () => {
    saveRun(meteredGet(), titleOf, { isWhole: true, resultsDir });
    const name = '2026-11-21T1600';
    expect(readdirSync(resultsDir).sort()).toEqual([`${name}.json`, `${name}.md`, `${name}.svg`, 'latest.svg']);
    const json = JSON.parse(readFileSync(path.join(resultsDir, `${name}.json`), 'utf8'));
    expect(json.results[0].findings.samples).toHaveLength(6);
    const page = readFileSync(path.join(resultsDir, `${name}.md`), 'utf8');
    expect(page).toContain(`(${name}.svg)`);
    expect(page).toMatch(/CPU of a to b \| 64 connections \| 0\.41/);
  });

  it('does not replace the latest chart if only one scenario was measured', () => {
    saveRun(meteredGet(), titleOf, { isWhole: false, resultsDir });
    expect(readdirSync(resultsDir)).not.toContain('latest.svg');
  });

  it('says that a scenario failed, and why', () => {
    const run = runOf([{ name: 'download', bars: [promisedOf(ratioBar)], findings: null }]);
    const [, page = ''] = saveRun(run, titleOf, { isWhole: false, resultsDir });
    expect(readFileSync(page, 'utf8')).toMatch(/not measured[\s\S]*FAILED: it broke/);
  });
});
