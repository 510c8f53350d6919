// @ts-check
// Asks a Redis without a pause whether an fsync is under way. A thread of its own, as one takes some milliseconds only.
//
// Redis begins one right after it has written to its file all that it was told, so what was acknowledged before it was last
// heard to have none is on the disk once it is heard to have none again. One that came and went unseen makes the next appear
// to be late, never early.

import { connect } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';

/** As all threads count. */
const now = () => performance.timeOrigin + performance.now();
const question = 'INFO persistence\r\n';
/** @param {string} info @param {string} name */
const numberOf = (info, name) => Number(new RegExp(`^${name}:(\\d+)\r`, 'm').exec(info)?.[1]);

/** @type {{ coversMs: number, doneMs: number }[]} */
const fsyncs = [];
let samples = 0;
/** Bytes that were acknowledged or are about to be, and not written to the file. */
let mostUnwritten = 0;
let askedMs = now();
/** When Redis was last asked that had none under way; and before the one that is. */
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
  mostUnwritten = Math.max(mostUnwritten, numberOf(reply, 'aof_buffer_length'));
  if (numberOf(reply, 'aof_pending_bio_fsync') > 0) coversMs ??= quietMs;
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
