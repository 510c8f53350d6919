// @ts-check
// A temporary folder for a test run or a benchmark. Whatever way its maker ends, SIGKILL included, a small helper
// process notices (its standard input closes), stops every process written down in the folder, and removes it.

import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const reaper = fileURLToPath(new URL('./reaper.mjs', import.meta.url));

/**
 * @typedef {object} Scratch
 * @property {string} dir
 * @property {string} runDir where its processes are written down, see processes.mjs
 * @property {() => Promise<void>} release stops everything in it and removes it
 * @property {() => void} assertInUse throws once it is being released: nothing may be started in it any more
 */

/** @returns {Scratch} */
export function createScratch() {
  const dir = mkdtempSync(path.join(tmpdir(), 'tollgate-run-'));
  const runDir = runDirOf(dir);
  mkdirSync(runDir);
  const helper = spawn(process.execPath, [reaper, dir], { detached: true, stdio: ['pipe', 'ignore', 'inherit'] });
  const done = new Promise((resolve, reject) => {
    helper.once('error', reject);
    helper.once('exit', (code) => (code === 0 ? resolve(undefined) : reject(new Error(`${dir} could not be cleared`))));
  });
  // Awaited in release(); until then a failure shall not end the process as an unhandled rejection.
  done.catch(() => {});
  helper.unref();
  let isReleased = false;
  return {
    dir,
    runDir,
    assertInUse: () => {
      if (isReleased) throw new Error('everything is being stopped');
    },
    release: async () => {
      isReleased = true;
      helper.ref();
      helper.stdin.end();
      await done;
    },
  };
}

/** @param {string} dir */
export const runDirOf = (dir) => path.join(dir, 'run');
