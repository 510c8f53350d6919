// @ts-check
// The helper process of scratch.mjs. It waits until its standard input closes, which means that the process that made the scratch
// folder has ended or has released the folder. Then it stops every process that has a record in the folder, and removes the folder.

import { rmSync } from 'node:fs';
import { findRecorded, killProcess, recordedNames, stopProcess } from './processes.mjs';
import { runDirOf } from './scratch.mjs';

const [dir] = process.argv.slice(2);
if (dir === undefined) throw new Error('usage: reaper.mjs DIR');
const dirToClear = dir;
const runDir = runDirOf(dir);
// One of the processes may be a launcher, which needs time to stop a stack of its own.
const graceMs = 10_000;

// A Ctrl-C in the terminal is meant for the process that made the folder, so it is ignored here. When that process has ended,
// standard input closes and the work begins.
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) process.on(signal, () => {});
process.stdin.resume();
process.stdin.once('close', () => void clear());

async function clear() {
  const found = () =>
    recordedNames(runDir).flatMap((name) => {
      const record = findRecorded(runDir, name);
      return record === null ? [] : [{ name, record }];
    });
  // The test runner goes first, because it would start more processes. It has nothing to save, so it is killed.
  const runner = found().find(({ name }) => name === 'vitest');
  if (runner) await killProcess(runner.record);
  // Look again until none is left: a process may have started another one while it was being stopped.
  for (let left = found(); left.length > 0; left = found()) {
    await Promise.all(left.map(({ record }) => stopProcess(record, { graceMs })));
  }
  rmSync(dirToClear, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}
