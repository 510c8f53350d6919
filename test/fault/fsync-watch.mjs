// @ts-check
// Asks a Redis continuously whether an fsync is under way. It has its own thread, because an fsync takes only milliseconds.
//
// Redis begins an fsync right after it has written all commands to its file. So a write acknowledged before the last reply
// without an fsync is on the disk at the first reply after that fsync. If an fsync was missed between two questions, the next
// one appears to be late, never early.

import { connect } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';
import { infoNumber } from '../support/redis-info.mjs';

/** The time on a clock that all threads share. */
const now = () => performance.timeOrigin + performance.now();
const question = 'INFO persistence\r\n';

/** @type {{ coversMs: number, doneMs: number }[]} */
const fsyncs = [];
let samples = 0;
/** Maximum number of bytes seen that were acknowledged, or about to be, but not written to the file. */
let mostUnwritten = 0;
let askedMs = now();
/** When the last question was sent that found no fsync under way. */
let quietMs = askedMs;
/** @type {number | null} */
let coversMs = null;

const socket = connect({ port: workerData.port, host: '127.0.0.1', noDelay: true });
socket.setEncoding('latin1');
let reply = '';
socket.on('data', (text) => {
  reply += text;
  const length = Number(/^\$(\d+)\r\n/.exec(reply)?.[1]);
  if (!(reply.length >= `$${length}\r\n`.length + length + 2)) return;
  const heardMs = now();
  samples++;
  mostUnwritten = Math.max(mostUnwritten, infoNumber(reply, 'aof_buffer_length'));
  if (infoNumber(reply, 'aof_pending_bio_fsync') > 0) coversMs ??= quietMs;
  else {
    if (coversMs !== null) fsyncs.push({ coversMs, doneMs: heardMs });
    coversMs = null;
    quietMs = askedMs;
  }
  reply = '';
  if (heardMs >= workerData.untilMs) {
    socket.destroy();
    parentPort?.postMessage({ fsyncs, samples, mostUnwritten });
    return;
  }
  askedMs = now();
  socket.write(question);
});
askedMs = now();
socket.write(question);
