// @ts-check
// A temporary folder for a test run or a benchmark, with a small helper process (reaper.mjs). When the process that made the folder
// ends, even by SIGKILL, the helper's standard input closes. The helper then stops every process that has a record in the folder,
// and removes the folder.

import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, statfsSync } from 'node:fs';
import { freemem, tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const reaper = fileURLToPath(new URL('./reaper.mjs', import.meta.url));

/**
 * @typedef {object} Scratch
 * @property {string} dir
 * @property {string} runDir the folder for the records of its processes, see processes.mjs
 * @property {() => Promise<void>} release stops all its processes and removes the folder
 * @property {() => void} assertInUse throws once the folder is being released: nothing may be started in it any more
 */

/** A test run has up to 2 GiB of files. */
const enoughBytes = 6 * 2 ** 30;

/**
 * Where a test run has its files: in memory, if the system has a folder there with room, and nobody has chosen another with TMPDIR.
 * Tests make and remove hundreds of databases of three hundred files each. On a disk that took a third of Postgres' CPU.
 * @param {{ folder: string, mounts: string, freeBytes: number }} [memory]
 */
export function folderOfTests(memory = memoryFolder()) {
  if (process.env.TMPDIR !== undefined || memory.freeBytes < enoughBytes) return tmpdir();
  const options =
    memory.mounts
      .split('\n')
      .findLast((line) => line.split(' ')[1] === memory.folder)
      ?.split(' ')[3] ?? 'noexec';
  return options.split(',').includes('noexec') ? tmpdir() : memory.folder;
}

function memoryFolder() {
  const [folder, mountsFile] = ['/dev/shm', '/proc/mounts'];
  if (!existsSync(folder) || !existsSync(mountsFile)) return { folder, mounts: '', freeBytes: 0 };
  const { bavail, bsize } = statfsSync(folder);
  return { folder, mounts: readFileSync(mountsFile, 'utf8'), freeBytes: Math.min(bavail * bsize, freemem()) };
}

/** @param {string} [parent] @returns {Scratch} */
export function createScratch(parent = tmpdir()) {
  const dir = mkdtempSync(path.join(parent, 'tollgate-run-'));
  const runDir = runDirOf(dir);
  mkdirSync(runDir);
  const helper = spawn(process.execPath, [reaper, dir], { detached: true, stdio: ['pipe', 'ignore', 'inherit'] });
  const done = new Promise((resolve, reject) => {
    helper.once('error', reject);
    helper.once('exit', (code) => (code === 0 ? resolve(undefined) : reject(new Error(`${dir} could not be cleared`))));
  });
  // release() awaits `done`. If the helper fails before that, this process must not end because of an unhandled rejection.
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
