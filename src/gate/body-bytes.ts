/** What is kept at first. It doubles as often as needed. */
const FIRST_BYTES = 4_096;
const EMPTY = Buffer.alloc(0);

/**
 * Collects the pieces of a body in one buffer. A list of pieces would take 115 bytes for each, and a caller or a service can send a piece
 * for every byte of its body, by chunked coding.
 *
 * Tested by test/http/body.test.ts.
 */
export class BodyBytes {
  readonly #maxBytes: number;
  #bytes = EMPTY;
  length = 0;

  /** @param maxBytes  that the body may have in all. The owner checks it */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes of memory that are taken now. */
  get capacity(): number {
    return this.#bytes.byteLength;
  }

  /** Bytes of memory that will be taken once this many more bytes are added. */
  capacityWith(more: number): number {
    const needed = this.length + more;
    if (needed <= this.capacity) return this.capacity;
    return Math.min(Math.max(needed, 2 * this.capacity, FIRST_BYTES), this.#maxBytes);
  }

  /** Copies the piece. */
  add(piece: Uint8Array): void {
    const capacity = this.capacityWith(piece.length);
    if (capacity > this.capacity) {
      const larger = Buffer.allocUnsafeSlow(capacity);
      larger.set(this.all);
      this.#bytes = larger;
    }
    this.#bytes.set(piece, this.length);
    this.length += piece.length;
  }

  /** A view on the bytes so far. */
  get all(): Buffer {
    return this.#bytes.subarray(0, this.length);
  }

  /** Lets go of the memory. Views that were handed out stay good. */
  clear(): void {
    this.#bytes = EMPTY;
    this.length = 0;
  }
}
