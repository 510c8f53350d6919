// @ts-check
// The driver for event streams. It opens all streams, waits until each has brought something, and then measures how long each
// event took from the service to here. Both sides read CLOCK_MONOTONIC, which all processes of a machine share.

import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { readAuthorizations, readJob, statusCounter, writeResult } from './drive.mjs';
import { newHistogram, recordMicros, summaryOf } from './histogram.mjs';

const job = readJob();
const authorizations = readAuthorizations(job);
const statuses = statusCounter(job);
let delay = newHistogram();
let bytes = 0;
let speaking = 0;
let ended = 0;

// Streams are opened in groups, so that no listen queue overflows.
const groupSize = 50;
const groupGapMs = 20;
const allSpeakTimeoutMs = 30_000;
const event = /data: (\d+)\n\n/g;

/** @param {string | null} authorization */
function openStream(authorization) {
  let isFirst = true;
  let tail = '';
  const buffer = Buffer.allocUnsafe(4096);
  /** @param {Buffer} chunk */
  const onChunk = (chunk) => {
    bytes += chunk.length;
    const text = tail + chunk.toString('latin1');
    if (isFirst) {
      statuses.count(Number(text.slice(9, 12)));
      isFirst = false;
      speaking += 1;
    }
    let seen = 0;
    for (const match of text.matchAll(event)) {
      recordMicros(delay, nowMicros() - Number(match[1]));
      seen = match.index + match[0].length;
    }
    // The network may cut an event in two, so keep the end of what came. An event has fewer than 64 characters.
    tail = text.slice(Math.max(seen, text.length - 64));
    return true;
  };
  const callback = (/** @type {number} */ count) => onChunk(buffer.subarray(0, count));
  const socket = connect({ host: job.host, port: job.port, noDelay: true, onread: { buffer, callback } });
  const header = authorization === null ? '' : `Authorization: ${authorization}\r\n`;
  socket.write(`GET ${job.path} HTTP/1.1\r\nHost: ${job.host}\r\nAccept: text/event-stream\r\n${header}\r\n`);
  socket.on('error', () => {});
  socket.once('close', () => {
    ended += 1;
  });
}

function nowMicros() {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e6 + nanoseconds / 1e3;
}

for (let opened = 0; opened < job.connections; opened += 1) {
  openStream(authorizations[opened % authorizations.length] ?? null);
  if (opened % groupSize === groupSize - 1) await sleep(groupGapMs);
}
const deadline = performance.now() + allSpeakTimeoutMs;
while (speaking < job.connections && performance.now() < deadline) await sleep(20);
// What was seen while streams were opened is not what this is about.
delay = newHistogram();
bytes = 0;
const startedAt = performance.now();
await sleep(job.seconds * 1000);
const { unexpected, tolerated } = statuses.counts;
writeResult({
  seconds: (performance.now() - startedAt) / 1000,
  calls: delay.count,
  bytes,
  tolerated,
  errors: { connect: job.connections - speaking, socket: ended, timeout: 0, status: unexpected },
  latency: summaryOf(delay),
});
process.exit(0);
