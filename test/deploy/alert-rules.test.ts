import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { findPromtool } from '../../scripts/local/promtool-install.mjs';
import { ERRORS } from '../../src/errors.ts';
import {
  metricsOf,
  PROMETHEUS,
  RUNBOOKS,
  readAlertCases,
  readRules,
  runbookCommands,
  runbookNames,
} from './watched.ts';

const run = promisify(execFile);

/** Rejects, with the output, when promtool finds a fault. */
const promtool = async (...args: string[]): Promise<string> =>
  (await run(findPromtool(), args, { cwd: PROMETHEUS })).stdout;

const names = readRules().map(({ alert }) => alert);

describe('the alert rules', () => {
  it('are valid, and so is the example scrape configuration for them', async () => {
    expect(await promtool('check', 'config', 'prometheus.yml')).toContain(`${names.length} rules found`);
  });

  it('fire when they should, and stay quiet when they should not', async () => {
    expect(await promtool('test', 'rules', 'alerts.test.yml')).toContain('SUCCESS');
  });

  it('each have a test case that fires, and one that does not', () => {
    const cases = readAlertCases();
    const fires = cases.filter(({ exp_alerts }) => exp_alerts.length > 0).map(({ alertname }) => alertname);
    const quiet = cases.filter(({ exp_alerts }) => exp_alerts.length === 0).map(({ alertname }) => alertname);
    expect([...new Set(fires)].sort()).toEqual([...names].sort());
    expect([...new Set(quiet)].sort()).toEqual([...names].sort());
  });

  it('say whether somebody must act now', () => {
    for (const { alert, labels } of readRules())
      expect([alert, labels.severity]).toEqual([alert, expect.stringMatching(/^(page|ticket)$/)]);
  });

  it('refer only to error codes that exist', () => {
    const codes = readRules().flatMap(({ expr }) => Array.from(expr.matchAll(/error="(\w+)"/g), ([, code]) => code));
    expect(codes.length).toBeGreaterThan(0);
    expect(codes.filter((code) => !Object.hasOwn(ERRORS, code as string))).toEqual([]);
  });
});

describe('a runbook', () => {
  it('exists for each alert, which links to it, and for nothing else', () => {
    expect([...runbookNames()].sort()).toEqual([...names].sort());
    for (const { alert, annotations } of readRules()) expect(annotations.runbook).toBe(`${RUNBOOKS}/${alert}.md`);
  });

  it('contains commands', () => {
    for (const name of runbookNames()) expect([name, runbookCommands(name).length > 0]).toEqual([name, true]);
  });
});

describe('the metrics of a query', () => {
  it.each([
    [
      'sum by (job) (rate(a_total{x="b_total"}[5m])) / on (job) group_left () (c or d offset 5m)',
      ['a_total', 'c', 'd'],
    ],
    ['min_over_time(max by (job) (a)[10m:1m]) > 0.5 * up', ['a', 'up']],
    ['histogram_quantile(0.99, sum by (le) (rate(a_bucket{job="$job"}[$__rate_interval]))) > bool 1', ['a_bucket']],
    ['label_values(up{job="tollgate"}, instance)', ['up']],
  ])('in %s exist', (query, found) => {
    expect(metricsOf(query)).toEqual(found);
  });
});
