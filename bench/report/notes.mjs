// @ts-check
// What a reader must know to judge the numbers of a scenario.

import { lastLines } from '../../scripts/local/processes.mjs';

/**
 * @typedef {import('../run.mjs').Findings} Findings
 * @typedef {import('../run.mjs').RunOptions} RunOptions
 * @typedef {import('../peers/peer.mjs').Peer} Peer
 */

// Beyond these the numbers are those of a busy machine.
const tolerableForeignShare = 0.05;
const tolerableStolenShare = 0.05;
export const shortestWindowSeconds = 4;

/** @param {object} sample */
const readsCpu = (sample) => /** @type {import('../measure/sample.mjs').Sample} */ (sample).cpuMicros.proxy !== null;

/** @param {Findings} findings @param {RunOptions} options @returns {string[]} */
export function caveats({ samples }, { seconds }) {
  const load = `${loadOf(samples)}medians of the rounds`;
  // Seen from outside, the gateway itself may be the other program, and no CPU is read.
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
 * For rows that are not valid: what their peers say themselves about it.
 * @param {Findings} findings @param {readonly Peer[]} peers @param {import('../stage/stage.mjs').Stage} stage
 */
export async function explain({ rows }, peers, stage) {
  const failed = peers.filter(({ name }) => rows.some(({ peer, faults }) => peer === name && faults.length > 0));
  const lines = failed.map(async ({ name, diagnose }) => [
    // A peer that has died can say nothing; its log can.
    ...((await diagnose?.().catch((error) => [`cannot be asked: ${error.message}`])) ?? []).map(
      (line) => `${name}: ${line}`,
    ),
    `${name}: ${lastLines(stage.file(`${name}.log`), 10)}`,
  ]);
  return (await Promise.all(lines)).flat();
}

/**
 * Of a process that ended on its own: why a scenario failed is more likely there than in the error.
 * @param {{ name: string, logFile: string }} ended
 */
export const lastWords = ({ name, logFile }) => `${name} has ended. ${lastLines(logFile, 10)}`;
