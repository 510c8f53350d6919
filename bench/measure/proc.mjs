// @ts-check
// Reads from /proc how much CPU time and memory processes use.
//
// utime + stime of /proc/<pid>/stat count all threads of a process (the event loop, libuv's pool, V8's helpers), also those that
// have ended; test/bench/proc.test.ts checks that. Their unit is a clock tick of 10 ms, so in a window of 4 s the error is
// ±0.5 %.

import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { childPids } from '../../scripts/local/identity.mjs';

/**
 * @typedef {object} Watched one or more processes whose CPU and memory count as one part of the system
 * @property {number} pid
 * @property {'process' | 'tree'} extent `tree`: with all its descendants (Postgres, nginx with its master, workers)
 */

const ticksPerSecond = readTicksPerSecond();

function readTicksPerSecond() {
  const answer = spawnSync('getconf', ['CLK_TCK'], { encoding: 'utf8' });
  // Alpine may lack getconf. Every Linux that Node runs on has 100.
  return answer.status === 0 ? Number(answer.stdout) : 100;
}

export function checkProcIsThere() {
  if (process.platform === 'linux') return;
  throw new Error('The benchmark runs on Linux only: it reads CPU time and memory from /proc.');
}

/** @param {string} file @returns {string | null} null if the process has ended */
function readOrNull(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}

/**
 * CPU seconds of a process since its start, in user and kernel mode.
 * @param {number} pid
 * @param {{ withReaped?: boolean }} [options] withReaped: adds the time of children that have ended and were waited for
 */
export function cpuSeconds(pid, { withReaped = false } = {}) {
  const stat = readOrNull(`/proc/${pid}/stat`);
  if (stat === null) return 0;
  // proc_pid_stat(5): the command in parentheses may contain blanks and parentheses, so count from the last parenthesis. utime is
  // field 14.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = Number(fields[11]) + Number(fields[12]);
  const reapedTicks = Number(fields[13]) + Number(fields[14]);
  return (ticks + (withReaped ? reapedTicks : 0)) / ticksPerSecond;
}

/**
 * CPU seconds of all running threads, to the nanosecond. For windows in which a process uses only a clock tick or two.
 * @param {readonly Watched[]} parts
 */
export function exactCpuSecondsOf(parts) {
  const nanoseconds = parts.flatMap(pidsOf).flatMap((pid) =>
    threadsOf(pid).map((thread) => {
      const schedstat = readOrNull(`/proc/${pid}/task/${thread}/schedstat`) ?? '0';
      return Number(schedstat.split(' ')[0]);
    }),
  );
  return nanoseconds.reduce((sum, one) => sum + one, 0) / 1e9;
}

/** @param {number} pid */
function threadsOf(pid) {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    // The process has ended, so it uses nothing any more.
    return [];
  }
}

/** The command line of a process, e.g. `['/usr/bin/node', 'dist/main.js', 'writer']`. @param {number} pid */
export const commandOf = (pid) => (readOrNull(`/proc/${pid}/cmdline`) ?? '').split('\0');

/** @param {number} pid @returns {number[]} the process and all its descendants */
export function treeOf(pid) {
  return [pid, ...childPids(pid).flatMap(treeOf)];
}

/** @param {Watched} watched @returns {number[]} */
const pidsOf = ({ pid, extent }) => (extent === 'tree' ? treeOf(pid) : [pid]);

/** @param {readonly Watched[]} parts */
export function cpuSecondsOf(parts) {
  let sum = 0;
  for (const part of parts) {
    // When a child ends during the measurement, its time moves to the parent that waits for it, so no time is lost.
    for (const pid of pidsOf(part)) sum += cpuSeconds(pid, { withReaped: part.extent === 'tree' });
  }
  return sum;
}

/** Resident memory in bytes. @param {readonly Watched[]} parts */
export function rssBytesOf(parts) {
  let sum = 0;
  for (const pid of parts.flatMap(pidsOf)) {
    const status = readOrNull(`/proc/${pid}/status`) ?? '';
    sum += Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024;
  }
  return sum;
}

/**
 * How long all processors of the machine were busy since boot, in seconds.
 * @returns {{ busy: number, stolen: number }} stolen: the time that the host gave to other virtual machines
 */
export function machineCpuSeconds() {
  const line = readOrNull('/proc/stat')?.split('\n')[0] ?? '';
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = line.split(/\s+/).slice(1).map(Number);
  return { busy: (user + nice + system + irq + softirq) / ticksPerSecond, stolen: steal / ticksPerSecond };
}
