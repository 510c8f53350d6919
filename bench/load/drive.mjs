// @ts-check
// Runs one load generator and reads its result. It is a process of its own, so that its work does not delay the process that
// measures.
// Tested by test/bench/open-loop.test.ts.

import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { killProcess, lastLines, spawnOwned } from '../../scripts/local/processes.mjs';

/**
 * @typedef {'wrk' | 'autocannon' | 'open-loop' | 'transfer' | 'event-streams' | 'stalled-readers'} Driver
 *
 * @typedef {object} Job what to send
 * @property {'http' | 'https'} protocol only wrk and autocannon know https
 * @property {string} host
 * @property {number} port
 * @property {string} path
 * @property {string} method
 * @property {number} bodyBytes
 * @property {string | null} authFile one value of the Authorization header on each line, used in turn; null: none is sent
 * @property {number} firstAuth the line to begin with, so that not every run uses the same keys
 * @property {number} connections each has one request at a time (no HTTP pipelining)
 * @property {number} seconds
 * @property {number} transferBytes transfers only: length of one body
 * @property {number} transfersPerConnection transfers only; `seconds` is then the longest time that they may take
 * @property {number | null} ratePerSecond open loop only: requests begun each second, whether or not others are answered
 * @property {boolean} bySecond open loop only: the result tells each second apart
 * @property {number | null} expectStatus the expected status; all others are errors. Null: any 2xx is expected
 * @property {number | null} tolerateStatus a second status that is no error; its answers are counted apart
 *
 * @typedef {object} Latency in microseconds
 * @property {number} p50
 * @property {number} p90
 * @property {number} p99
 * @property {number} p999
 * @property {number} max
 *
 * @typedef {object} LoadResult
 * @property {number} seconds as measured
 * @property {number} calls those that were answered completely, with any status
 * @property {number} bytes of all responses, heads included
 * @property {{ connect: number, socket: number, timeout: number, status: number }} errors `status`: answers whose
 *   status is neither expected nor tolerated
 * @property {number} tolerated answers with the tolerated status
 * @property {Latency} latency
 * @property {OpenLoopResult} [openLoop]
 *
 * @typedef {object} OpenLoopResult
 * @property {number} unsent
 * @property {number} latenessP99Micros
 * @property {{ calls: number, tolerated: number }} inTime calls that were answered before the last call was due
 * @property {{ due: number, answered: number, tolerated: number, p50Ms: number | null, p99Ms: number | null }[]} bySecond the calls that were due in
 *   each second, if the job asked for them. `p50Ms` is null if more than half of them got no answer
 */

const here = (/** @type {string} */ file) => fileURLToPath(new URL(file, import.meta.url));
// How much longer than `seconds` a driver may take to connect and to end. After that it counts as hanging, and is killed.
const graceMs = 45_000;

/** @returns {boolean} */
export const hasWrk = () => spawnSync('wrk', ['--version'], { stdio: 'ignore' }).error === undefined;

/** @param {string} resultFile @param {Job} job */
function wrkCommand(resultFile, job) {
  return {
    command: 'wrk',
    args: [
      // One thread is enough to keep a proxy process busy. More threads would take the processor from it.
      '--threads=1',
      `--connections=${job.connections}`,
      `--duration=${job.seconds}s`,
      '--timeout=10s',
      `--script=${here('wrk.lua')}`,
      `${job.protocol}://${job.host}:${job.port}${job.path}`,
    ],
    env: {
      ...process.env,
      BENCH_RESULT: resultFile,
      BENCH_METHOD: job.method,
      BENCH_BODY_BYTES: String(job.bodyBytes),
      BENCH_AUTH: job.authFile ?? '',
      BENCH_FIRST_AUTH: String(job.firstAuth),
      BENCH_EXPECT_STATUS: String(job.expectStatus ?? ''),
      BENCH_TOLERATE_STATUS: String(job.tolerateStatus ?? ''),
    },
  };
}

/** @param {Exclude<Driver, 'wrk'>} driver @param {string} resultFile @param {Job} job */
function nodeCommand(driver, resultFile, job) {
  return {
    command: process.execPath,
    args: [here(`${driver}.mjs`)],
    env: { ...process.env, BENCH_RESULT: resultFile, BENCH_JOB: JSON.stringify(job) },
  };
}

let runs = 0;

/**
 * @param {import('../../scripts/local/scratch.mjs').Scratch} scratch
 * @param {Driver} driver
 * @param {Job} job
 * @returns {Promise<LoadResult>}
 */
export async function drive(scratch, driver, job) {
  scratch.assertInUse();
  runs += 1;
  const name = `driver-${runs}`;
  const logFile = path.join(scratch.dir, `${name}.log`);
  const resultFile = path.join(scratch.dir, `${name}.json`);
  const program = driver === 'wrk' ? wrkCommand(resultFile, job) : nodeCommand(driver, resultFile, job);
  const child = spawnOwned({ runDir: scratch.runDir, name, logFile, ...program });
  const timer = setTimeout(() => void killProcess(child.record), job.seconds * 1000 + graceMs);
  try {
    const { code, signal } = await child.exited;
    if (code !== 0) throw new Error(`${driver} failed (${signal ?? `exit code ${code}`}).\n${lastLines(logFile)}`);
    return JSON.parse(readFileSync(resultFile, 'utf8'));
  } finally {
    clearTimeout(timer);
    child.forget();
    rmSync(resultFile, { force: true });
    rmSync(logFile, { force: true });
  }
}

/** For drivers written for Node: reads their job. @returns {Job} */
export function readJob() {
  return JSON.parse(process.env.BENCH_JOB ?? '');
}

/** For drivers written for Node: hands over their result. @param {LoadResult} result */
export function writeResult(result) {
  writeFileSync(process.env.BENCH_RESULT ?? '', JSON.stringify(result));
}

/** @param {Job} job @returns {(string | null)[]} Authorization values to use in turn */
export function readAuthorizations({ authFile, firstAuth }) {
  if (authFile === null) return [null];
  const all = readFileSync(authFile, 'utf8').trimEnd().split('\n');
  const first = firstAuth % all.length;
  return [...all.slice(first), ...all.slice(0, first)];
}

/** Counts the answers whose status is tolerated, and those whose status is unexpected. @param {Job} job */
export function statusCounter({ expectStatus, tolerateStatus }) {
  const counts = { unexpected: 0, tolerated: 0 };
  const count = (/** @type {number} */ status) => {
    if (expectStatus === null ? status >= 200 && status <= 299 : status === expectStatus) return;
    if (status === tolerateStatus) counts.tolerated += 1;
    else counts.unexpected += 1;
  };
  return { counts, count };
}
