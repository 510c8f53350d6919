// @ts-check
// Finds a Redis server program, and installs the distribution's package where that can be done without asking.

import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

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
  if (process.getuid?.() !== 0 || !isDebianLike()) throw new Error(advice);
  say('Installing redis-server with apt-get (no Redis on this machine)');
  withoutStartingServices(() => {
    apt(['update', '-qq']);
    apt(['install', '-y', '-qq', '--no-install-recommends', 'redis-server']);
  });
  if (lookUp() === null) throw new Error(`apt-get installed redis-server, but it is not on the PATH.\n${advice}`);
  keepServiceDisabled();
}

function isDebianLike() {
  if (!isExecutable('/usr/bin/apt-get')) return false;
  const release = existsSync('/etc/os-release') ? readFileSync('/etc/os-release', 'utf8') : '';
  return /^ID(_LIKE)?=.*\b(debian|ubuntu)\b/m.test(release);
}

/** @param {string[]} args */
function apt(args) {
  const result = spawnSync('/usr/bin/apt-get', ['-o', 'DPkg::Lock::Timeout=120', ...args], {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C.UTF-8' },
    stdio: ['ignore', 'pipe', 'pipe'],
    encoding: 'utf8',
    timeout: 300_000,
  });
  if (result.status === 0) return;
  const output = `${result.stdout ?? ''}${result.stderr ?? ''}${result.error?.message ?? ''}`.trim();
  throw new Error(`apt-get ${args.join(' ')} failed:\n${output.split('\n').slice(-15).join('\n')}\n\n${advice}`);
}

const policyFile = '/usr/sbin/policy-rc.d';

/**
 * The package starts its own service on port 6379 when it is installed. We want the program only: policy-rc.d is
 * Debian's way to forbid that for the time of an installation. One that is there already is the owner's, and stays.
 * @param {() => void} install
 */
function withoutStartingServices(install) {
  if (existsSync(policyFile)) return install();
  writeFileSync(policyFile, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  try {
    install();
  } finally {
    rmSync(policyFile, { force: true });
  }
}

/**
 * An owner's policy-rc.d may have let the service start, and systemd would start it at the next boot. It was not there
 * before us, so it shall not run after us either.
 */
function keepServiceDisabled() {
  // The folder exists only where systemd is in charge; a container has none.
  if (existsSync('/run/systemd/system'))
    spawnSync('systemctl', ['disable', '--now', 'redis-server'], { stdio: 'ignore' });
  else if (existsSync('/etc/init.d/redis-server')) spawnSync('/etc/init.d/redis-server', ['stop'], { stdio: 'ignore' });
}
