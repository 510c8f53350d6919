// @ts-check
// Two peers with nginx in front of the service: one that only proxies, and one that meters calls with Lua and Redis.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort, isPortFree } from '../../scripts/local/ports.mjs';
import { modulesDir, nginxConfig } from './nginx/config.mjs';
import { emptyUsageStream, listing, nothingWatched, peerPrefix, peerServiceId, preparePeerStore } from './peer.mjs';

/**
 * @typedef {import('./peer.mjs').PeerKind} PeerKind
 * @typedef {import('../stage/stage.mjs').Stage} Stage
 */

const luaDir = fileURLToPath(new URL('./nginx', import.meta.url));
const hasNginx = () => spawnSync('nginx', ['-v'], { stdio: 'ignore' }).error === undefined;
const luaParts = [
  path.join(modulesDir, 'ndk_http_module.so'),
  path.join(modulesDir, 'ngx_http_lua_module.so'),
  '/usr/share/lua/5.1/resty/core.lua',
  '/usr/share/lua/5.1/nginx/redis.lua',
];

/**
 * @param {Stage} stage
 * @param {string} name
 * @param {{ luaDir: string, settings: Record<string, string | number> } | null} lua
 */
async function startNginx(stage, name, lua) {
  const [port, upstream] = [await freePort(), await stage.upstream()];
  const dir = stage.file(name);
  mkdirSync(dir);
  const config = path.join(dir, 'nginx.conf');
  const { workers } = stage.options;
  writeFileSync(config, nginxConfig({ dir, port, workers, upstreamPort: upstream.port, prefix: peerPrefix, lua }));
  const process_ = await stage.start({
    name,
    command: 'nginx',
    args: ['-c', config, '-p', dir],
    // Includes the master process, which does nothing once the workers run.
    extent: 'tree',
    isReady: async () => !(await isPortFree(port, '127.0.0.1')),
  });
  return { name, host: '127.0.0.1', port, prefix: peerPrefix, watched: { ...nothingWatched(), proxy: [process_] } };
}

/** @type {PeerKind} */
export const nginx = {
  title: 'nginx proxy_pass',
  missing: () => (hasNginx() ? null : 'nginx is not installed'),
  start: async (stage) => ({ ...(await startNginx(stage, 'nginx', null)), authFiles: null, settled: async () => {} }),
};

/** @type {PeerKind} */
export const nginxLua = {
  title: 'nginx + Lua + Redis',
  missing: () => {
    if (!hasNginx()) return 'nginx is not installed';
    const absent = luaParts.find((file) => !existsSync(file));
    return absent === undefined ? null : `${absent} is missing (packages libnginx-mod-http-lua and lua-nginx-redis)`;
  },
  start: async (stage, { keySets }) => {
    const name = 'nginx-lua';
    const { store, authFiles, keysFile, scriptSha } = await preparePeerStore(stage, name, keySets);
    const settings = {
      keys_file: keysFile,
      redis_port: store.port,
      script_sha: scriptSha,
      service: peerServiceId,
      price: listing.priceMicros,
      free_calls: listing.freeCalls,
    };
    const peer = await startNginx(stage, name, { luaDir, settings });
    const watched = { ...peer.watched, redis: [store.watched] };
    return { ...peer, authFiles, watched, redisUrls: [store.url], settled: () => emptyUsageStream(store.url) };
  },
};
