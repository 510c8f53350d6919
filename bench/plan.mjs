// @ts-check
// What a run consists of, with which options, and how long it takes.

import { hasWrk } from './load/drive.mjs';
import { barName } from './report/bars.mjs';
import { shortestWindowSeconds } from './report/notes.mjs';
import { formatLimit } from './report/text.mjs';

/**
 * @typedef {import('./options.mjs').Options} Options
 * @typedef {import('./run.mjs').RunOptions} RunOptions
 * @typedef {import('./run.mjs').Scenario} Scenario
 */

/** @param {Pick<Scenario, 'defaults'>} scenario @param {Options} options @returns {RunOptions} */
export function optionsOf({ defaults }, options) {
  return {
    driver: options.driver ?? (hasWrk() ? 'wrk' : 'autocannon'),
    seconds: options.seconds ?? defaults.seconds,
    rounds: options.rounds ?? defaults.rounds,
    connections: options.connections ?? defaults.connections,
    workers: options.workers,
    events: options.events,
  };
}

// How long it takes to start stores, service and peers, to make keys, and to stop everything again.
const stageSeconds = 8;

/** In seconds. @param {readonly Scenario[]} scenarios @param {Options} options */
export const estimateRun = (scenarios, options) =>
  scenarios.reduce((sum, one) => sum + stageSeconds + one.estimateSeconds(optionsOf(one, options)), 0);

/** @param {readonly Scenario[]} scenarios @param {Options} options */
export function announce(scenarios, options) {
  const total = estimateRun(scenarios, options);
  const end = new Date(Date.now() + total * 1000).toTimeString().slice(0, 5);
  const count = scenarios.length === 1 ? 'One scenario' : `${scenarios.length} scenarios`;
  return `${count}, about ${total < 90 ? `${Math.ceil(total)} s` : `${Math.ceil(total / 60)} minutes`}: until ${end}`;
}

/** @param {readonly Scenario[]} scenarios */
export const listLines = (scenarios) =>
  scenarios.flatMap(({ name, question, bars }) => [
    `${name}\n  ${question}`,
    ...bars
      .filter(({ bar }) => bar !== null)
      .map((bar) => `  bar: ${barName(bar)} ${formatLimit(bar, bar.bar)} (stretch ${formatLimit(bar, bar.stretch)})`),
  ]);

/** Whether the run measures everything, so that its chart may become the chart of the README. @param {Options} options */
export const isWholeRun = ({ only, peers, target, seconds }) =>
  only === null && peers === null && target === null && (seconds ?? shortestWindowSeconds) >= shortestWindowSeconds;
