// @ts-check
// The driver for stalled readers: callers that ask for a body and stop reading after its first bytes. It opens their connections
// in groups, waits, and closes them. For each of them the kernel fills several MiB of socket buffers, which takes longer than
// opening the connection. So a group begins when the group before it was answered.

import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { readAuthorizations, readJob, statusCounter, writeResult } from './drive.mjs';
import { newHistogram, summaryOf } from './histogram.mjs';

const job = readJob();
const authorizations = readAuthorizations(job);
const statuses = statusCounter(job);
let answered = 0;
let ended = 0;

const groupSize = 20;
const openingTimeoutMs = 30_000;
const openUntil = performance.now() + openingTimeoutMs;

for (let opened = 0; opened < job.connections; opened += 1) {
  const authorization = authorizations[opened % authorizations.length] ?? null;
  const header = authorization === null ? '' : `Authorization: ${authorization}\r\n`;
  const socket = connect({ host: job.host, port: job.port });
  socket.write(`${job.method} ${job.path} HTTP/1.1\r\nHost: ${job.host}\r\n${header}\r\n`);
  socket.once('data', (chunk) => {
    socket.pause();
    answered += 1;
    statuses.count(Number(chunk.toString('latin1', 9, 12)));
  });
  socket.on('error', () => {});
  socket.once('close', () => {
    ended += 1;
  });
  if (opened % groupSize !== groupSize - 1) continue;
  while (answered + ended <= opened && performance.now() < openUntil) await sleep(5);
}
await sleep(job.seconds * 1000);
const { unexpected, tolerated } = statuses.counts;
writeResult({
  seconds: job.seconds,
  calls: answered,
  bytes: 0,
  tolerated,
  errors: { connect: job.connections - answered, socket: ended, timeout: 0, status: unexpected },
  latency: summaryOf(newHistogram()),
});
process.exit(0);
