// @ts-check
// The panel of the chart that shows how much of what each bar allows was used.
// Tested by test/bench/chart.test.ts.

import { usedShare, verdictOf } from './bars.mjs';
import { colors, margin, width } from './chart-style.mjs';
import { element, line, rectangle, text } from './svg.mjs';
import { formatLimit, formatMeasure } from './text.mjs';

/** @typedef {import('./bars.mjs').BarResult} BarResult */

const rowHeight = 22;
const barHeight = 12;
const titleHeight = 62;
const loadRight = 436;
const barsLeft = 450;
const barsWidth = 174;
// A longer bar is cut here and gets a tip. The figures beside it say how far it would go.
const mostShare = 1.5;
const tipWidth = 8;
const columns = { measured: 762, bar: 842, verdict: width - margin };
const atShare = (/** @type {number} */ share) => barsLeft + (Math.min(share, mostShare) / mostShare) * barsWidth;

/** @param {readonly BarResult[]} bars @returns {import('./chart.mjs').Panel} */
export function barsPanel(bars) {
  const bottom = titleHeight + bars.length * rowHeight;
  const head = titleHeight - 8;
  return {
    elements: [
      text(margin, 15, 'Bars: how much of what is allowed was used', { class: 'panel' }),
      text(
        margin,
        33,
        'Less is better. The line is the bar, the notch the stretch goal. Ratios are of the same round.',
        {
          class: 'quiet',
        },
      ),
      text(atShare(1), head, 'bar', { class: 'middle quiet' }),
      text(columns.measured, head, 'measured', { class: 'end quiet' }),
      text(columns.bar, head, 'bar', { class: 'end quiet' }),
      ...bars.flatMap((result, index) => row(result, bars[index - 1]?.what, titleHeight + index * rowHeight)),
      line(barsLeft, titleHeight - 2, barsLeft, bottom, { stroke: colors.quiet }),
      line(atShare(1), titleHeight - 2, atShare(1), bottom, { stroke: colors.ink, 'stroke-width': 1.5 }),
    ],
    height: bottom,
  };
}

/** @param {BarResult} result @param {string | undefined} previous `what` of the row above @param {number} y */
function row(result, previous, y) {
  const { what, label, measured, unit, stretch } = result;
  const verdict = verdictOf(result);
  const isGood = verdict === 'met' || verdict === 'stretch met';
  const baseline = y + 15.5;
  const top = y + (rowHeight - barHeight) / 2;
  const notch = stretch === null ? null : atShare(usedShare(result, stretch));
  const share = measured === null ? 0 : usedShare(result, measured);
  const paint = {
    fill: isGood ? colors.ours : colors.missed,
    ...(verdict === 'INVALID' ? { 'fill-opacity': 0.25 } : {}),
  };
  return [
    ...(what === previous ? [] : [line(margin, y, width - margin, y, { stroke: colors.grid })]),
    ...(what === previous ? [] : [text(margin, baseline, what)]),
    text(loadRight, baseline, label, { class: 'end quiet' }),
    rectangle(barsLeft, top, atShare(share) - barsLeft, barHeight, paint),
    ...(share > mostShare ? [tip(top, paint)] : []),
    ...(notch === null ? [] : [line(notch, top - 2, notch, top + barHeight + 2, { stroke: colors.ink })]),
    text(columns.measured, baseline, measured === null ? '–' : formatMeasure(measured, unit), { class: 'end strong' }),
    text(columns.bar, baseline, formatLimit({ ...result, unit: '' }, result.bar), { class: 'end quiet' }),
    text(columns.verdict, baseline, verdict, { class: isGood ? 'end' : 'end missed' }),
  ];
}

/** @param {number} top @param {import('./svg.mjs').Attributes} paint */
function tip(top, paint) {
  const right = barsLeft + barsWidth;
  const points = `${right},${top} ${right + tipWidth},${top + barHeight / 2} ${right},${top + barHeight}`;
  return element('polygon', { points, ...paint });
}
