// @ts-check
// What every peer has in common.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { withRedis } from '../measure/redis.mjs';
import { loadPeerKeys, makeKeys, writeAuthFile, writeKeyTable } from '../stage/keys.mjs';

/**
 * @typedef {import('../measure/proc.mjs').Watched} Watched
 * @typedef {import('../stage/stage.mjs').Stage} Stage
 * @typedef {import('../stage/keys.mjs').KeySets} KeySets
 *
 * @typedef {object} Peer a way to reach the service
 * @property {string} name
 * @property {'http' | 'https'} [protocol] default http
 * @property {string} host
 * @property {number} port
 * @property {string} prefix what stands for the service's `/`
 * @property {Record<string, string> | null} authFiles key set → file for drivers; null: no key is asked for
 * @property {{ proxy: Watched[], redis: Watched[], writer: Watched[], postgres: Watched[] }} watched
 * @property {string} [redisUrl] where its scripts run
 * @property {() => Promise<void>} settled waits until all work of the calls made so far is done. Bounded
 * @property {() => Promise<string[]>} [diagnose] what it knows itself about calls that went wrong
 *
 * @typedef {object} PeerOptions
 * @property {KeySets} keySets
 * @property {number} [services] in the catalog, beside the one that is called; only ours has one
 *
 * @typedef {object} PeerKind
 * @property {string} title for tables
 * @property {() => string | null} missing what keeps it from running here, or null
 * @property {(stage: Stage, options: PeerOptions) => Promise<Peer>} start
 */

/** The listing, the same for everybody. Free calls are used up in the warm-up, and the check for them stays. */
export const listing = { price: 0.0001, priceMicros: 100, freeCalls: 10 };

/** The service's id in the paths of peers; ours gives it one of its own. */
export const peerServiceId = '0193517b-6a3c-7c58-9d3e-5f1f8f1a7e21';
export const peerPrefix = `/api/v1/proxy/${peerServiceId}/`;

export const chargeScript = fileURLToPath(new URL('./redis/charge.lua', import.meta.url));

/** @returns {Peer['watched']} */
export const nothingWatched = () => ({ proxy: [], redis: [], writer: [], postgres: [] });

/**
 * Keys, buckets and wallets of a metered peer in a Redis of its own.
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
 * Nothing reads the usage stream of a peer, so it is emptied between measurements.
 * @param {string} redisUrl
 */
export async function emptyUsageStream(redisUrl) {
  await withRedis(redisUrl, (redis) => redis.unlink('usage'));
}
