// @ts-check
// The distribution's packages, where they can be installed without asking: on Debian and Ubuntu, as root.

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
 * Installs programs, and starts none of their services, now or at the next boot: they were not there before us.
 * @param {readonly string[]} packages
 * @param {readonly string[]} services that these packages bring
 * @throws with the end of what apt-get said
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
 * Packages start their services when they are installed (Redis on port 6379, nginx on 80). We want the programs only:
 * policy-rc.d is Debian's way to forbid that for the time of an installation. One that is there already is the owner's,
 * and stays.
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
 * An owner's policy-rc.d may have let the service start, and systemd would start it at the next boot.
 * @param {string} service
 */
function disableService(service) {
  // The folder exists only where systemd is in charge; a container has none.
  if (existsSync('/run/systemd/system')) spawnSync('systemctl', ['disable', '--now', service], { stdio: 'ignore' });
  else if (existsSync(`/etc/init.d/${service}`)) spawnSync(`/etc/init.d/${service}`, ['stop'], { stdio: 'ignore' });
}
