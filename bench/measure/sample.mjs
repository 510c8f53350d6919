// @ts-check
// Takes one measurement: puts one load on one peer, and reads what every part of the system used meanwhile.
// Tested by test/bench/failed.test.ts.

import { randomInt } from 'node:crypto';
import { drive } from '../load/drive.mjs';
import { watchMachine } from './machine-share.mjs';
import { cpuSecondsOf, rssBytesOf } from './proc.mjs';
import { withRedis } from './redis.mjs';

/**
 * @typedef {import('../peers/peer.mjs').Peer} Peer
 * @typedef {import('../stage/stage.mjs').Stage} Stage
 * @typedef {import('../load/drive.mjs').Driver} Driver
 * @typedef {import('../load/drive.mjs').Job} Job
 *
 * @typedef {object} Load what a scenario asks for. The rest of the driver's job follows from the peer
 * @property {string} [path] path of the service, without the first slash; default 'hello'
 * @property {string} [method] default GET
 * @property {number} [bodyBytes] default 0
 * @property {string} [rawPath] a path of the proxy itself, instead of `path`
 * @property {string | null} [keySet] default 'main'; null: without a key
 * @property {number} [ratePerSecond] makes it an open loop
 * @property {number} [expectStatus] default any 2xx
 * @property {{ bytes: number, perConnection: number }} [transfer] makes it a fixed number of whole bodies
 * @property {number} [firstAuth] the key to begin with; default: any
 * @property {boolean} [bySecond] of an open loop: tell each second apart
 * @property {number} [tolerateStatus] a few answers with this status are no errors
 *
 * @typedef {object} Sample
 * @property {string} peer
 * @property {Driver} driver
 * @property {string} variant tells apart several loads on the same peer; '' where there is one
 * @property {number} round
 * @property {number} connections
 * @property {number} seconds
 * @property {number} calls
 * @property {number} callsPerSecond
 * @property {import('../load/drive.mjs').Latency} latency
 * @property {import('../load/drive.mjs').LoadResult['errors']} errors
 * @property {number} tolerated answers with the tolerated status
 * @property {number} bytes
 * @property {Record<CpuPart, number | null>} cpuMicros per call; null if the peer has no such part
 * @property {number | null} tripsPerCall scripts that Redis ran per call; below 1 if calls share a trip
 * @property {number} rssBytes of the proxy when the load has just ended
 * @property {number} rssDuringBytes of the proxy: median over the second half of the load
 * @property {number} settledSeconds from the end of the load until its last event was stored
 * @property {number} foreignShare share of the machine that processes outside this benchmark used
 * @property {number} stolenShare share of the machine that its host gave to other virtual machines
 * @property {import('../load/drive.mjs').LoadResult['openLoop']} [openLoop]
 *
 * @typedef {'proxy' | 'redis' | 'replicas' | 'writer' | 'postgres'} CpuPart
 */

const cpuParts = /** @type {const} */ (['proxy', 'redis', 'replicas', 'writer', 'postgres']);

/** @param {Peer} peer @param {Load} load @param {{ connections: number, seconds: number }} how @returns {Job} */
export function jobOf(peer, load, { connections, seconds }) {
  const { keySet = 'main' } = load;
  const authFile = (keySet === null ? null : peer.authFiles?.[keySet]) ?? null;
  if (keySet !== null && peer.authFiles !== null && authFile === null) {
    throw new Error(`${peer.name} has no keys '${keySet}'`);
  }
  return {
    protocol: peer.protocol ?? 'http',
    host: peer.host,
    port: peer.port,
    path: load.rawPath ?? peer.prefix + (load.path ?? 'hello'),
    method: load.method ?? 'GET',
    bodyBytes: load.bodyBytes ?? 0,
    authFile,
    firstAuth: load.firstAuth ?? randomInt(2 ** 31),
    bySecond: load.bySecond === true,
    connections,
    seconds,
    ratePerSecond: load.ratePerSecond ?? null,
    expectStatus: load.expectStatus ?? null,
    tolerateStatus: load.tolerateStatus ?? null,
    transferBytes: load.transfer?.bytes ?? 0,
    transfersPerConnection: load.transfer?.perConnection ?? 0,
  };
}

/** @param {Load} load @param {Driver} driver for ordinary loads @returns {Driver} */
export function driverOf({ ratePerSecond, transfer }, driver) {
  if (transfer !== undefined) return 'transfer';
  return ratePerSecond === undefined ? driver : 'open-loop';
}

/** @param {Peer} peer */
const readCpu = (peer) => cpuParts.map((part) => cpuSecondsOf(peer.watched[part]));

/** How many scripts each Redis of the peer has run, in all. @param {Peer} peer @returns {Promise<number | null>} null: no Redis */
async function countTrips({ redisUrls }) {
  if (redisUrls === undefined) return null;
  const stats = await Promise.all(redisUrls.map((url) => withRedis(url, (redis) => redis.info('commandstats'))));
  return stats.reduce((sum, text) => sum + Number(/^cmdstat_evalsha:calls=(\d+)/m.exec(text)?.[1] ?? 0), 0);
}

const memoryIntervalMs = 500;

/** @param {Peer} peer */
function watchMemory(peer) {
  /** @type {number[]} */
  const readings = [];
  const read = () => readings.push(rssBytesOf(peer.watched.proxy));
  const timer = setInterval(read, memoryIntervalMs);
  return {
    end: () => clearInterval(timer),
    /** The median of the readings in the second half of the load. */
    median: () => {
      const later = readings.slice(readings.length >> 1).sort((a, b) => a - b);
      return later[later.length >> 1] ?? 0;
    },
  };
}

/**
 * @param {Stage} stage
 * @param {Peer} peer
 * @param {Driver} driver
 * @param {Load} load
 * @param {{ connections: number, seconds: number, processors: number }} how
 * @returns {Promise<Omit<Sample, 'variant' | 'round'>>}
 */
export async function measure(stage, peer, driver, load, how) {
  const machine = watchMachine(stage, how.processors);
  const tripsBefore = await countTrips(peer);
  const before = readCpu(peer);
  const memory = watchMemory(peer);
  // The timer must end even if the load fails. Otherwise it would keep the benchmark from ending.
  const result = await drive(stage.scratch, driver, jobOf(peer, load, how)).finally(memory.end);
  const endedAt = performance.now();
  const rssBytes = rssBytesOf(peer.watched.proxy);
  const rssDuringBytes = memory.median();
  // The counters are read when all work is done, not at the last answer: settling and storing a call belong to its cost. Idle
  // processes add hardly anything meanwhile.
  await peer.settled();
  const settledSeconds = (performance.now() - endedAt) / 1000;
  const after = readCpu(peer);
  const trips = await countTrips(peer);
  const perCall = (/** @type {number} */ index) => {
    const part = cpuParts[index];
    if (part === undefined || peer.watched[part].length === 0) return null;
    return (((after[index] ?? 0) - (before[index] ?? 0)) * 1e6) / result.calls;
  };
  return {
    peer: peer.name,
    driver,
    connections: how.connections,
    seconds: result.seconds,
    calls: result.calls,
    callsPerSecond: result.calls / result.seconds,
    latency: result.latency,
    errors: result.errors,
    tolerated: result.tolerated,
    bytes: result.bytes,
    cpuMicros: { proxy: perCall(0), redis: perCall(1), replicas: perCall(2), writer: perCall(3), postgres: perCall(4) },
    tripsPerCall: trips === null || tripsBefore === null ? null : (trips - tripsBefore) / result.calls,
    rssBytes,
    rssDuringBytes,
    settledSeconds,
    ...machine.stop(),
    ...(result.openLoop === undefined ? {} : { openLoop: result.openLoop }),
  };
}

/** @param {Sample['errors']} errors */
export const countErrors = ({ connect, socket, timeout, status }) => connect + socket + timeout + status;
