// @ts-check
// Writes a run to files: bench/results/<date>.json (every sample), .md (what was printed) and .svg (the chart).
// Tested by test/bench/chart.test.ts.

import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisedBars } from './bars.mjs';
import { drawChart } from './chart.mjs';
import { machineLines } from './machine.mjs';
import { barsToMarkdown, toMarkdown } from './text.mjs';

/**
 * @typedef {import('../run.mjs').ScenarioResult} ScenarioResult
 *
 * @typedef {object} Run
 * @property {Date} date
 * @property {import('./machine.mjs').Machine} machine
 * @property {string} command
 * @property {readonly ScenarioResult[]} results
 *
 * @typedef {(peer: string) => string} TitleOf
 */

const defaultDir = fileURLToPath(new URL('../results', import.meta.url));
/** The chart that README.md shows. */
const latestChart = 'latest.svg';

/**
 * @param {Run} run
 * @param {TitleOf} titleOf
 * @param {{ isWhole: boolean, resultsDir?: string }} options isWhole: the run measured everything, so its chart replaces `latestChart`
 * @returns {string[]} the files that were written
 */
export function saveRun(run, titleOf, { isWhole, resultsDir = defaultDir }) {
  mkdirSync(resultsDir, { recursive: true });
  // The name has the time of day, so that a second run on the same day does not replace the first.
  const stamp = run.date.toISOString().slice(0, 16).replace(':', '');
  const name = isWhole ? stamp : [stamp, ...run.results.map((result) => result.name)].join('-');
  const file = (/** @type {string} */ extension) => path.join(resultsDir, `${name}.${extension}`);
  const files = [file('json'), file('md')];
  writeFileSync(file('json'), `${JSON.stringify(run, null, 1)}\n`);
  const chart = drawChart(run, titleOf);
  if (chart !== null) {
    writeFileSync(file('svg'), chart);
    files.push(file('svg'));
  }
  writeFileSync(file('md'), `${toPage(run, titleOf, chart === null ? null : `${name}.svg`).join('\n')}\n`);
  if (isWhole && chart !== null) {
    const latest = path.join(resultsDir, latestChart);
    copyFileSync(file('svg'), latest);
    files.push(latest);
  }
  return files.map((one) => path.relative(process.cwd(), one));
}

/** @param {Run} run @param {TitleOf} titleOf @param {string | null} chart @returns {string[]} */
function toPage({ date, machine, command, results }, titleOf, chart) {
  const bars = promisedBars(results);
  return [
    `# Benchmark of ${date.toISOString().slice(0, 10)}`,
    '',
    `\`${command}\` on ${date.toISOString()}`,
    '',
    ...machineLines(machine).map((line) => `- ${line}`),
    ...(chart === null ? [] : ['', `![CPU per metered call, and the bars](${chart})`]),
    ...(bars.length === 0 ? [] : ['', '## Bars', '', ...barsToMarkdown(bars)]),
    ...results.flatMap((result) => toSection(result, titleOf)),
  ];
}

/** @param {ScenarioResult} result @param {TitleOf} titleOf @returns {string[]} */
function toSection({ name, question, findings, failure }, titleOf) {
  const head = ['', `## ${name}`, '', question];
  if (findings === null) return [...head, '', `FAILED: ${failure}`];
  const notes = findings.notes.map((note) => `- ${note}`);
  return [...head, ...toMarkdown(findings, titleOf), ...(notes.length === 0 ? [] : ['', ...notes])];
}
