// @ts-check
// The lock that allows only one launcher (`npm start`) for each data folder.
// Tested by test/scripts/start.test.ts.

import { linkSync, mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorCode, readJson, writeJson } from './files.mjs';
import { processIdentity } from './identity.mjs';
import { isRunning } from './processes.mjs';

const attempts = 5;

/**
 * Takes the lock. Throws if a living launcher has it; the lock of a dead launcher is taken over.
 * @param {string} runDir
 * @param {(pid: number) => string} describeHolder
 * @returns {Promise<() => void>} a function that gives the lock back
 */
export async function takeLock(runDir, describeHolder) {
  mkdirSync(runDir, { recursive: true });
  const lockFile = path.join(runDir, 'launcher.json');
  const own = { pid: process.pid, identity: processIdentity(process.pid) ?? '', stopSignal: 'SIGTERM' };
  const ownFile = path.join(runDir, `launcher.${process.pid}.new`);
  writeJson(ownFile, own);
  try {
    for (let attempt = 0; attempt < attempts; attempt += 1) {
      const holder = tryLink(ownFile, lockFile);
      if (holder === 'us') {
        // Another launcher may have found the same dead holder, and may remove our lock file in the belief that it is the dead
        // holder's. So wait a moment, and look whether the file is still ours.
        await sleep(50);
        if (isSame(readJson(lockFile), own)) return () => giveBack(lockFile, own);
      } else if (holder !== null && isRunning(holder)) throw new Error(describeHolder(holder.pid));
      else rmSync(lockFile, { force: true });
    }
  } finally {
    rmSync(ownFile, { force: true });
  }
  throw new Error(`could not take ${lockFile}: other launchers are starting at the same moment`);
}

/** @param {string} ownFile @param {string} lockFile @returns {'us' | import('./processes.mjs').ProcessRecord | null} */
function tryLink(ownFile, lockFile) {
  try {
    // A hard link fails if the name exists already, and under its new name the file is complete from the first moment.
    linkSync(ownFile, lockFile);
    return 'us';
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
    return readJson(lockFile);
  }
}

/** @param {string} lockFile @param {{ pid: number, identity: string }} own */
function giveBack(lockFile, own) {
  if (isSame(readJson(lockFile), own)) rmSync(lockFile, { force: true });
}

/** @param {{ pid: number, identity: string } | null} a @param {{ pid: number, identity: string }} b */
const isSame = (a, b) => a?.pid === b.pid && a.identity === b.identity;
