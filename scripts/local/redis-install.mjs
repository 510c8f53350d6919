// @ts-check
// Finds a Redis server program. If there is none, installs the distribution's package where that needs no question and no password.

import { spawnSync } from 'node:child_process';
import { MINIMUM_REDIS_MAJOR } from '../../src/shared.mjs';
import { canInstall, installPackages } from './apt.mjs';
import { findPrograms, usualFolders } from './programs.mjs';

const programs = ['redis-server', 'valkey-server'];
const advice = [
  `Tollgate needs a Redis (${MINIMUM_REDIS_MAJOR}.0 or newer) or Valkey server program on the PATH. Any of these installs one:`,
  '  Debian, Ubuntu   sudo apt-get install redis-server',
  '  Fedora           sudo dnf install valkey',
  '  Alpine           apk add redis',
  '  macOS            brew install redis',
  'or set REDIS_URL to a Redis that runs already.',
].join('\n');

/**
 * @param {readonly string[]} folders
 * @returns {string | null} full path of the first Redis server program that is new enough; null if there is no such program.
 *   Throws if there are some and all are too old
 */
function lookUp(folders) {
  /** @type {string[]} */
  const tooOld = [];
  for (const file of findPrograms(programs, folders)) {
    const version = versionOf(file);
    if (Number.parseInt(version, 10) >= MINIMUM_REDIS_MAJOR) return file;
    tooOld.push(`${file} is version ${version || 'unknown'}`);
  }
  if (tooOld.length > 0) throw new Error(`${tooOld.join('\n')}\n${advice}`);
  return null;
}

/**
 * By program file. Asking takes 25 ms, and tests start hundreds of servers.
 * @type {Map<string, string>}
 */
const versions = new Map();

/** The programs print `Redis server v=7.0.15 sha=…` or `Valkey server v=8.1.0 sha=…`. @param {string} file */
function versionOf(file) {
  const known = versions.get(file);
  if (known !== undefined) return known;
  const { stdout } = spawnSync(file, ['--version'], { encoding: 'utf8', timeout: 5_000 });
  const version = /\bv=(\d[\w.-]*)/.exec(stdout ?? '')?.[1] ?? '';
  if (version !== '') versions.set(file, version);
  return version;
}

/** @returns {string} full path. If there is no such program, throws an error that says how to get one */
export function findRedisServer(folders = usualFolders()) {
  const found = lookUp(folders);
  if (found === null) throw new Error(advice);
  return found;
}

/**
 * Makes sure that there is a Redis server program. If there is none, installs the package on Debian and Ubuntu as root; elsewhere
 * throws an error that says how to get one.
 * @param {(line: string) => void} say
 */
export function ensureRedisServer(say) {
  if (lookUp(usualFolders()) !== null) return;
  if (!canInstall()) throw new Error(advice);
  say('Installing redis-server with apt-get (no Redis on this machine)');
  try {
    installPackages(['redis-server'], ['redis-server']);
  } catch (error) {
    throw new Error(`${error instanceof Error ? error.message : error}\n\n${advice}`);
  }
  if (lookUp(usualFolders()) === null)
    throw new Error(`apt-get installed redis-server, but it is not on the PATH.\n${advice}`);
}
