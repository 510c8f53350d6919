// @ts-check
// Runs scenarios one after another. Each has a stage of its own, with new stores, so nothing is left from the one before.

import { availableParallelism, loadavg } from 'node:os';
import { createScratch } from '../scripts/local/scratch.mjs';
import { checkProcIsThere } from './measure/proc.mjs';
import { UsageError } from './options.mjs';
import { peerKinds } from './peers/index.mjs';
import { announce, isWholeRun, listLines, optionsOf } from './plan.mjs';
import { promisedBars, promisedOf } from './report/bars.mjs';
import { describeMachine, machineLines } from './report/machine.mjs';
import { caveats, explain, lastWords } from './report/notes.mjs';
import { saveRun } from './report/save.mjs';
import { barsToTerminal, toTerminal } from './report/text.mjs';
import { findScenarios } from './scenarios/index.mjs';
import { Stage } from './stage/stage.mjs';
import { runTarget, targetScenario } from './target.mjs';

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
 *   starts the peers that can run here and were asked for
 *
 * @typedef {object} Findings
 * @property {import('./report/summary.mjs').Column[]} columns
 * @property {import('./report/summary.mjs').Row[]} rows
 * @property {import('./report/bars.mjs').BarResult[]} bars
 * @property {object[]} samples
 * @property {string[]} notes
 *
 * @typedef {object} Scenario
 * @property {string} name
 * @property {string} question
 * @property {{ connections: number[], seconds: number, rounds: number }} defaults
 * @property {readonly import('./report/bars.mjs').Promised[]} bars what the project promises here
 * @property {(options: RunOptions) => number} estimateSeconds without the start of its stage
 * @property {(bench: Bench) => Promise<Findings>} run
 *
 * @typedef {object} ScenarioResult
 * @property {string} name
 * @property {string} question
 * @property {import('./report/bars.mjs').Promised[]} bars
 * @property {RunOptions} options
 * @property {number} loadAverage of the machine, in the minute before the scenario
 * @property {number} seconds how long the scenario took
 * @property {Findings | null} findings null if the scenario failed
 * @property {string | null} failure
 *
 * @typedef {{ say: (line: string) => void, command: string }} Context
 */

/** @param {string} peer */
const titleOf = (peer) => /** @type {Record<string, { title: string }>} */ (peerKinds)[peer]?.title ?? peer;

/**
 * @param {Stage} stage
 * @param {Options} wanted
 * @param {(line: string) => void} say
 * @param {Peer[]} started each peer that is started is added to this array
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
  if (peers.length === 0)
    throw new Error(`this scenario can measure ${names.join(', ')}, and none of them was asked for or can run here`);
  return peers;
};

const isTerminal = process.stdout.isTTY;

/** @param {string} line */
function progress(line) {
  if (isTerminal) process.stdout.write(`\r\u001b[2K${line}`);
}

/**
 * @param {Scenario} scenario
 * @param {Options} wanted
 * @param {import('../scripts/local/scratch.mjs').Scratch} scratch
 * @param {Context} context
 * @returns {Promise<Findings>}
 */
async function runOnStage(scenario, wanted, scratch, { say }) {
  const options = optionsOf(scenario, wanted);
  const stage = new Stage(scratch, { workers: options.workers });
  /** @type {Peer[]} */
  const started = [];
  const bench = {
    stage,
    options,
    say,
    progress,
    processors: availableParallelism(),
    peers: starter(stage, wanted, say, started),
  };
  const found = await scenario.run(bench).catch((error) => {
    // Logs that the error shows already are not shown again.
    const ended = isStopping ? [] : stage.ended().filter(({ logFile }) => !error.message.includes(logFile));
    throw ended.length === 0 ? error : new Error([error.message, ...ended.map(lastWords)].join('\n'), { cause: error });
  });
  progress('');
  const notes = [...found.notes, ...caveats(found, options), ...(await explain(found, started, stage))];
  return { ...found, notes };
}

/** @param {number} startedAt */
const secondsSince = (startedAt) => Math.round((performance.now() - startedAt) / 1000);

/**
 * Runs a scenario on a stage of its own. If it fails, that is said, and the other scenarios still run.
 * @param {Scenario} scenario @param {Options} wanted @param {Context} context
 * @returns {Promise<ScenarioResult>}
 */
async function runScenario(scenario, wanted, context) {
  const { name, question, bars } = scenario;
  const startedAt = performance.now();
  const result = {
    name,
    question,
    bars: bars.map(promisedOf),
    options: optionsOf(scenario, wanted),
    loadAverage: loadavg()[0] ?? 0,
  };
  context.say(`\n${name}: ${question}`);
  const scratch = createScratch();
  releaseAtSignal = scratch.release;
  try {
    const findings = await runOnStage(scenario, wanted, scratch, context);
    const done = { ...result, seconds: secondsSince(startedAt), findings, failure: null };
    context.say([...toTerminal(findings, titleOf), '', ...findings.notes, `took ${done.seconds} s`].join('\n'));
    return done;
  } catch (error) {
    const failure = error instanceof Error ? error.message : String(error);
    if (!isStopping) context.say(`FAILED: ${failure}`);
    return { ...result, seconds: secondsSince(startedAt), findings: null, failure };
  } finally {
    await scratch.release();
  }
}

/** @param {Options} options @returns {Promise<Scenario[]>} */
async function scenariosOf(options) {
  const { target, keys, path } = options;
  if (target === null || keys === null) return findScenarios(options.only);
  return [{ ...targetScenario, run: runTarget({ target, keys, path }) }];
}

/**
 * @param {Options} options
 * @param {Context} context
 * @returns {Promise<boolean>} whether everything that was measured is valid
 */
export async function runBench(options, context) {
  const { say, command } = context;
  const scenarios = await scenariosOf(options);
  if (options.list) {
    say(listLines(scenarios).join('\n'));
    return true;
  }
  if (options.target === null) checkProcIsThere();
  const unknown = options.peers?.find((name) => !(name in peerKinds));
  if (unknown !== undefined) {
    throw new UsageError(`there is no peer '${unknown}'; there are: ${Object.keys(peerKinds).join(', ')}`);
  }
  const machine = describeMachine();
  const date = new Date();
  say([...machineLines(machine), announce(scenarios, options)].join('\n'));
  /** @type {ScenarioResult[]} */
  const results = [];
  for (const scenario of scenarios) {
    if (isStopping) return false;
    results.push(await runScenario(scenario, options, context));
  }
  if (isStopping) return false;
  const bars = promisedBars(results);
  if (results.length > 1 && bars.length > 0) say(['', 'Bars', ...barsToTerminal(bars)].join('\n'));
  if (options.save) {
    const isWhole = isWholeRun(options);
    say(`\nWritten: ${saveRun({ date, machine, command, results }, titleOf, { isWhole }).join(', ')}`);
  }
  const failed = results.filter(({ failure }) => failure !== null);
  if (results.length > 1 && failed.length > 0) say(`FAILED: ${failed.map(({ name }) => name).join(', ')}`);
  return results.every(({ findings }) => findings?.rows.every(({ faults }) => faults.length === 0) ?? false);
}

/** @type {() => Promise<void>} */
let releaseAtSignal = async () => {};
let isStopping = false;

/** Stops everything that runs for the present scenario, and removes its files. No further scenario begins. */
export const stopAll = () => {
  isStopping = true;
  return releaseAtSignal();
};
