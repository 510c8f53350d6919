// @ts-check
// Finds a Redis server program, and installs the distribution's package where that can be done without asking.

import { accessSync, constants } from 'node:fs';
import path from 'node:path';
import { canInstall, installPackages } from './apt.mjs';

const programs = ['redis-server', 'valkey-server'];
const advice = [
  'Tollgate needs a Redis (6.2 or newer) or Valkey server program on the PATH. Any one of these helps:',
  '  Debian, Ubuntu   sudo apt-get install redis-server',
  '  Fedora           sudo dnf install valkey',
  '  Alpine           apk add redis',
  '  macOS            brew install redis',
  'or set REDIS_URL to a Redis that runs already.',
].join('\n');

/** @returns {string | null} full path of a Redis server program */
function lookUp() {
  const folders = [
    ...(process.env.PATH ?? '').split(path.delimiter),
    '/usr/local/bin',
    '/usr/bin',
    '/opt/homebrew/bin',
  ];
  const candidates = programs.flatMap((program) => folders.filter(Boolean).map((folder) => path.join(folder, program)));
  return candidates.find(isExecutable) ?? null;
}

/** @param {string} file */
function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** @returns {string} full path; throws with advice when there is none */
export function findRedisServer() {
  const found = lookUp();
  if (found === null) throw new Error(advice);
  return found;
}

/**
 * Makes sure that a Redis server program is there. On Debian and Ubuntu as root the package is installed; elsewhere the
 * error says what to do.
 * @param {(line: string) => void} say
 */
export function ensureRedisServer(say) {
  if (lookUp() !== null) return;
  if (!canInstall()) throw new Error(advice);
  say('Installing redis-server with apt-get (no Redis on this machine)');
  try {
    installPackages(['redis-server'], ['redis-server']);
  } catch (error) {
    throw new Error(`${error instanceof Error ? error.message : error}\n\n${advice}`);
  }
  if (lookUp() === null) throw new Error(`apt-get installed redis-server, but it is not on the PATH.\n${advice}`);
}
