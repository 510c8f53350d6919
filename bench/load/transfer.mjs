// @ts-check
// The driver for large bodies. Every connection makes a few whole transfers, one after another. It reads into one buffer, which is
// used again and again, so that the driver costs little beside the proxy.

import { connect } from 'node:net';
import { readAuthorizations, readJob, statusCounter, writeResult } from './drive.mjs';
import { newHistogram, recordMicros, summaryOf } from './histogram.mjs';

const job = readJob();
const { transferBytes, transfersPerConnection } = job;
const authorizations = readAuthorizations(job);
const isUpload = job.method === 'POST';
const readBufferBytes = 1024 * 1024;
const writeChunk = Buffer.alloc(256 * 1024, 'x');
const maxHeadBytes = 64 * 1024;

const latency = newHistogram();
const statuses = statusCounter(job);
let bytes = 0;
let lost = 0;

class Transfer {
  #socket;
  #head = '';
  #bodyRemaining = -1;
  #startedAt = 0;
  #left = transfersPerConnection;
  #authorization;
  /** @type {() => void} */
  #done = () => {};
  finished = new Promise((resolve) => {
    this.#done = () => resolve(undefined);
  });

  /** @param {string | null} authorization */
  constructor(authorization) {
    this.#authorization = authorization;
    const buffer = Buffer.allocUnsafe(readBufferBytes);
    this.#socket = connect({
      host: job.host,
      port: job.port,
      noDelay: true,
      onread: { buffer, callback: (count) => this.#onRead(buffer.subarray(0, count)) },
    });
    this.#socket.once('connect', () => this.#begin());
    this.#socket.on('error', () => {});
    this.#socket.once('close', () => {
      lost += this.#left;
      this.#done();
    });
  }

  #begin() {
    this.#head = '';
    this.#bodyRemaining = -1;
    this.#startedAt = performance.now();
    const authorization = this.#authorization === null ? '' : `Authorization: ${this.#authorization}\r\n`;
    const length = isUpload ? `Content-Length: ${transferBytes}\r\n` : '';
    this.#socket.write(`${job.method} ${job.path} HTTP/1.1\r\nHost: ${job.host}\r\n${authorization}${length}\r\n`);
    if (isUpload) this.#upload(transferBytes);
  }

  /** @param {number} remaining */
  #upload(remaining) {
    let left = remaining;
    while (left > 0) {
      const chunk = left < writeChunk.length ? writeChunk.subarray(0, left) : writeChunk;
      left -= chunk.length;
      bytes += chunk.length;
      if (!this.#socket.write(chunk)) {
        this.#socket.once('drain', () => this.#upload(left));
        return;
      }
    }
  }

  /** @param {Buffer} chunk */
  #onRead(chunk) {
    let body = chunk;
    if (this.#bodyRemaining < 0) {
      const rest = this.#readHead(chunk);
      if (rest === null) return true;
      body = rest;
    }
    this.#bodyRemaining -= body.length;
    if (!isUpload) bytes += body.length;
    if (this.#bodyRemaining === 0) this.#end();
    // More bytes came than the body has. The connection is cut, so that the transfer counts as lost.
    else if (this.#bodyRemaining < 0) this.#socket.destroy();
    return true;
  }

  /** @param {Buffer} chunk @returns {Buffer | null} what follows the head */
  #readHead(chunk) {
    const before = this.#head.length;
    this.#head += chunk.toString('latin1', 0, Math.min(chunk.length, maxHeadBytes));
    const end = this.#head.indexOf('\r\n\r\n');
    if (end < 0) return null;
    statuses.count(Number(this.#head.slice(9, 12)));
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(this.#head.slice(0, end + 2))?.[1]);
    if (!isUpload && length !== transferBytes)
      throw new Error(`the body has ${length} bytes instead of ${transferBytes}`);
    this.#bodyRemaining = length;
    return chunk.subarray(end + 4 - before);
  }

  #end() {
    recordMicros(latency, (performance.now() - this.#startedAt) * 1000);
    this.#left -= 1;
    if (this.#left > 0) this.#begin();
    else this.#socket.destroy();
  }
}

const startedAt = performance.now();
const transfers = Array.from(
  { length: job.connections },
  (_, index) => new Transfer(authorizations[index % authorizations.length] ?? null),
);
await Promise.all(transfers.map(({ finished }) => finished));
const { unexpected, tolerated } = statuses.counts;
writeResult({
  seconds: (performance.now() - startedAt) / 1000,
  calls: latency.count,
  bytes,
  tolerated,
  errors: { connect: 0, socket: lost, timeout: 0, status: unexpected },
  latency: summaryOf(latency),
});
