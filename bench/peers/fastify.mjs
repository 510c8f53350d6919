// @ts-check
// The peer Fastify: @fastify/http-proxy with the Redis script of the other metered peers, in a process of its own.

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { freePort, isPortFree } from '../../scripts/local/ports.mjs';
import {
  chargeScript,
  emptyUsageStream,
  listing,
  nothingWatched,
  peerPrefix,
  peerServiceId,
  preparePeerStore,
} from './peer.mjs';

const program = fileURLToPath(new URL('./fastify/server.mjs', import.meta.url));
const installed = fileURLToPath(new URL('../node_modules/fastify', import.meta.url));

/** @type {import('./peer.mjs').PeerKind} */
export const fastify = {
  title: 'Fastify + http-proxy',
  missing: () => (existsSync(installed) ? null : 'the packages of bench/package.json are not installed'),
  start: async (stage, { keySets }) => {
    const name = 'fastify';
    const { store, authFiles, keysFile } = await preparePeerStore(stage, name, keySets);
    const [port, upstream] = [await freePort(), await stage.upstream()];
    const settings = {
      port,
      workers: stage.options.workers,
      upstreamPort: upstream.port,
      redisPort: store.port,
      prefix: peerPrefix,
      keysFile,
      scriptFile: chargeScript,
      service: peerServiceId,
      price: listing.priceMicros,
      freeCalls: listing.freeCalls,
    };
    const proxy = await stage.start({
      name,
      command: process.execPath,
      args: [program],
      env: { ...process.env, NODE_ENV: 'production', BENCH_PEER: JSON.stringify(settings) },
      extent: 'tree',
      isReady: async () => !(await isPortFree(port, '127.0.0.1')),
    });
    const watched = { ...nothingWatched(), proxy: [proxy], redis: [store.watched] };
    const settled = () => emptyUsageStream(store.url);
    const address = { host: '127.0.0.1', port, prefix: peerPrefix };
    return { name, ...address, authFiles, watched, redisUrls: [store.url], settled };
  },
};
