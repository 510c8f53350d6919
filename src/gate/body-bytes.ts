/** Bytes allocated at first. The buffer doubles as often as needed. */
const FIRST_BYTES = 4_096;
const EMPTY = Buffer.alloc(0);

/**
 * Collects the pieces of a body in one buffer. A list of pieces would take 115 bytes for each, and with chunked coding a caller or
 * a service can send each byte of its body as a separate piece.
 *
 * Tested by test/http/body.test.ts.
 */
export class BodyBytes {
  readonly #maxBytes: number;
  #bytes = EMPTY;
  length = 0;

  /** @param maxBytes maximum length of the body, which the owner checks */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes of memory that are taken now. */
  get capacity(): number {
    return this.#bytes.byteLength;
  }

  /** Bytes of memory needed after this many bytes are added. */
  capacityWith(more: number): number {
    const needed = this.length + more;
    if (needed <= this.capacity) return this.capacity;
    return Math.min(Math.max(needed, 2 * this.capacity, FIRST_BYTES), this.#maxBytes);
  }

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

  /** Releases the memory. Views that were handed out remain valid. */
  clear(): void {
    this.#bytes = EMPTY;
    this.length = 0;
  }
}
