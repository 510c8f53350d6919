// @ts-check
// Runs one load generator, as a process of its own (its work shall not delay the one that measures), and reads its result.

import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { killProcess, lastLines, spawnOwned } from '../../scripts/local/processes.mjs';

/**
 * @typedef {'wrk' | 'autocannon' | 'open-loop' | 'transfer' | 'event-streams' | 'stalled-readers'} Driver
 *
 * @typedef {object} Job what to send
 * @property {'http' | 'https'} protocol https: wrk and autocannon only
 * @property {string} host
 * @property {number} port
 * @property {string} path
 * @property {string} method
 * @property {number} bodyBytes
 * @property {string | null} authFile one value of the Authorization header a line, used in turn; null: none is sent
 * @property {number} firstAuth where in that file to begin: not every run shall be about the same keys
 * @property {number} connections each with one request at a time: HTTP pipelining is 1
 * @property {number} seconds
 * @property {number} transferBytes transfers only: of one body
 * @property {number} transfersPerConnection transfers only: `seconds` is then the longest they may take
 * @property {number | null} ratePerSecond open loop only: requests begun each second, whatever the answers do
 * @property {number | null} expectStatus the one status that is no error; null: any 2xx
 * @property {number | null} tolerateStatus beside it: counted apart
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
 * @property {number} calls answered completely, whatever the status
 * @property {number} bytes of all responses, heads included
 * @property {{ connect: number, socket: number, timeout: number, status: number }} errors status: neither
 *   expected nor tolerated
 * @property {number} tolerated answers with the tolerated status
 * @property {Latency} latency
 * @property {{ unsent: number, latenessP99Micros: number, inTime: { calls: number, tolerated: number } }} [openLoop]
 *   inTime: answered before the last call was due
 */

const here = (/** @type {string} */ file) => fileURLToPath(new URL(file, import.meta.url));
// Beyond its own seconds a driver only connects and ends; one that takes this much longer hangs.
const graceMs = 45_000;

/** @returns {boolean} */
export const hasWrk = () => spawnSync('wrk', ['--version'], { stdio: 'ignore' }).error === undefined;

/** @param {string} resultFile @param {Job} job */
function wrkCommand(resultFile, job) {
  return {
    command: 'wrk',
    args: [
      // One thread keeps any single proxy process busy, and more would take the processor from it.
      ...['--threads', '1', '--connections', String(job.connections), '--duration', `${job.seconds}s`],
      ...['--timeout', '10s', '--script', here('wrk.lua'), `${job.protocol}://${job.host}:${job.port}${job.path}`],
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

/** For drivers in Node: the job they were given. @returns {Job} */
export function readJob() {
  return JSON.parse(process.env.BENCH_JOB ?? '');
}

/** For drivers in Node. @param {LoadResult} result */
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

/** Counts answers by whether their status is the wanted one. @param {Job} job */
export function statusCounter({ expectStatus, tolerateStatus }) {
  const counts = { unexpected: 0, tolerated: 0 };
  const count = (/** @type {number} */ status) => {
    if (expectStatus === null ? status >= 200 && status <= 299 : status === expectStatus) return;
    if (status === tolerateStatus) counts.tolerated += 1;
    else counts.unexpected += 1;
  };
  return { counts, count };
}
