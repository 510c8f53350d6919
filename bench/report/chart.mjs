// @ts-check
// Draws the chart of a run: CPU per metered call by peer, and how much of each bar was used. The SVG has a background of its own, so
// that it looks the same on light and dark pages.

import { promisedBars } from './bars.mjs';
import { barsPanel } from './chart-bars.mjs';
import { cpuPanel } from './chart-cpu.mjs';
import { colors, margin, style, width } from './chart-style.mjs';
import { machineLines } from './machine.mjs';
import { element, escapeXml, rectangle, text } from './svg.mjs';

/**
 * @typedef {object} Panel
 * @property {string[]} elements drawn from y = 0
 * @property {number} height
 */

const headHeight = 104;
const panelGap = 30;

/**
 * @param {import('./save.mjs').Run} run
 * @param {import('./save.mjs').TitleOf} titleOf
 * @returns {string | null} null if the run has nothing that the chart shows
 */
export function drawChart(run, titleOf) {
  const metered = run.results.find(({ name }) => name === 'metered-get')?.findings ?? null;
  const panels = [
    ...(metered === null ? [] : [cpuPanel(metered, titleOf)]),
    ...[promisedBars(run.results)].filter(({ length }) => length > 0).map((bars) => barsPanel(bars)),
  ];
  if (panels.length === 0) return null;
  let y = headHeight;
  const placed = panels.map(({ elements, height }) => {
    const group = element('g', { transform: `translate(0 ${y})` }, elements);
    y += height + panelGap;
    return group;
  });
  return page(y, [...head(run), ...placed]);
}

/** @param {number} height @param {readonly string[]} children */
function page(height, children) {
  const size = { width, height, viewBox: `0 0 ${width} ${height}` };
  const frame = { fill: colors.paper, stroke: colors.frame, rx: 8 };
  const what = 'Tollgate benchmark: CPU per metered call by peer, and how much of each bar was used';
  const inside = [
    `<title>${escapeXml(what)}</title>`,
    `<style>${style}</style>`,
    rectangle(0.5, 0.5, width - 1, height - 1, frame),
    ...children,
  ];
  return `${element(
    'svg',
    { xmlns: 'http://www.w3.org/2000/svg', ...size, role: 'img' },
    inside.map((one) => `\n${one}`),
  )}\n`;
}

/** @param {import('./save.mjs').Run} run @returns {string[]} */
function head({ date, machine, results }) {
  const [hardware = ''] = machineLines(machine);
  const options = results[0]?.options;
  const commit = `commit ${machine.commit ?? 'unknown'}${machine.isDirty ? ' with changes' : ''}`;
  const isDisturbed = results.some(({ findings }) => findings?.notes.some((note) => note.startsWith('DISTURBED')));
  const how = options === undefined ? '' : `, load by ${options.driver}`;
  return [
    text(margin, 38, 'Tollgate benchmark', { class: 'title' }),
    text(margin, 60, hardware, { class: 'quiet' }),
    text(
      margin,
      78,
      `${date.toISOString().slice(0, 10)}, ${commit}${how}; all peers in turn within one run${
        isDisturbed ? '; other programs ran meanwhile' : ''
      }`,
      {
        class: 'quiet',
      },
    ),
  ];
}
