// @ts-check
// Describes the machine and the versions that a result comes from. Without them its numbers mean nothing a year later.

import { spawnSync } from 'node:child_process';
import { availableParallelism, cpus, loadavg, release, totalmem } from 'node:os';
import { projectDir } from '../../scripts/local/dependencies.mjs';
import { findRedisServer } from '../../scripts/local/redis-install.mjs';

/**
 * @typedef {object} Machine
 * @property {string} processor
 * @property {number} processors
 * @property {number} memoryGiB
 * @property {string} kernel
 * @property {string} node
 * @property {Record<string, string | null>} programs versions; null: not installed
 * @property {string | null} commit
 * @property {boolean} isDirty the working tree differs from the commit
 * @property {number} loadAverage of the machine, in the minute before the run
 */

/** @param {string} command @param {readonly string[]} args */
function firstLine(command, args) {
  const { error, stdout, stderr } = spawnSync(command, args, { cwd: projectDir, encoding: 'utf8' });
  return error === undefined ? (`${stdout}${stderr}`.trim().split('\n')[0] ?? '') : null;
}

/** @returns {Machine} */
export function describeMachine() {
  const commit = firstLine('git', ['rev-parse', '--short=12', 'HEAD']);
  return {
    processor: cpus()[0]?.model ?? 'unknown',
    processors: availableParallelism(),
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: process.version,
    programs: {
      nginx: firstLine('nginx', ['-v']),
      redis: firstLine(findRedisServer(), ['--version']),
      wrk: firstLine('wrk', ['--version']),
    },
    commit: commit?.startsWith('fatal') ? null : commit,
    // Only changes of the code that runs count: a changed page or a new result changes no number.
    isDirty: firstLine('git', ['status', '--porcelain', '--', 'src', 'migrations', 'package-lock.json']) !== '',
    loadAverage: loadavg()[0] ?? 0,
  };
}

/** @param {Machine} machine @returns {string[]} */
export function machineLines({ processor, processors, memoryGiB, kernel, node, programs, commit, isDirty }) {
  const versions = Object.values(programs).filter((version) => version !== null);
  return [
    `${processors} × ${processor}, ${memoryGiB} GiB, Linux ${kernel}, Node ${node}`,
    ...versions.map((version) => version.replace(/ Copyright.*/, '')),
    `commit ${commit ?? 'unknown'}${isDirty ? ' with changes' : ''}`,
  ];
}
