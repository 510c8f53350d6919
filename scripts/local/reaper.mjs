// @ts-check
// The helper of scratch.mjs: waits until its standard input closes, then clears the folder it was given.

import { rmSync } from 'node:fs';
import { findRecorded, killProcess, recordedNames, stopProcess } from './processes.mjs';
import { runDirOf } from './scratch.mjs';

const [dir] = process.argv.slice(2);
if (dir === undefined) throw new Error('usage: reaper.mjs DIR');
const dirToClear = dir;
const runDir = runDirOf(dir);
// Among them may be a launcher that has a stack of its own to stop.
const graceMs = 10_000;

// A Ctrl-C in the terminal is for the maker of the folder; it ends, and then it is our turn.
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) process.on(signal, () => {});
process.stdin.resume();
process.stdin.once('close', () => void clear());

async function clear() {
  const found = () =>
    recordedNames(runDir).flatMap((name) => {
      const record = findRecorded(runDir, name);
      return record === null ? [] : [{ name, record }];
    });
  // The test runner first: it would start more of them. It has nothing to save.
  const runner = found().find(({ name }) => name === 'vitest');
  if (runner) await killProcess(runner.record);
  // Its maker may have been about to start another one.
  for (let left = found(); left.length > 0; left = found()) {
    await Promise.all(left.map(({ record }) => stopProcess(record, { graceMs })));
  }
  rmSync(dirToClear, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}
