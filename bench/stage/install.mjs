// @ts-check
// Installs what the benchmark needs beyond the product: the packages of the peers, in bench/node_modules, and, on Debian and Ubuntu
// as root, the programs nginx and wrk.

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { canInstall, installPackages } from '../../scripts/local/apt.mjs';
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
  // Without these packages one peer is skipped, and everything else can be measured.
  if (result.status !== 0)
    say(`The installation failed, so the peer Fastify will be left out:\n${result.stdout}${result.stderr}`);
}

/** Debian package → a file that exists if the package is installed. */
const systemPackages = {
  nginx: '/usr/sbin/nginx',
  'libnginx-mod-http-lua': '/usr/lib/nginx/modules/ngx_http_lua_module.so',
  'lua-nginx-redis': '/usr/share/lua/5.1/nginx/redis.lua',
  wrk: '/usr/bin/wrk',
};

/** Installs missing programs if no question and no password is needed. Otherwise peers are skipped. @param {Say} say */
export function ensureSystemPackages(say) {
  const missing = Object.entries(systemPackages).flatMap(([name, file]) => (existsSync(file) ? [] : [name]));
  if (missing.length === 0) return;
  if (!canInstall()) {
    say(
      `Not installed: ${missing.join(', ')}. What needs them is left out. (As root on Debian or Ubuntu the benchmark installs them)`,
    );
    return;
  }
  say(`Installing ${missing.join(', ')} with apt-get`);
  try {
    installPackages(missing, missing.includes('nginx') ? ['nginx'] : []);
  } catch (error) {
    say(`The installation failed, so peers may be left out: ${error instanceof Error ? error.message : error}`);
  }
}
