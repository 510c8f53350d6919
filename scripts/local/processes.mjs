// @ts-check
// Starts, recognises and stops processes that may outlive the process that started them.
//
// A pid alone proves nothing: after a crash it may belong to another program. So every child has a record in a run folder, with
// its pid and its identity (boot id and start time). A process gets a signal only while its identity matches the record.

import { spawn } from 'node:child_process';
import { closeSync, fstatSync, ftruncateSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorCode, readJson, writeJson } from './files.mjs';
import { processIdentity } from './identity.mjs';

/**
 * @typedef {object} ProcessRecord
 * @property {number} pid
 * @property {string} identity
 * @property {NodeJS.Signals} stopSignal the signal that asks this program for an orderly end
 *
 * @typedef {object} ExitStatus
 * @property {number | null} code
 * @property {NodeJS.Signals | null} signal
 *
 * @typedef {object} OwnedProcess
 * @property {string} name
 * @property {number} pid
 * @property {ProcessRecord} record
 * @property {Promise<ExitStatus>} exited resolves when the process is gone, and rejects if it could not be started
 * @property {() => boolean} hasExited
 * @property {() => void} forget removes the record from the run folder
 */

const maxLogBytes = 10 * 1024 * 1024;

/**
 * Starts a child and makes its record in the run folder. The child has a process group of its own, so that a Ctrl-C in the
 * terminal does not reach it. Its output is appended to `logFile`, so that it can still write when its parent is dead; without
 * `logFile` it shares our output.
 * @param {object} options
 * @param {string} options.runDir
 * @param {string} options.name unique within the run folder
 * @param {string} options.command
 * @param {readonly string[]} options.args
 * @param {string} [options.logFile]
 * @param {string} [options.cwd]
 * @param {NodeJS.ProcessEnv} [options.env]
 * @param {number} [options.uid]
 * @param {number} [options.gid]
 * @param {NodeJS.Signals} [options.stopSignal]
 * @returns {OwnedProcess}
 */
export function spawnOwned({ runDir, name, command, args, logFile, cwd, env, uid, gid, stopSignal = 'SIGTERM' }) {
  const log = logFile === undefined ? undefined : openLog(logFile);
  const child = spawn(command, [...args], {
    cwd,
    env: env ?? process.env,
    detached: true,
    stdio: ['ignore', log ?? 'inherit', log ?? 'inherit'],
    ...(uid === undefined ? {} : { uid }),
    ...(gid === undefined ? {} : { gid }),
  });
  if (log !== undefined) closeSync(log);
  let gone = false;
  /** @type {Promise<ExitStatus>} */
  const exited = new Promise((resolve, reject) => {
    child.once('error', (error) => {
      gone = true;
      reject(new Error(`cannot start ${name}: ${error.message}`));
    });
    child.once('exit', (code, signal) => {
      gone = true;
      resolve({ code, signal });
    });
  });
  // A failed spawn rejects `exited`. Code that needs the reason awaits `exited` later. Without this line the rejection would count
  // as unhandled until then, and end this process.
  exited.catch(() => {});
  const pid = child.pid;
  if (pid === undefined) throw new Error(`cannot start ${name}: ${command} could not be run`);
  const record = recordProcess(runDir, name, pid, stopSignal);
  return { name, pid, record, exited, hasExited: () => gone, forget: () => forgetProcess(runDir, name) };
}

/** @param {string} logFile @returns {number} a file descriptor */
function openLog(logFile) {
  mkdirSync(path.dirname(logFile), { recursive: true });
  const log = openSync(logFile, 'a', 0o600);
  // A log file that is longer than 10 MiB is emptied at the next start, so that it cannot fill the disk over many starts.
  if (fstatSync(log).size > maxLogBytes) ftruncateSync(log);
  return log;
}

/** @param {string} runDir @param {string} name */
const recordPath = (runDir, name) => path.join(runDir, `${name}.json`);

/**
 * @param {string} runDir
 * @param {string} name
 * @param {number} pid
 * @param {NodeJS.Signals} stopSignal
 * @returns {ProcessRecord}
 */
function recordProcess(runDir, name, pid, stopSignal = 'SIGTERM') {
  // A child that is gone already has no identity. Its record gets an empty one, which matches no process: no later process with
  // the same pid gets a signal that was meant for the child.
  const record = { pid, identity: processIdentity(pid) ?? '', stopSignal };
  writeJson(recordPath(runDir, name), record);
  return record;
}

/** @param {string} runDir @param {string} name */
function forgetProcess(runDir, name) {
  rmSync(recordPath(runDir, name), { force: true });
}

/**
 * The record of this name if its process still runs, else null.
 * @param {string} runDir
 * @param {string} name
 * @returns {ProcessRecord | null}
 */
export function findRecorded(runDir, name) {
  const record = readJson(recordPath(runDir, name));
  return record && isRunning(record) ? record : null;
}

/** @param {string} runDir @returns {string[]} names of all records, running or not */
export function recordedNames(runDir) {
  try {
    return readdirSync(runDir)
      .filter((file) => file.endsWith('.json'))
      .map((file) => file.slice(0, -'.json'.length));
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return [];
    throw error;
  }
}

/** @param {ProcessRecord} record */
export function isRunning(record) {
  return record.identity !== '' && processIdentity(record.pid) === record.identity;
}

/**
 * Sends a signal to a process, but only if the pid still belongs to the recorded process.
 * @param {ProcessRecord} record
 * @param {NodeJS.Signals} signal
 * @param {boolean} [wholeGroup]
 */
export function signalProcess(record, signal, wholeGroup = false) {
  if (!isRunning(record)) return;
  try {
    process.kill(wholeGroup ? -record.pid : record.pid, signal);
  } catch (error) {
    if (errorCode(error) !== 'ESRCH') throw error;
  }
}

/**
 * Asks a process to end, and kills its whole process group if it has not ended after `graceMs`.
 * @param {ProcessRecord} record
 * @param {{ graceMs?: number, signal?: NodeJS.Signals }} [options]
 * @returns {Promise<'stopped' | 'killed'>}
 */
export async function stopProcess(record, { graceMs = 10_000, signal = record.stopSignal } = {}) {
  signalProcess(record, signal);
  // A process that was paused (SIGSTOP) handles the signal only once it continues.
  signalProcess(record, 'SIGCONT');
  if (await pollUntil(() => !isRunning(record), { timeoutMs: graceMs })) return 'stopped';
  await killProcess(record);
  return 'killed';
}

/** Sends SIGKILL to the whole group, and waits until the process is gone. @param {ProcessRecord} record */
export async function killProcess(record) {
  signalProcess(record, 'SIGKILL', true);
  const gone = await pollUntil(() => !isRunning(record), { timeoutMs: 5_000 });
  if (!gone) throw new Error(`process ${record.pid} did not end after SIGKILL`);
}

/**
 * Waits until a condition is true, by asking every `intervalMs`. Returns false when `timeoutMs` have passed.
 * @param {() => boolean | Promise<boolean>} condition
 * @param {{ timeoutMs: number, intervalMs?: number }} options
 */
export async function pollUntil(condition, { timeoutMs, intervalMs = 20 }) {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    if (await condition()) return true;
    if (performance.now() >= deadline) return false;
    await sleep(intervalMs);
  }
}

/**
 * Waits until a child is ready. If the child ends before that, throws at once, with the child's last output.
 * @param {OwnedProcess} child
 * @param {() => boolean | Promise<boolean>} isReady
 * @param {{ timeoutMs: number, intervalMs?: number, logFile: string }} options
 */
export async function waitUntilReady(child, isReady, { timeoutMs, intervalMs, logFile }) {
  const ready = await pollUntil(async () => child.hasExited() || (await isReady()), {
    timeoutMs,
    ...(intervalMs === undefined ? {} : { intervalMs }),
  });
  if (child.hasExited()) {
    const { code, signal } = await child.exited;
    throw new Error(
      `${child.name} ended before it was ready (${signal ?? `exit code ${code}`}).\n${lastLines(logFile)}`,
    );
  }
  if (!ready) throw new Error(`${child.name} was not ready within ${timeoutMs / 1000} s.\n${lastLines(logFile)}`);
}

/** The end of a log file, for an error message. @param {string} file @param {number} [count] */
export function lastLines(file, count = 20) {
  try {
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n').slice(-count);
    return `Last output (${file}):\n${lines.map((line) => `  ${line}`).join('\n')}`;
  } catch (error) {
    return `No output to show: ${error instanceof Error ? error.message : error}`;
  }
}
