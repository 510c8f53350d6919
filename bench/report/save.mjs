// @ts-check
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { machineLines } from './machine.mjs';
import { toMarkdown } from './text.mjs';

const resultsDir = fileURLToPath(new URL('../results', import.meta.url));

/**
 * Writes bench/results/<date>-<scenario>.json (every sample) and .md (what was printed).
 * @param {object} result
 * @param {string} result.scenario
 * @param {string} result.question
 * @param {Date} result.date
 * @param {import('./machine.mjs').Machine} result.machine
 * @param {object} result.options
 * @param {string} result.command
 * @param {import('../run.mjs').Findings} result.findings
 * @param {(peer: string) => string} titleOf
 * @returns {string} the JSON file
 */
export function saveResult({ scenario, question, date, machine, options, command, findings }, titleOf) {
  mkdirSync(resultsDir, { recursive: true });
  // With the time of day: a second run of a day is another result, not a correction of the first.
  const stamp = date.toISOString().slice(0, 16).replace(':', '');
  const file = path.join(resultsDir, `${stamp}-${scenario}`);
  const json = { scenario, question, date, command, options, machine, ...findings };
  writeFileSync(`${file}.json`, `${JSON.stringify(json, null, 1)}\n`);
  const lines = [
    `# ${scenario}`,
    '',
    question,
    '',
    `\`${command}\` on ${date.toISOString()}`,
    '',
    ...machineLines(machine).map((line) => `- ${line}`),
    ...toMarkdown(findings, titleOf),
    ...(findings.notes.length === 0 ? [] : ['', ...findings.notes.map((note) => `- ${note}`)]),
  ];
  writeFileSync(`${file}.md`, `${lines.join('\n')}\n`);
  return `${file}.json`;
}
