// @ts-check
// What the benchmark needs beyond the product: packages for the peers, in bench/node_modules, and on Debian and Ubuntu as
// root the programs that peers and drivers are.

import { spawnSync } from 'node:child_process';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { isInstalled } from '../../scripts/local/dependencies.mjs';

/** @typedef {(line: string) => void} Say */

const benchDir = fileURLToPath(new URL('../', import.meta.url));

/** @param {Say} say */
export function ensurePeerPackages(say) {
  const written = path.join(benchDir, 'node_modules', '.package-lock.json');
  if (isInstalled(path.join(benchDir, 'package-lock.json'), written)) return;
  say('Installing packages for the Fastify peer (npm ci in bench/)');
  const result = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: benchDir,
    encoding: 'utf8',
  });
  // Without them one peer is skipped, which is said; everything else can be measured.
  if (result.status !== 0) say(`That failed, so the Fastify peer will be left out:\n${result.stdout}${result.stderr}`);
}

/** Debian package → a file that shows that it is there. */
const systemPackages = {
  nginx: '/usr/sbin/nginx',
  'libnginx-mod-http-lua': '/usr/lib/nginx/modules/ngx_http_lua_module.so',
  'lua-nginx-redis': '/usr/share/lua/5.1/nginx/redis.lua',
  wrk: '/usr/bin/wrk',
};

/** Installs what is missing where that can be done without asking; elsewhere peers are skipped. @param {Say} say */
export function ensureSystemPackages(say) {
  const missing = Object.entries(systemPackages).flatMap(([name, file]) => (existsSync(file) ? [] : [name]));
  if (missing.length === 0) return;
  if (process.getuid?.() !== 0 || !existsSync('/etc/debian_version')) {
    say(
      `Not installed: ${missing.join(', ')}. What needs them is left out (as root on Debian they are installed here)`,
    );
    return;
  }
  say(`Installing ${missing.join(', ')} with apt-get`);
  withoutStartingServices(() => {
    if (!apt(['update', '-qq'], say)) return;
    apt(['install', '-y', '-qq', '--no-install-recommends', ...missing], say);
  });
  // It was not there before us, so it shall not be started at the next boot either. Containers have no systemd.
  if (missing.includes('nginx') && existsSync('/run/systemd/system')) {
    spawnSync('systemctl', ['disable', '--now', 'nginx'], { stdio: 'ignore' });
  }
}

/** @param {string[]} args @param {Say} say */
function apt(args, say) {
  const result = spawnSync('apt-get', ['-o', 'DPkg::Lock::Timeout=120', ...args], {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C.UTF-8' },
    stdio: ['ignore', 'pipe', 'pipe'],
    encoding: 'utf8',
    timeout: 300_000,
  });
  if (result.status === 0) return true;
  say(
    `apt-get ${args[0]} failed, so peers may be left out:\n${(result.stderr ?? '').split('\n').slice(-6).join('\n')}`,
  );
  return false;
}

const policyFile = '/usr/sbin/policy-rc.d';

/**
 * The nginx package starts its service on port 80. policy-rc.d is Debian's way to forbid that while packages are
 * installed; one that is there already is the owner's, and stays.
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
