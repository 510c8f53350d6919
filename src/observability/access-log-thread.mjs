// @ts-check
// The thread of the access log (access-log.ts). It may wait for the reader of the log as long as that takes. Plain JavaScript,
// because tests run the sources, and a thread of Node 20 can load no TypeScript.

import { fstatSync, writeSync } from 'node:fs';
import { workerData } from 'node:worker_threads';

/**
 * POSIX writes up to this many bytes to a pipe in one piece (PIPE_BUF). So each write is of whole lines, and no line of another
 * process gets into one.
 */
const PIPE_BYTES = 4_096;
/** Linux lets nobody else write to a file meanwhile, however long the piece is. */
const FILE_BYTES = 65_536;
const NAP_MS = 5;
const LINE_BREAK = 10;
/** `END` of access-log.ts. */
const END = 0;

// See access-log.ts.
/** @type {{ fd: number, ring: Uint8Array, put: Int32Array, written: Int32Array }} */
const { fd, ring, put, written } = workerData;
const never = new Int32Array(new SharedArrayBuffer(4));
const piece = Buffer.allocUnsafe(fstatSync(fd).isFile() ? FILE_BYTES : PIPE_BYTES);

for (let at = 0, isEnd = false; !isEnd; Atomics.store(written, 0, at)) {
  Atomics.wait(put, 0, at);
  const waiting = (Atomics.load(put, 0) - at) | 0;
  const size = Math.min(waiting, piece.length);
  const from = at & (ring.length - 1);
  const first = ring.subarray(from, from + size);
  piece.set(first);
  piece.set(ring.subarray(0, size - first.length), first.length);
  isEnd = size > 0 && piece[size - 1] === END;
  // A line is much shorter than a piece.
  const lines = piece.subarray(0, piece.lastIndexOf(LINE_BREAK, size - 1) + 1);
  writeAll(lines);
  at = (at + lines.length) | 0;
}

/** @param {Buffer} bytes */
function writeAll(bytes) {
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(fd, bytes, at);
    } catch (error) {
      // Nobody can read the log any more (EPIPE, ENOSPC), and there is nowhere else to report it. The log itself does the same.
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EAGAIN') return;
      Atomics.wait(never, 0, 0, NAP_MS);
    }
  }
}
