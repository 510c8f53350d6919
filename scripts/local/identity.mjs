// @ts-check
// Distinguishes a process from a later process with the same pid, by the boot of the machine and the start time of the process.

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

const onLinux = process.platform === 'linux';

/**
 * @param {number} pid
 * @returns {string | null} null if no such process runs (a zombie does not run)
 */
export function processIdentity(pid) {
  return onLinux ? linuxIdentity(pid) : psIdentity(pid);
}

/** @param {number} pid */
function linuxIdentity(pid) {
  const fields = statFields(pid);
  if (fields === null || fields.state === 'X') return null;
  // The main thread may be a zombie while other threads are still ending. The process keeps its ports and files until the last
  // thread is gone.
  if (fields.state === 'Z' && threadCount(pid) <= 1) return null;
  return `${bootId()}:${fields.startTicks}`;
}

/** @param {number} pid @returns {{ state: string, parentPid: number, startTicks: string } | null} */
function statFields(pid) {
  const stat = readOrNull(`/proc/${pid}/stat`);
  if (stat === null) return null;
  // proc_pid_stat(5): the second field is the command in parentheses, which may contain blanks and parentheses. So count from
  // the last parenthesis.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return { state: fields[0] ?? '', parentPid: Number(fields[1]), startTicks: fields[19] ?? '' };
}

/** @param {number} pid */
function threadCount(pid) {
  try {
    return readdirSync(`/proc/${pid}/task`).length;
  } catch {
    // The process has ended since its stat file was read.
    return 0;
  }
}

const bootId = () => readOrNull('/proc/sys/kernel/random/boot_id')?.trim() ?? '';

/** @param {string} file */
function readOrNull(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    // There is no such file, so the process does not run.
    return null;
  }
}

/** For macOS and the BSDs, which have no /proc. @param {number} pid */
function psIdentity(pid) {
  try {
    const line = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim();
    const [state = '', ...started] = line.split(/\s+/);
    return line === '' || state.startsWith('Z') ? null : started.join(' ');
  } catch {
    // ps exits 1 when there is no such process.
    return null;
  }
}

/**
 * Pids of the direct children of a process.
 * @param {number} parent
 * @returns {number[]}
 */
export function childPids(parent) {
  if (!onLinux) return psChildPids(parent);
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => statFields(pid)?.parentPid === parent);
}

/** @param {number} parent */
function psChildPids(parent) {
  const rows = execFileSync('ps', ['-axo', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n');
  return rows
    .map((row) => row.trim().split(/\s+/).map(Number))
    .flatMap(([pid, ppid]) => (ppid === parent && pid ? pid : []));
}

/**
 * The working folder of a process. Null if the process is gone, if it belongs to another user, or if this is not Linux.
 * @param {number} pid
 */
export function workingDirectory(pid) {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return null;
  }
}
