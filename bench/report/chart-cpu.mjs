// @ts-check
// The panel of the chart that shows CPU per metered call, by connections and peer.
// Tested by test/bench/chart.test.ts.

import { colors, margin, width } from './chart-style.mjs';
import { groupBy } from './summary.mjs';
import { line, rectangle, text } from './svg.mjs';

/** @typedef {import('./summary.mjs').Row} Row */

const rowHeight = 22;
const barHeight = 14;
const groupGap = 12;
const titleHeight = 44;
const barsLeft = 384;
// Room for the value at the end of the longest bar.
const barsWidth = width - margin - barsLeft - 56;
const labelRight = barsLeft - 10;

/**
 * @param {import('../run.mjs').Findings} findings of metered-get
 * @param {import('./save.mjs').TitleOf} titleOf
 * @returns {import('./chart.mjs').Panel}
 */
export function cpuPanel({ rows }, titleOf) {
  const measured = rows.filter(({ values }) => typeof values.proxyMicros === 'number');
  const highest = Math.max(...measured.map(({ ranges }) => ranges.proxyMicros?.[1] ?? 0));
  const scale = barsWidth / highest;
  const elements = [
    text(margin, 15, 'CPU of the proxy per call, in µs', { class: 'panel' }),
    text(margin, 33, 'Less is better. Median of the rounds; the thin line spans the lowest and the highest round.', {
      class: 'quiet',
    }),
  ];
  let y = titleHeight;
  for (const group of groupBy(measured, ({ label }) => label)) {
    elements.push(text(margin, y + 15, group[0].label, { class: 'strong' }));
    for (const row of group) {
      elements.push(...bar(row, y, scale, titleOf));
      y += rowHeight;
    }
    y += groupGap;
  }
  elements.push(line(barsLeft, titleHeight - 2, barsLeft, y - groupGap, { stroke: colors.quiet }));
  return { elements, height: y - groupGap };
}

/** @param {Row} row @param {number} y @param {number} scale @param {import('./save.mjs').TitleOf} titleOf */
function bar({ peer, values, ranges, faults }, y, scale, titleOf) {
  const value = values.proxyMicros ?? 0;
  const [lowest, highest] = ranges.proxyMicros ?? [value, value];
  const isOurs = peer.startsWith('tollgate');
  const middle = y + rowHeight / 2;
  const at = (/** @type {number} */ micros) => barsLeft + micros * scale;
  const name = peer === 'nginx' ? `${titleOf(peer)} (not metered)` : titleOf(peer);
  const isValid = faults.length === 0;
  return [
    text(labelRight, y + 15.5, name, { class: isOurs ? 'end strong' : 'end' }),
    rectangle(barsLeft, middle - barHeight / 2, value * scale, barHeight, {
      fill: isOurs ? colors.ours : colors.theirs,
      ...(isValid ? {} : { 'fill-opacity': 0.25 }),
    }),
    line(at(lowest), middle, at(highest), middle, { stroke: colors.ink, 'stroke-width': 1.5 }),
    text(at(highest) + 7, y + 15.5, isValid ? value.toFixed(1) : 'INVALID', { class: isValid ? 'strong' : 'missed' }),
  ];
}
