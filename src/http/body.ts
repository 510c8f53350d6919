import type { CallerEvents, CallerStream } from '../gate/caller-io.ts';

/**
 * Collects the pieces of a body in one buffer. A list of pieces would take 115 bytes for each, and a caller can send a piece for
 * every byte of its body, by chunked coding.
 */
export class BodyBytes {
  #bytes = Buffer.alloc(0);
  length = 0;

  /** Copies the piece. */
  add(piece: Uint8Array): void {
    const length = this.length + piece.length;
    if (length > this.#bytes.length) {
      const grown = Buffer.allocUnsafe(Math.max(length, 2 * this.#bytes.length));
      this.#bytes.copy(grown, 0, 0, this.length);
      this.#bytes = grown;
    }
    this.#bytes.set(piece, this.length);
    this.length = length;
  }

  /** A view on the bytes so far. */
  get all(): Buffer {
    return this.#bytes.subarray(0, this.length);
  }
}

/**
 * Reads a whole request body.
 *
 * @returns the bytes, or null if there are more than `maxBytes`. Never resolves if the caller leaves, because nobody is left
 *   to answer.
 */
export function readBody(stream: CallerStream, maxBytes: number): Promise<Buffer | null> {
  return new Promise((resolve) => {
    const body = new BodyBytes();
    const events: CallerEvents = {
      onCallerBody(piece, last) {
        if (body.length + piece.length > maxBytes) {
          resolve(null);
          return;
        }
        body.add(piece);
        if (last) resolve(body.all);
      },
      onCallerGone() {},
      onCallerWritable() {},
    };
    stream.attach(events);
  });
}
