// @ts-check
// Rows and ratios as text: for the terminal, and as Markdown.

import { groupBy } from './summary.mjs';

/**
 * @typedef {import('./summary.mjs').Row} Row
 * @typedef {import('./summary.mjs').Column} Column
 * @typedef {import('./summary.mjs').Comparison} Comparison
 */

/** @param {number | null | undefined} value @param {number} digits */
function formatNumber(value, digits) {
  if (value === null || value === undefined || Number.isNaN(value)) return '–';
  const text = value.toFixed(digits);
  // Thin groups of thousands only where they help to read.
  return digits === 0 ? text.replace(/\B(?=(\d{3})+$)/g, ' ') : text;
}

/**
 * @param {readonly Row[]} rows
 * @param {readonly Column[]} columns
 * @param {(peer: string) => string} titleOf
 */
function toCells(rows, columns, titleOf) {
  return rows.map(({ peer, values, faults }) => [
    // A row with a fault is no measurement, and shall not be read as one.
    faults.length === 0 ? titleOf(peer) : `INVALID ${titleOf(peer)}`,
    ...columns.map(({ key, digits }) => formatNumber(values[key], digits)),
  ]);
}

/** Columns in which no row has a value say nothing. @param {readonly Row[]} rows @param {readonly Column[]} columns */
const usedColumns = (rows, columns) =>
  columns.filter(({ key }) => rows.some(({ values }) => values[key] !== null && values[key] !== undefined));

/** @param {readonly Row[]} rows */
const faultLines = (rows) =>
  rows.flatMap(({ label, peer, faults }) => faults.map((fault) => `INVALID ${peer}, ${label}: ${fault}`));

/** @param {Comparison} comparison */
function verdict({ ratio, bar, stretch, isValid }) {
  if (!isValid) return 'INVALID';
  if (ratio <= stretch) return 'bar and stretch met';
  return ratio <= bar ? 'bar met' : 'MISSED';
}

/** @param {Comparison} comparison */
const ratioCells = (comparison) => [
  comparison.what,
  comparison.label,
  comparison.ratio.toFixed(2),
  `${comparison.lowest.toFixed(2)}–${comparison.highest.toFixed(2)}`,
  `≤ ${comparison.bar}`,
  `≤ ${comparison.stretch}`,
  verdict(comparison),
];

const ratioHead = ['ratio', 'load', 'median', 'rounds', 'bar', 'stretch', ''];

/** @param {readonly (readonly string[])[]} lines first column to the left, the others to the right */
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
 * @param {{ columns: readonly Column[], rows: readonly Row[], comparisons: readonly Comparison[] }} findings
 * @param {(peer: string) => string} titleOf
 * @returns {string[]}
 */
export function toTerminal({ columns, rows, comparisons }, titleOf) {
  const used = usedColumns(rows, columns);
  const tables = groupBy(rows, ({ label }) => label).flatMap((group) => [
    '',
    ...align([[group[0].label, ...used.map(({ title }) => title)], ...toCells(group, used, titleOf)]),
  ]);
  const ratios = comparisons.length === 0 ? [] : ['', ...align([ratioHead, ...comparisons.map(ratioCells)])];
  return [...tables, ...ratios, ...faultLines(rows)];
}

/** @param {readonly (readonly string[])[]} lines the first is the head */
function markdownTable([head = [], ...lines]) {
  const line = (/** @type {readonly string[]} */ cells) => `| ${cells.join(' | ')} |`;
  return [line(head), `|${head.map((_, column) => (column === 0 ? '---|' : '---:|')).join('')}`, ...lines.map(line)];
}

/**
 * @param {{ columns: readonly Column[], rows: readonly Row[], comparisons: readonly Comparison[] }} findings
 * @param {(peer: string) => string} titleOf
 * @returns {string[]}
 */
export function toMarkdown({ columns, rows, comparisons }, titleOf) {
  const used = usedColumns(rows, columns);
  const tables = groupBy(rows, ({ label }) => label).flatMap((group) => [
    '',
    ...markdownTable([[group[0].label, ...used.map(({ title }) => title)], ...toCells(group, used, titleOf)]),
  ]);
  const ratios = comparisons.length === 0 ? [] : ['', ...markdownTable([ratioHead, ...comparisons.map(ratioCells)])];
  const faults = faultLines(rows);
  return [...tables, ...ratios, ...(faults.length === 0 ? [] : ['', ...faults.map((fault) => `- ${fault}`)])];
}
