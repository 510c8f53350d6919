// @ts-check
// Makes API keys for load. A key may make at most 300 calls a minute (and as many at once), and a run in which a call is refused is
// not valid. So a load uses thousands of keys in turn.

import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { withRedis } from '../measure/redis.mjs';

/**
 * @typedef {object} BenchKey
 * @property {string} key_id
 * @property {string} secret
 * @property {string} account_id
 *
 * @typedef {object} KeySet keys of one kind
 * @property {number} count
 * @property {number} rateLimit requests a minute
 * @property {number} balanceUsd
 * @property {number} [levels] how many keys with a budget hang below each, of which the lowest calls; default 0
 *
 * @typedef {Record<string, KeySet>} KeySets by name. Scenarios use `main` unless they say otherwise
 */

export const rateLimit = 300;
// Enough for ten million calls at 100 micro-USD each, so no wallet becomes empty.
const balanceUsd = 1000;

// No peer has reached this rate with one worker on any machine so far. If a peer does, calls are refused for lack of keys; they
// count as errors, and the run is reported as invalid.
const boldestCallsPerSecond = 40_000;
const margin = 1.25;

/**
 * How many keys are needed so that all calls of this many seconds of load pass. Each key has a full bucket, and gets 5 tokens a
 * second.
 * @param {number} seconds
 */
export function keysFor(seconds) {
  const calls = boldestCallsPerSecond * seconds * margin;
  return Math.max(1_000, Math.ceil(calls / (rateLimit + (rateLimit / 60) * seconds)));
}

/** A set of keys whose calls all pass during this many seconds of load. @param {number} seconds @returns {KeySet} */
export const fundedKeys = (seconds) => ({ count: keysFor(seconds), rateLimit, balanceUsd });

/** @param {number} count @returns {BenchKey[]} keys for the peers, in the form of Tollgate's keys */
export function makeKeys(count) {
  return Array.from({ length: count }, () => ({
    key_id: `acf_${text(22)}`,
    secret: `sk_${text(49)}`,
    account_id: randomUUID(),
  }));
}

/** @param {number} chars */
const text = (chars) => randomBytes(chars).toString('hex').slice(0, chars);

/** @param {string} file as `npm run seed` writes it @returns {BenchKey[]} */
export function readKeys(file) {
  return readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

/** Writes the file that drivers read: one value of `Authorization` on each line. @param {string} file @param {readonly BenchKey[]} keys */
export function writeAuthFile(file, keys) {
  writeFileSync(file, keys.map(({ key_id, secret }) => `Bearer ${key_id}:${secret}\n`).join(''), { mode: 0o600 });
  return file;
}

/** Writes the file that peers read: key id, SHA-256 of the secret, account. @param {string} file @param {readonly BenchKey[]} keys */
export function writeKeyTable(file, keys) {
  const line = (/** @type {BenchKey} */ key) => `${key.key_id}\t${sha256(key.secret)}\t${key.account_id}\n`;
  writeFileSync(file, keys.map(line).join(''), { mode: 0o600 });
  return file;
}

/** @param {string} value */
const sha256 = (value) => createHash('sha256').update(value).digest('hex');

const commandsPerTrip = 1_000;

/**
 * Puts the token buckets and wallets of a peer's keys into its Redis.
 * @param {string} redisUrl
 * @param {readonly BenchKey[]} keys
 * @param {KeySet} set
 */
export async function loadPeerKeys(redisUrl, keys, set) {
  await withRedis(redisUrl, async (redis) => {
    for (let from = 0; from < keys.length; from += commandsPerTrip) {
      const pipeline = redis.pipeline();
      for (const { key_id, account_id } of keys.slice(from, from + commandsPerTrip)) {
        pipeline.hset(`key:${key_id}`, { limit: set.rateLimit, status: 'active' });
        pipeline.hset(`wallet:${account_id}`, { balance: set.balanceUsd * 1_000_000 });
      }
      await pipeline.exec();
    }
  });
}
