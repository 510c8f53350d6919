// @ts-check
// One measurement: one peer under one load, and what every part of the system used meanwhile.

import { drive } from '../load/drive.mjs';
import { cpuSeconds, cpuSecondsOf, machineCpuSeconds, rssBytesOf } from './proc.mjs';

/**
 * @typedef {import('../peers/peer.mjs').Peer} Peer
 * @typedef {import('../stage/stage.mjs').Stage} Stage
 * @typedef {import('../load/drive.mjs').Driver} Driver
 * @typedef {import('../load/drive.mjs').Job} Job
 *
 * @typedef {object} Load what a scenario asks for; the rest of the job follows from the peer
 * @property {string} [path] of the service, without the first slash; default 'hello'
 * @property {string} [method] default GET
 * @property {number} [bodyBytes] default 0
 * @property {string} [keySet] default 'main'
 * @property {number} [ratePerSecond] makes it an open loop
 * @property {number} [expectStatus] default any 2xx
 * @property {number} [tolerateStatus] a few of these are no errors
 *
 * @typedef {object} Sample
 * @property {string} peer
 * @property {string} variant tells apart several loads on the same peer; '' where there is one
 * @property {number} round
 * @property {number} connections
 * @property {number} seconds
 * @property {number} calls
 * @property {number} callsPerSecond
 * @property {import('../load/drive.mjs').Latency} latency
 * @property {import('../load/drive.mjs').LoadResult['errors']} errors
 * @property {number} tolerated answers with the status that is tolerated
 * @property {number} bytes
 * @property {Record<CpuPart, number | null>} cpuMicros per call; null: there is no such part
 * @property {number} rssBytes of the proxy at the end
 * @property {number} settledSeconds from the end of the load until its last event was stored
 * @property {number} foreignShare share of the machine that processes used which are not of this benchmark
 * @property {number} stolenShare share that the machine's host took away
 * @property {import('../load/drive.mjs').LoadResult['openLoop']} [openLoop]
 *
 * @typedef {'proxy' | 'redis' | 'writer' | 'postgres'} CpuPart
 */

export const cpuParts = /** @type {const} */ (['proxy', 'redis', 'writer', 'postgres']);

/** @param {Peer} peer @param {Load} load @param {{ connections: number, seconds: number }} how @returns {Job} */
export function jobOf(peer, load, { connections, seconds }) {
  const authFile = peer.authFiles?.[load.keySet ?? 'main'] ?? null;
  if (peer.authFiles !== null && authFile === null) throw new Error(`${peer.name} has no keys '${load.keySet}'`);
  return {
    host: peer.host,
    port: peer.port,
    path: peer.prefix + (load.path ?? 'hello'),
    method: load.method ?? 'GET',
    bodyBytes: load.bodyBytes ?? 0,
    authFile,
    connections,
    seconds,
    ratePerSecond: load.ratePerSecond ?? null,
    expectStatus: load.expectStatus ?? null,
    tolerateStatus: load.tolerateStatus ?? null,
  };
}

/** @param {Stage} stage @param {Peer} peer */
function readCounters(stage, peer) {
  const machine = machineCpuSeconds();
  return {
    parts: cpuParts.map((part) => cpuSecondsOf(peer.watched[part])),
    // Drivers are children of this process: their time is known when they have ended.
    own: cpuSecondsOf(stage.watched) + cpuSeconds(process.pid, { withReaped: true }),
    ...machine,
    at: performance.now() / 1000,
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
  const before = readCounters(stage, peer);
  const result = await drive(stage.scratch, driver, jobOf(peer, load, how));
  const endedAt = performance.now();
  const rssBytes = rssBytesOf(peer.watched.proxy);
  // The counters are read when the work is done, not when the last answer came: what a call leaves behind (settling,
  // storing) belongs to it. Idle processes add nothing that matters.
  await peer.settled();
  const settledSeconds = (performance.now() - endedAt) / 1000;
  const after = readCounters(stage, peer);
  const perCall = (/** @type {number} */ index) => {
    const part = cpuParts[index];
    if (part === undefined || peer.watched[part].length === 0) return null;
    return (((after.parts[index] ?? 0) - (before.parts[index] ?? 0)) * 1e6) / result.calls;
  };
  const capacity = (after.at - before.at) * how.processors;
  return {
    peer: peer.name,
    connections: how.connections,
    seconds: result.seconds,
    calls: result.calls,
    callsPerSecond: result.calls / result.seconds,
    latency: result.latency,
    errors: result.errors,
    tolerated: result.tolerated,
    bytes: result.bytes,
    cpuMicros: { proxy: perCall(0), redis: perCall(1), writer: perCall(2), postgres: perCall(3) },
    rssBytes,
    settledSeconds,
    foreignShare: Math.max(0, after.busy - before.busy - (after.own - before.own)) / capacity,
    stolenShare: (after.stolen - before.stolen) / capacity,
    ...(result.openLoop === undefined ? {} : { openLoop: result.openLoop }),
  };
}

/** @param {Sample['errors']} errors */
export const countErrors = ({ connect, socket, timeout, status }) => connect + socket + timeout + status;
