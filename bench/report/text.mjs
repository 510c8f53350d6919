// @ts-check
// Formats rows and bars as text, for the terminal and as Markdown.
// Tested by test/bench/summary.test.ts and test/bench/bars.test.ts.

import { verdictOf } from './bars.mjs';
import { groupBy } from './summary.mjs';

/**
 * @typedef {import('./summary.mjs').Row} Row
 * @typedef {import('./summary.mjs').Column} Column
 * @typedef {import('./bars.mjs').BarResult} BarResult
 */

/** @param {number | null | undefined} value @param {number} digits */
function formatNumber(value, digits) {
  if (value === null || value === undefined || Number.isNaN(value)) return '–';
  const text = value.toFixed(digits);
  // Groups of thousands only in whole numbers.
  return digits === 0 ? text.replace(/\B(?=(\d{3})+$)/g, ' ') : text;
}

/** @param {Row} row @param {Column} column */
function cell({ values, ranges }, { key, digits, hasRange }) {
  const median = formatNumber(values[key], digits);
  const [lowest, highest] = ranges[key] ?? [];
  if (!hasRange || lowest === highest) return median;
  return `${median} (${formatNumber(lowest, digits)}–${formatNumber(highest, digits)})`;
}

/**
 * @param {readonly Row[]} rows
 * @param {readonly Column[]} columns
 * @param {(peer: string) => string} titleOf
 */
function toCells(rows, columns, titleOf) {
  return rows.map((row) => [
    // A row with a fault is no measurement, so its name says INVALID.
    row.faults.length === 0 ? titleOf(row.peer) : `INVALID ${titleOf(row.peer)}`,
    ...columns.map((column) => cell(row, column)),
  ]);
}

/** The columns in which at least one row has a value. @param {readonly Row[]} rows @param {readonly Column[]} columns */
const usedColumns = (rows, columns) =>
  columns.filter(({ key }) => rows.some(({ values }) => values[key] !== null && values[key] !== undefined));

/** @param {readonly Row[]} rows */
const faultLines = (rows) =>
  rows.flatMap(({ label, peer, faults }) => faults.map((fault) => `INVALID ${peer}, ${label}: ${fault}`));

/** A measured value or a limit of a bar, without its unit. @param {number} value @param {string} unit */
const formatValue = (value, unit) => formatNumber(value, unit === '' ? 2 : Math.abs(value) >= 1000 ? 0 : 1);

/** A measured value with its unit. @param {number} value @param {string} unit */
export const formatMeasure = (value, unit) => [formatValue(value, unit), unit].filter(Boolean).join(' ');

/** @param {import('./bars.mjs').Promised} promised @param {number | null} value */
export function formatLimit({ is, unit }, value) {
  if (value === null) return '–';
  // A limit is a round number, so it is shown without rounding or further digits.
  const text = Number.isInteger(value) ? formatNumber(value, 0) : String(value);
  return [is === 'at most' ? '≤' : '≥', text, unit].filter(Boolean).join(' ');
}

/** @param {BarResult} result */
function verdictCell(result) {
  const verdict = verdictOf(result);
  if (verdict !== 'MISSED' || result.measured === null || result.bar === null) return verdict;
  const by = Math.abs(result.measured / result.bar - 1);
  return `MISSED by ${(by * 100).toFixed(by < 0.1 ? 1 : 0)} %`;
}

/** @param {BarResult} result */
const range = ({ lowest, highest, unit }) =>
  lowest === null || highest === null || lowest === highest
    ? ''
    : `${formatValue(lowest, unit)}–${formatValue(highest, unit)}`;

/** @param {BarResult} result */
function barCells(result) {
  const { what, label, unit, measured, bar, stretch } = result;
  return [
    what,
    label,
    measured === null ? '–' : formatMeasure(measured, unit),
    range(result),
    formatLimit(result, bar),
    formatLimit(result, stretch),
    verdictCell(result),
  ];
}

const barHead = ['', 'load', 'measured', 'rounds', 'bar', 'stretch', ''];

/** @param {readonly BarResult[]} bars */
const barTable = (bars) => [barHead, ...bars.map(barCells)];

/** For the terminal. @param {readonly BarResult[]} bars @returns {string[]} */
export const barsToTerminal = (bars) => (bars.length === 0 ? [] : align(barTable(bars)));

/** @param {readonly BarResult[]} bars @returns {string[]} */
export const barsToMarkdown = (bars) => (bars.length === 0 ? [] : markdownTable(barTable(bars)));

/** @param {readonly (readonly string[])[]} lines the first column is aligned to the left, the others to the right */
function align(lines) {
  const widths = (lines[0] ?? []).map((_, column) => Math.max(...lines.map((line) => (line[column] ?? '').length)));
  return lines.map((line) =>
    line
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join('  ')
      .trimEnd(),
  );
}

/**
 * @param {{ columns: readonly Column[], rows: readonly Row[], bars: readonly BarResult[] }} findings
 * @param {(peer: string) => string} titleOf
 * @returns {string[]}
 */
export function toTerminal({ columns, rows, bars }, titleOf) {
  const used = usedColumns(rows, columns);
  const tables = groupBy(rows, ({ label }) => label).flatMap((group) => [
    '',
    ...align([[group[0].label, ...used.map(({ title }) => title)], ...toCells(group, used, titleOf)]),
  ]);
  return [...tables, ...(bars.length === 0 ? [] : ['', ...barsToTerminal(bars)]), ...faultLines(rows)];
}

/** @param {readonly (readonly string[])[]} lines the first is the head */
function markdownTable([head = [], ...lines]) {
  const line = (/** @type {readonly string[]} */ cells) => `| ${cells.join(' | ')} |`;
  return [line(head), `|${head.map((_, column) => (column === 0 ? '---|' : '---:|')).join('')}`, ...lines.map(line)];
}

/**
 * @param {{ columns: readonly Column[], rows: readonly Row[], bars: readonly BarResult[] }} findings
 * @param {(peer: string) => string} titleOf
 * @returns {string[]}
 */
export function toMarkdown({ columns, rows, bars }, titleOf) {
  const used = usedColumns(rows, columns);
  const tables = groupBy(rows, ({ label }) => label).flatMap((group) => [
    '',
    ...markdownTable([[group[0].label, ...used.map(({ title }) => title)], ...toCells(group, used, titleOf)]),
  ]);
  const faults = faultLines(rows);
  return [
    ...tables,
    ...(bars.length === 0 ? [] : ['', ...barsToMarkdown(bars)]),
    ...(faults.length === 0 ? [] : ['', ...faults.map((fault) => `- ${fault}`)]),
  ];
}
