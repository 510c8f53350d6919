// @ts-check
// The notes below a scenario's tables: what a reader must know to judge its numbers.

import { lastLines } from '../../scripts/local/processes.mjs';

/**
 * @typedef {import('../run.mjs').Findings} Findings
 * @typedef {import('../run.mjs').RunOptions} RunOptions
 * @typedef {import('../peers/peer.mjs').Peer} Peer
 */

// If others used more of the machine than this, the result says DISTURBED.
const tolerableForeignShare = 0.05;
const tolerableStolenShare = 0.05;
// The clock of /proc ticks every 10 ms, so a shorter window is off by more than ±0.5 %. The result then says SMOKE TEST.
export const shortestWindowSeconds = 4;

/** @param {object} sample */
const readsCpu = (sample) => /** @type {import('../measure/sample.mjs').Sample} */ (sample).cpuMicros.proxy !== null;

/** @param {Findings} findings @param {RunOptions} options @returns {string[]} */
export function caveats({ samples }, { seconds }) {
  const load = `${loadOf(samples)}medians of the rounds`;
  // A gateway that is measured from outside may run on this machine, and would count as another program. Its CPU is not read either.
  if (samples.every((sample) => 'tolerated' in sample && !readsCpu(sample))) return [load];
  const notes = [
    ...disturbance(samples, 'foreignShare', tolerableForeignShare, 'other programs used'),
    ...disturbance(samples, 'stolenShare', tolerableStolenShare, 'the host of this machine took away'),
  ];
  if (seconds < shortestWindowSeconds) {
    notes.push(
      `SMOKE TEST: ${seconds} s are too short for the 10 ms clock of /proc; numbers need ${shortestWindowSeconds}`,
    );
  }
  return [...notes, `${load}; CPU is utime + stime of whole processes`];
}

/** @param {readonly object[]} samples */
function loadOf(samples) {
  const drivers = samples.flatMap((sample) => ('driver' in sample ? [String(sample.driver)] : []));
  return drivers.length === 0 ? '' : `load by ${[...new Set(drivers)].join(' and ')}, HTTP pipelining 1; `;
}

/**
 * @param {readonly object[]} samples
 * @param {'foreignShare' | 'stolenShare'} key
 * @param {number} tolerable
 * @param {string} who
 */
function disturbance(samples, key, tolerable, who) {
  const shares = samples.map((sample) => Number(/** @type {Record<string, unknown>} */ (sample)[key] ?? 0));
  const disturbed = shares.filter((share) => share > tolerable).length;
  if (disturbed === 0) return [];
  const most = Math.round(Math.max(...shares) * 100);
  return [
    `DISTURBED: during ${disturbed} of ${samples.length} measurements ${who} more than ${tolerable * 100} % of the ` +
      `machine (up to ${most} %)`,
  ];
}

/**
 * For rows that are not valid: what their peers themselves say about it.
 * @param {Findings} findings @param {readonly Peer[]} peers @param {import('../stage/stage.mjs').Stage} stage
 */
export async function explain({ rows }, peers, stage) {
  const failed = peers.filter(({ name }) => rows.some(({ peer, faults }) => peer === name && faults.length > 0));
  const lines = failed.map(async ({ name, diagnose }) => [
    // A peer that has died cannot be asked, but its log can be read.
    ...((await diagnose?.().catch((error) => [`cannot be asked: ${error.message}`])) ?? []).map(
      (line) => `${name}: ${line}`,
    ),
    `${name}: ${lastLines(stage.file(`${name}.log`), 10)}`,
  ]);
  return (await Promise.all(lines)).flat();
}

/**
 * The last output of a process that ended by itself. It often says better than the error why a scenario failed.
 * @param {{ name: string, logFile: string }} ended
 */
export const lastWords = ({ name, logFile }) => `${name} has ended. ${lastLines(logFile, 10)}`;
