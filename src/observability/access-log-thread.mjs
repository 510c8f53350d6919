// @ts-check
// The thread of the access log (access-log.ts). It may wait for the reader of the log as long as that takes. Plain JavaScript,
// because tests run the sources, and a thread of Node 20 can load no TypeScript.

import { writeSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';

/**
 * POSIX writes up to this many bytes to a pipe in one piece (PIPE_BUF). So each write is of whole lines, and no line of another
 * process gets into one.
 */
const PIECE_BYTES = 4_096;
const NAP_MS = 5;
const LINE_BREAK = 10;

/** @type {{ fd: number, written: Int32Array }} */
const { fd, written } = workerData;
const never = new Int32Array(new SharedArrayBuffer(4));

parentPort?.on('message', (/** @type {string | null} */ text) => {
  if (text === null) parentPort?.close();
  else writeLines(Buffer.from(text, 'latin1'));
});

/** @param {Buffer} bytes  whole lines, each much shorter than a piece */
function writeLines(bytes) {
  for (let at = 0; at < bytes.length; ) {
    const end =
      at + PIECE_BYTES < bytes.length ? bytes.lastIndexOf(LINE_BREAK, at + PIECE_BYTES - 1) + 1 : bytes.length;
    writePiece(bytes.subarray(at, end));
    Atomics.add(written, 0, end - at);
    at = end;
  }
}

/** @param {Buffer} piece */
function writePiece(piece) {
  for (let at = 0; at < piece.length; ) {
    try {
      at += writeSync(fd, piece, at);
    } catch (error) {
      // Nobody can read the log any more (EPIPE, ENOSPC), and there is nowhere else to report it. The log itself does the same.
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EAGAIN') return;
      Atomics.wait(never, 0, 0, NAP_MS);
    }
  }
}
