// @ts-check
// What tells a process from a later one that got the same pid: the boot it belongs to and the moment it started.

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

const onLinux = process.platform === 'linux';

/**
 * @param {number} pid
 * @returns {string | null} null when no such process runs (a zombie does not run)
 */
export function processIdentity(pid) {
  return onLinux ? linuxIdentity(pid) : psIdentity(pid);
}

/** @param {number} pid */
function linuxIdentity(pid) {
  const fields = statFields(pid);
  if (fields === null || fields.state === 'X') return null;
  // A zombie whose other threads still end holds its ports and files until the last of them is gone.
  if (fields.state === 'Z' && threadCount(pid) <= 1) return null;
  return `${bootId()}:${fields.startTicks}`;
}

/** @param {number} pid @returns {{ state: string, parentPid: number, startTicks: string } | null} */
function statFields(pid) {
  const stat = readOrNull(`/proc/${pid}/stat`);
  if (stat === null) return null;
  // proc_pid_stat(5): the second field is the command in parentheses and may hold anything, so count from its end.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return { state: fields[0] ?? '', parentPid: Number(fields[1]), startTicks: fields[19] ?? '' };
}

/** @param {number} pid */
function threadCount(pid) {
  try {
    return readdirSync(`/proc/${pid}/task`).length;
  } catch {
    // It ended between two looks.
    return 0;
  }
}

const bootId = () => readOrNull('/proc/sys/kernel/random/boot_id')?.trim() ?? '';

/** @param {string} file */
function readOrNull(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    // The process ended between two looks, which is the answer: it does not run.
    return null;
  }
}

/** macOS and the BSDs have no /proc. @param {number} pid */
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
 * The folder a process works in; null when it is gone, not ours to look at, or this is not Linux.
 * @param {number} pid
 */
export function workingDirectory(pid) {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return null;
  }
}
