// @ts-check
// Runs scenarios one after another, each on a stage of its own: fresh stores, nothing left from the one before.

import { availableParallelism } from 'node:os';
import { lastLines } from '../scripts/local/processes.mjs';
import { createScratch } from '../scripts/local/scratch.mjs';
import { hasWrk } from './load/drive.mjs';
import { checkProcIsThere } from './measure/proc.mjs';
import { peerKinds } from './peers/index.mjs';
import { describeMachine, machineLines } from './report/machine.mjs';
import { saveResult } from './report/save.mjs';
import { toTerminal } from './report/text.mjs';
import { findScenarios } from './scenarios/index.mjs';
import { Stage } from './stage/stage.mjs';
import { defaults, question, runTarget } from './target.mjs';

/**
 * @typedef {import('./options.mjs').Options} Options
 * @typedef {import('./peers/peer.mjs').Peer} Peer
 * @typedef {import('./peers/index.mjs').PeerName} PeerName
 *
 * @typedef {object} RunOptions
 * @property {'wrk' | 'autocannon'} driver
 * @property {number} seconds
 * @property {number} rounds
 * @property {number[]} connections
 * @property {number} workers
 * @property {number | null} events
 *
 * @typedef {object} Bench what a scenario is given
 * @property {Stage} stage
 * @property {RunOptions} options
 * @property {number} processors
 * @property {(line: string) => void} say
 * @property {(line: string) => void} progress one line that the next one replaces
 * @property {(names: readonly PeerName[], options: import('./peers/peer.mjs').PeerOptions) => Promise<Peer[]>} peers
 *   starts those that can run here and were asked for
 *
 * @typedef {object} Findings
 * @property {import('./report/summary.mjs').Column[]} columns
 * @property {import('./report/summary.mjs').Row[]} rows
 * @property {import('./report/summary.mjs').Comparison[]} comparisons
 * @property {object[]} samples
 * @property {string[]} notes
 *
 * @typedef {object} Scenario
 * @property {string} name
 * @property {string} question
 * @property {{ connections: number[], seconds: number, rounds: number }} defaults
 * @property {(bench: Bench) => Promise<Findings>} run
 */

// Beyond these the numbers are those of a busy machine.
const tolerableForeignShare = 0.05;
const shortestWindowSeconds = 4;

/** @param {string} peer */
const titleOf = (peer) => /** @type {Record<string, { title: string }>} */ (peerKinds)[peer]?.title ?? peer;

/** @param {Scenario} scenario @param {Options} options @returns {RunOptions} */
function optionsOf({ defaults }, options) {
  return {
    driver: options.driver ?? (hasWrk() ? 'wrk' : 'autocannon'),
    seconds: options.seconds ?? defaults.seconds,
    rounds: options.rounds ?? defaults.rounds,
    connections: options.connections ?? defaults.connections,
    workers: options.workers,
    events: options.events,
  };
}

/**
 * @param {Stage} stage
 * @param {Options} wanted
 * @param {(line: string) => void} say
 * @param {Peer[]} started is filled
 * @returns {Bench['peers']}
 */
const starter = (stage, wanted, say, started) => async (names, peerOptions) => {
  const peers = [];
  for (const name of names) {
    if (wanted.peers !== null && !wanted.peers.includes(name)) continue;
    const kind = peerKinds[name];
    const missing = kind.missing();
    if (missing !== null) {
      say(`Skipping ${kind.title}: ${missing}`);
      continue;
    }
    peers.push(await kind.start(stage, peerOptions));
  }
  started.push(...peers);
  if (peers.length === 0) throw new Error(`none of the peers asked for is one of ${names.join(', ')}`);
  return peers;
};

const isTerminal = process.stdout.isTTY;

/** @param {string} line */
function progress(line) {
  if (isTerminal) process.stdout.write(`\r\u001b[2K${line}`);
}

/** @param {object} sample */
const readsCpu = (sample) => /** @type {import('./measure/sample.mjs').Sample} */ (sample).cpuMicros.proxy !== null;

/** @param {Findings} findings @param {RunOptions} options @returns {string[]} what a reader must know */
function caveats({ samples }, { seconds, driver }) {
  const load = `load by ${driver}, HTTP pipelining 1; medians of the rounds`;
  // Seen from outside, the gateway itself may be the other program, and no CPU is read.
  if (samples.every((sample) => 'tolerated' in sample && !readsCpu(sample))) return [load];
  const notes = [];
  const shares = samples.map((sample) => ('foreignShare' in sample ? Number(sample.foreignShare) : 0));
  const disturbed = shares.filter((share) => share > tolerableForeignShare).length;
  if (disturbed > 0) {
    const most = Math.round(Math.max(...shares) * 100);
    notes.push(
      `DISTURBED: during ${disturbed} of ${samples.length} measurements other programs used more than ` +
        `${tolerableForeignShare * 100} % of the machine (up to ${most} %)`,
    );
  }
  if (seconds < shortestWindowSeconds) {
    notes.push(
      `SMOKE TEST: ${seconds} s are too short for the 10 ms clock of /proc; numbers need ${shortestWindowSeconds}`,
    );
  }
  notes.push(`${load}; CPU is utime + stime of whole processes`);
  return notes;
}

/**
 * For rows that are not valid: what their peers say themselves about it.
 * @param {Findings} findings @param {readonly Peer[]} peers @param {Stage} stage
 */
async function explain({ rows }, peers, stage) {
  const failed = peers.filter(({ name }) => rows.some(({ peer, faults }) => peer === name && faults.length > 0));
  const lines = failed.map(async ({ name, diagnose }) => [
    ...((await diagnose?.()) ?? []).map((line) => `${name}: ${line}`),
    `${name}: ${lastLines(stage.file(`${name}.log`), 10)}`,
  ]);
  return (await Promise.all(lines)).flat();
}

/**
 * @param {Scenario} scenario
 * @param {Options} wanted
 * @param {import('../scripts/local/scratch.mjs').Scratch} scratch
 * @param {{ say: (line: string) => void, command: string }} context
 * @returns {Promise<boolean>} whether every row is valid
 */
async function runScenario(scenario, wanted, scratch, { say, command }) {
  const options = optionsOf(scenario, wanted);
  const machine = describeMachine();
  const stage = new Stage(scratch, { workers: options.workers });
  /** @type {Peer[]} */
  const started = [];
  const bench = {
    ...{ stage, options, say, progress, processors: availableParallelism() },
    peers: starter(stage, wanted, say, started),
  };
  const date = new Date();
  say(`\n${scenario.name}: ${scenario.question}\n${machineLines(machine).join('\n')}`);
  const found = await scenario.run(bench);
  progress('');
  const notes = [...found.notes, ...caveats(found, options), ...(await explain(found, started, stage))];
  const findings = { ...found, notes };
  say([...toTerminal(findings, titleOf), '', ...findings.notes].join('\n'));
  if (wanted.save) {
    const result = { scenario: scenario.name, question: scenario.question, date, machine, options, command, findings };
    say(`Written to ${saveResult(result, titleOf)}`);
  }
  return findings.rows.every(({ faults }) => faults.length === 0);
}

/**
 * @param {Options} options
 * @param {{ say: (line: string) => void, command: string }} context
 * @returns {Promise<boolean>} whether everything that was measured is valid
 */
export async function runBench(options, context) {
  let scenarios = await findScenarios(options.only);
  if (options.list) {
    for (const { name, question } of scenarios) context.say(`${name}\n  ${question}`);
    return true;
  }
  if (options.target !== null && options.keys !== null && options.path !== null) {
    const { target, keys, path } = options;
    scenarios = [{ name: 'target', question, defaults, run: runTarget({ target, keys, path }) }];
  } else checkProcIsThere();
  if (options.workers > 1) throw new Error('--workers: the gateway does not run in several workers yet');
  let isValid = true;
  for (const scenario of scenarios) {
    const scratch = createScratch();
    releaseAtSignal = scratch.release;
    try {
      isValid = (await runScenario(scenario, options, scratch, context)) && isValid;
    } finally {
      await scratch.release();
    }
  }
  return isValid;
}

/** @type {() => Promise<void>} */
let releaseAtSignal = async () => {};

/** Stops everything that runs for the scenario under way, and removes its files. */
export const stopAll = () => releaseAtSignal();
