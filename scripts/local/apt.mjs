// @ts-check
// Installs packages of the distribution, but only on Debian and Ubuntu as root, where apt-get asks no question and no password.

import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';

const aptGet = '/usr/bin/apt-get';
const policyFile = '/usr/sbin/policy-rc.d';

export function canInstall() {
  if (process.getuid?.() !== 0 || !existsSync(aptGet)) return false;
  const release = existsSync('/etc/os-release') ? readFileSync('/etc/os-release', 'utf8') : '';
  return /^ID(_LIKE)?=.*\b(debian|ubuntu)\b/m.test(release);
}

/**
 * Installs programs. Their services are not started, neither now nor at the next boot: the machine ran without them before.
 * @param {readonly string[]} packages
 * @param {readonly string[]} services of these packages
 * @throws an error with the last lines of apt-get's output
 */
export function installPackages(packages, services) {
  withoutStartingServices(() => {
    apt(['update', '-qq']);
    apt(['install', '-y', '-qq', '--no-install-recommends', ...packages]);
  });
  for (const service of services) disableService(service);
}

/** @param {readonly string[]} args */
function apt(args) {
  const result = spawnSync(aptGet, ['-o', 'DPkg::Lock::Timeout=120', ...args], {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C.UTF-8' },
    stdio: ['ignore', 'pipe', 'pipe'],
    encoding: 'utf8',
    timeout: 300_000,
  });
  if (result.status === 0) return;
  const output = `${result.stdout ?? ''}${result.stderr ?? ''}${result.error?.message ?? ''}`.trim();
  throw new Error(`apt-get ${args.join(' ')} failed:\n${output.split('\n').slice(-15).join('\n')}`);
}

/**
 * Packages start their services when they are installed (Redis on port 6379, nginx on 80), but only the programs are wanted
 * here. Debian asks the program /usr/sbin/policy-rc.d whether a service may start. During the installation a program that always
 * refuses is put there, unless the machine's owner has put one there already.
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
 * Stops a service and keeps it from starting: the owner's policy-rc.d may have let it start, and systemd would start it at the
 * next boot.
 * @param {string} service
 */
function disableService(service) {
  // This folder exists only where systemd runs; a container has none.
  if (existsSync('/run/systemd/system')) spawnSync('systemctl', ['disable', '--now', service], { stdio: 'ignore' });
  else if (existsSync(`/etc/init.d/${service}`)) spawnSync(`/etc/init.d/${service}`, ['stop'], { stdio: 'ignore' });
}
