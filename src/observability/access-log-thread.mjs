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
/** A file is locked for the time of a write, however long that is. */
const FILE_BYTES = 65_536;
const NAP_MS = 5;
const LINE_BREAK = 10;
// See access-log.ts.
const [WRITTEN, HANDED_OVER, SIGNALS, STOPPED] = [0, 1, 2, 3];

/** @type {{ fd: number, ring: Uint8Array, state: Int32Array }} */
const { fd, ring, state } = workerData;
const never = new Int32Array(new SharedArrayBuffer(4));
const piece = Buffer.allocUnsafe(fstatSync(fd).isFile() ? FILE_BYTES : PIPE_BYTES);
let written = 0;

for (;;) {
  // Read before the others: whatever changes after that ends the wait.
  const signals = Atomics.load(state, SIGNALS);
  // Before what is handed over, which is stored first: a thread that sees the stop sees the last lines.
  const isStopped = Atomics.load(state, STOPPED) === 1;
  const waiting = (Atomics.load(state, HANDED_OVER) - written) | 0;
  if (waiting > 0) writePiece(waiting);
  else if (isStopped) break;
  else Atomics.wait(state, SIGNALS, signals);
}

/** Writes as many whole lines as fit into a piece. A line is much shorter than one. @param {number} waiting bytes */
function writePiece(waiting) {
  const size = Math.min(waiting, piece.length);
  const from = written & (ring.length - 1);
  const first = ring.subarray(from, from + size);
  piece.set(first);
  piece.set(ring.subarray(0, size - first.length), first.length);
  const end = size === waiting ? size : piece.lastIndexOf(LINE_BREAK, size - 1) + 1;
  writeAll(piece.subarray(0, end));
  written = (written + end) | 0;
  Atomics.store(state, WRITTEN, written);
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
