// @ts-check
// What the kernel says that processes have used: CPU time and memory, from /proc.
//
// utime + stime of /proc/<pid>/stat count every thread of the process (the event loop, libuv's pool, V8's helpers), those
// that have ended included: test/bench/proc.test.ts holds the kernel to it. They come in clock ticks of 10 ms, so a window
// of 4 s is read to ±0.5 %.

import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { childPids } from '../../scripts/local/identity.mjs';

/**
 * @typedef {object} Watched a part of the system that is accounted for as one
 * @property {number} pid
 * @property {'process' | 'tree'} extent `tree`: with all its descendants (Postgres, nginx with its master, workers)
 */

const ticksPerSecond = readTicksPerSecond();

function readTicksPerSecond() {
  const answer = spawnSync('getconf', ['CLK_TCK'], { encoding: 'utf8' });
  // Every Linux that Node runs on has 100; Alpine may lack getconf.
  return answer.status === 0 ? Number(answer.stdout) : 100;
}

export function checkProcIsThere() {
  if (process.platform === 'linux') return;
  throw new Error('The benchmark reads CPU time and memory from /proc: it runs on Linux only.');
}

/** @param {string} file @returns {string | null} null when the process has ended */
function readOrNull(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}

/**
 * CPU seconds since its start, in user and kernel mode.
 * @param {number} pid
 * @param {{ withReaped?: boolean }} [options] withReaped: of children that have ended and were waited for as well
 */
export function cpuSeconds(pid, { withReaped = false } = {}) {
  const stat = readOrNull(`/proc/${pid}/stat`);
  if (stat === null) return 0;
  // proc_pid_stat(5): the command in parentheses may hold anything, so count from its end; utime is field 14.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = Number(fields[11]) + Number(fields[12]);
  const reapedTicks = Number(fields[13]) + Number(fields[14]);
  return (ticks + (withReaped ? reapedTicks : 0)) / ticksPerSecond;
}

/**
 * CPU seconds of all threads that run, to the nanosecond: for windows in which a process uses less than a tick or two.
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
    // The process has ended: it uses nothing any more.
    return [];
  }
}

/** What the process was started with, e.g. `['/usr/bin/node', 'dist/main.js', 'writer']`. @param {number} pid */
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
    // A child that ends while we measure hands its time to the parent that waits for it, so no time is lost.
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
 * What all processors of the machine have done since boot, in seconds.
 * @returns {{ busy: number, stolen: number }} stolen: taken by other virtual machines
 */
export function machineCpuSeconds() {
  const line = readOrNull('/proc/stat')?.split('\n')[0] ?? '';
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = line.split(/\s+/).slice(1).map(Number);
  return { busy: (user + nice + system + irq + softirq) / ticksPerSecond, stolen: steal / ticksPerSecond };
}
