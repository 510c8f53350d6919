// @ts-check
// Types and functions that all peers share.
// Tested by test/bench/failed.test.ts.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { withRedis } from '../measure/redis.mjs';
import { loadPeerKeys, makeKeys, writeAuthFile, writeKeyTable } from '../stage/keys.mjs';

/**
 * @typedef {import('../measure/proc.mjs').Watched} Watched
 * @typedef {import('../stage/stage.mjs').Stage} Stage
 * @typedef {import('../stage/keys.mjs').KeySets} KeySets
 *
 * @typedef {object} Peer a running way to reach the service: one of the proxies, or none
 * @property {string} name
 * @property {'http' | 'https'} [protocol] default http
 * @property {string} host
 * @property {number} port
 * @property {string} prefix the path that stands for the service's `/`
 * @property {string} [byUsePrefix] the same of its listing whose calls are priced by use
 * @property {Record<string, string> | null} authFiles key set → file for drivers; null: the peer asks for no key
 * @property {{ proxy: Watched[], redis: Watched[], replicas: Watched[], writer: Watched[], postgres: Watched[] }} watched
 *   `redis`: without replicas
 * @property {readonly string[]} [redisUrls] each Redis that runs its scripts
 * @property {() => Promise<void>} settled waits, for a bounded time, until all work for the calls made so far is done
 * @property {() => Promise<string[]>} [diagnose] what the peer itself says about calls that went wrong
 *
 * @typedef {object} PeerOptions
 * @property {KeySets} keySets
 * @property {number} [services] how many services the catalog has beside the one that is called (only Tollgate has a catalog)
 * @property {boolean} [byUse] whether there is a second listing of the service, whose calls are priced by use
 * @property {string} [suffix] tells apart several starts of a peer in one scenario; a part of its name
 * @property {string} [loopDelayFile] gets the longest holds of the event loop, see measure/loop-delay.mjs
 * @property {string} [logSwitchFile] gets what the gateway used with and without its access log, see measure/log-switch.mjs
 *
 * @typedef {object} PeerKind
 * @property {string} title its name in tables
 * @property {() => string | null} missing what the peer needs and this machine lacks, or null
 * @property {(stage: Stage, options: PeerOptions) => Promise<Peer>} start
 */

/** The listing, the same for all peers. The warm-up uses up the free calls, but each call still checks for them. */
export const listing = { price: 0.0001, priceMicros: 100, freeCalls: 10 };

/** The id of the service in the paths of the peers. Tollgate makes an id of its own. */
export const peerServiceId = '0193517b-6a3c-7c58-9d3e-5f1f8f1a7e21';
export const peerPrefix = `/api/v1/proxy/${peerServiceId}/`;

export const chargeScript = fileURLToPath(new URL('./redis/charge.lua', import.meta.url));

/** @returns {Peer['watched']} */
export const nothingWatched = () => ({ proxy: [], redis: [], replicas: [], writer: [], postgres: [] });

/**
 * Starts the Redis of a metered peer, with its keys, token buckets and wallets.
 * @param {Stage} stage
 * @param {string} name
 * @param {KeySets} keySets
 */
export async function preparePeerStore(stage, name, keySets) {
  const store = await stage.redis(name);
  /** @type {Record<string, string>} */
  const authFiles = {};
  const all = [];
  for (const [setName, set] of Object.entries(keySets)) {
    const keys = makeKeys(set.count);
    await loadPeerKeys(store.url, keys, set);
    authFiles[setName] = writeAuthFile(stage.file(`${name}-${setName}.auth`), keys);
    all.push(...keys);
  }
  const keysFile = writeKeyTable(stage.file(`${name}.keys`), all);
  const script = readFileSync(chargeScript, 'utf8');
  const scriptSha = String(await withRedis(store.url, (redis) => redis.script('LOAD', script)));
  return { store, authFiles, keysFile, scriptSha };
}

/**
 * Empties the usage stream of a peer between measurements, because nothing reads it.
 * @param {string} redisUrl
 */
export async function emptyUsageStream(redisUrl) {
  await withRedis(redisUrl, (redis) => redis.unlink('usage'));
}
