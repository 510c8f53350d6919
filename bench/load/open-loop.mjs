// @ts-check
// The driver for latency at a fixed rate. Calls begin when they are due, whether or not others were answered, and each is timed
// from the moment at which it was due. So while a server stalls, all the calls pile up that real callers would have sent. A closed
// loop would wait together with the server and never notice the stall ("coordinated omission").
//
// The gaps between calls are exponential, as with independent callers, from a fixed seed: every peer gets the same arrivals.

import { connect } from 'node:net';
import { readAuthorizations, readJob, statusCounter, writeResult } from './drive.mjs';
import { newHistogram, recordMicros, summaryOf } from './histogram.mjs';
import { ResponseReader } from './response-reader.mjs';

const job = readJob();
const ratePerMs = (job.ratePerSecond ?? 0) / 1000;
if (!(ratePerMs > 0)) throw new Error('the open loop needs a rate');

// Node's timers have a resolution of a millisecond, and would send calls in bursts that no server meets in reality. So the loop
// polls, and sleeps this long between two looks. That takes about 10 % of one processor.
const napMs = 0.05;
// Calls that find every connection busy wait in line. The line is as long as the calls of 2 s; calls beyond it are not sent at
// all, and count as errors.
const maxWaitingMs = 2_000;
// How long the connections may take to open, and the calls under way to end. A call that takes longer is an error.
const drainMs = 5_000;

const body = 'x'.repeat(job.bodyBytes);
const requests = readAuthorizations(job).map((authorization) =>
  Buffer.from(
    `${job.method} ${job.path} HTTP/1.1\r\nHost: ${job.host}:${job.port}\r\n` +
      (authorization === null ? '' : `Authorization: ${authorization}\r\n`) +
      (job.bodyBytes === 0 ? '' : `Content-Length: ${job.bodyBytes}\r\n`) +
      `\r\n${body}`,
  ),
);

const latency = newHistogram();
const lateness = newHistogram();
const statuses = statusCounter(job);
let lost = 0;
let bytes = 0;
let unsent = 0;
let begun = 0;
let ended = false;
/** For each second, the latencies (ms) of the answers to calls that were due in it, and how many of these had a tolerated status. */
const seconds = Array.from({ length: job.bySecond === true ? job.seconds : 0 }, () => ({
  due: 0,
  tolerated: 0,
  latencies: /** @type {number[]} */ ([]),
}));
let startedAt = 0;

/** @param {number} dueAt */
const secondOf = (dueAt) => seconds[Math.floor((dueAt - startedAt) / 1000)];

/** The random numbers of a seed, by mulberry32, which is small and fast. @param {number} seed */
function randomFrom(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/**
 * In the order in which they became idle. They take turns: one that waits for longer than about ten seconds is closed by the gateway, which
 * loses the call that is sent just then, and all of them open again at once.
 * @type {Set<Connection>}
 */
const idle = new Set();
/** Due times of calls that wait for a connection. @type {number[]} */
let waiting = [];
/** Index of the first call in line. Shifting a line of 100 000 took 16 µs: a quarter of a processor that the server needs. */
let firstWaiting = 0;

/** @returns {number | undefined} */
function nextWaiting() {
  if (firstWaiting === waiting.length) return undefined;
  const dueAt = waiting[firstWaiting];
  firstWaiting += 1;
  if (firstWaiting > maxWaiting) {
    waiting = waiting.slice(firstWaiting);
    firstWaiting = 0;
  }
  return dueAt;
}

class Connection {
  #socket;
  #dueAt = 0;
  #isBusy = false;
  #reader = new ResponseReader((status) => this.#onResponse(status));

  constructor() {
    this.#socket = connect({ host: job.host, port: job.port, noDelay: true });
    this.#socket.once('connect', () => this.#release());
    this.#socket.on('data', (chunk) => {
      bytes += chunk.length;
      this.#reader.push(chunk);
    });
    this.#socket.on('error', () => {});
    this.#socket.once('close', () => this.#onClose());
  }

  /** @param {number} dueAt */
  send(dueAt) {
    this.#dueAt = dueAt;
    this.#isBusy = true;
    begun += 1;
    this.#socket.write(/** @type {Buffer} */ (requests[begun % requests.length]));
  }

  destroy() {
    this.#socket.destroy();
  }

  /** @param {number} status */
  #onResponse(status) {
    this.#isBusy = false;
    const tookMs = performance.now() - this.#dueAt;
    recordMicros(latency, tookMs * 1000);
    statuses.count(status);
    const second = secondOf(this.#dueAt);
    if (second !== undefined && status === job.tolerateStatus) second.tolerated += 1;
    second?.latencies.push(tookMs);
    this.#release();
  }

  #release() {
    const dueAt = nextWaiting();
    if (dueAt === undefined) idle.add(this);
    else this.send(dueAt);
  }

  #onClose() {
    if (ended) return;
    // A server may close a connection between two calls. Within a call that is an error.
    if (this.#isBusy) lost += 1;
    idle.delete(this);
    connections.delete(this);
    connections.add(new Connection());
  }
}

/** @type {Set<Connection>} */
const connections = new Set();
for (let i = 0; i < job.connections; i += 1) connections.add(new Connection());

const nap = new Int32Array(new SharedArrayBuffer(4));
const random = randomFrom(1);
const gapMs = () => -Math.log(1 - random()) / ratePerMs;
const maxWaiting = Math.ceil(ratePerMs * maxWaitingMs);

/** @param {number} dueAt */
function begin(dueAt) {
  const second = secondOf(dueAt);
  if (second !== undefined) second.due += 1;
  const [connection] = idle;
  if (connection !== undefined) {
    idle.delete(connection);
    connection.send(dueAt);
  } else if (waiting.length - firstWaiting < maxWaiting) waiting.push(dueAt);
  else unsent += 1;
}

function run() {
  startedAt = performance.now();
  const endsAt = startedAt + job.seconds * 1000;
  let dueAt = startedAt + gapMs();
  const step = () => {
    const now = performance.now();
    if (now >= endsAt) return void drain(now - startedAt);
    while (dueAt <= now) {
      recordMicros(lateness, (now - dueAt) * 1000);
      begin(dueAt);
      dueAt += gapMs();
    }
    if (dueAt - performance.now() > napMs) Atomics.wait(nap, 0, 0, napMs);
    setImmediate(step);
  };
  step();
}

/** Waits for the calls under way: without them the slowest calls of all would not be counted. @param {number} elapsedMs */
async function drain(elapsedMs) {
  const inTime = { calls: latency.count, tolerated: statuses.counts.tolerated };
  const deadline = performance.now() + drainMs;
  while (idle.size < connections.size && performance.now() < deadline) await new Promise((go) => setTimeout(go, 5));
  ended = true;
  const unanswered = connections.size - idle.size + waiting.length - firstWaiting;
  waiting = [];
  firstWaiting = 0;
  for (const connection of connections) connection.destroy();
  const { unexpected, tolerated } = statuses.counts;
  writeResult({
    seconds: elapsedMs / 1000,
    calls: latency.count,
    bytes,
    tolerated,
    // A call that could not even be begun got no answer in time either.
    errors: { connect: 0, socket: lost, timeout: unanswered + unsent, status: unexpected },
    latency: summaryOf(latency),
    openLoop: { unsent, latenessP99Micros: lateness.percentile(99), inTime, bySecond: seconds.map(summaryOfSecond) },
  });
}

/**
 * The median and the p99 of all calls that were due in a second: one without an answer was slower than any other.
 * @param {typeof seconds[number]} second
 */
function summaryOfSecond({ due, tolerated, latencies }) {
  latencies.sort((a, b) => a - b);
  const p99Ms = latencies[Math.floor(due * 0.99)] ?? null;
  return { due, tolerated, answered: latencies.length, p50Ms: latencies[due >> 1] ?? null, p99Ms };
}

async function connectAll() {
  const deadline = performance.now() + drainMs;
  while (idle.size < job.connections) {
    if (performance.now() > deadline) throw new Error(`only ${idle.size} of ${job.connections} connections are open`);
    await new Promise((go) => setTimeout(go, 5));
  }
}

await connectAll();
run();
