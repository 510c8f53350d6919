import type { CallerEvents, CallerStream } from '../gate/caller-io.ts';

/** What is kept at first for a body that does not arrive in one piece. It doubles as often as needed. */
const FIRST_BYTES = 4_096;

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
 * Counts the bytes that long bodies keep while they arrive. The edge cuts callers that are idle for a minute; one that sends an octet a
 * minute would keep its share of the memory for days, so a long body also has a time.
 */
export class BodyBudget {
  /** Maximum bytes of one body that count for nothing. There are as many of them as connections. */
  readonly freeBytes: number;
  /** Maximum time in which a longer body must arrive. */
  readonly maxMs: number;
  #left: number;

  constructor(options: { readonly freeBytes: number; readonly maxBytes: number; readonly maxMs: number }) {
    this.freeBytes = options.freeBytes;
    this.maxMs = options.maxMs;
    this.#left = options.maxBytes;
  }

  /** @returns false, and changes nothing, if the bytes are not left */
  grow(from: number, to: number): boolean {
    const more = this.#counted(to) - this.#counted(from);
    if (more > this.#left) return false;
    this.#left -= more;
    return true;
  }

  release(bytes: number): void {
    this.#left += this.#counted(bytes);
  }

  #counted(bytes: number): number {
    return bytes > this.freeBytes ? bytes : 0;
  }
}

export type Body = Buffer | 'too_large' | 'too_slow' | 'no_room';

/**
 * Reads a whole request body. Its pieces are copied into one buffer: a caller may send chunks of a single octet, and an object for each
 * would take a hundred times their length.
 *
 * @returns the bytes, 'too_large' if there are more than `maxBytes`, 'too_slow' if a long body takes too much time, or 'no_room' if the
 *   bodies of all requests take too much memory. Never resolves if the caller leaves, because nobody is left to answer.
 */
export function readBody(stream: CallerStream, maxBytes: number, budget: BodyBudget): Promise<Body> {
  return new Promise((resolve) => {
    let buffer = Buffer.alloc(0);
    let length = 0;
    let isOver = false;
    let deadline: NodeJS.Timeout | undefined;
    const finish = (result: Body | null): void => {
      if (isOver) return;
      isOver = true;
      clearTimeout(deadline);
      budget.release(buffer.byteLength);
      buffer = Buffer.alloc(0);
      if (result !== null) resolve(result);
    };
    const makeRoom = (needed: number): boolean => {
      if (needed <= buffer.byteLength) return true;
      const size = Math.min(Math.max(needed, 2 * buffer.byteLength, FIRST_BYTES), maxBytes);
      if (!budget.grow(buffer.byteLength, size)) return false;
      if (size > budget.freeBytes) deadline ??= setTimeout(() => finish('too_slow'), budget.maxMs);
      const larger = Buffer.allocUnsafeSlow(size);
      larger.set(buffer.subarray(0, length));
      buffer = larger;
      return true;
    };
    const events: CallerEvents = {
      onCallerBody(chunk, last) {
        if (isOver) return;
        const needed = length + chunk.length;
        if (needed > maxBytes) return finish('too_large');
        if (!makeRoom(needed)) return finish('no_room');
        buffer.set(chunk, length);
        length = needed;
        if (last) finish(buffer.subarray(0, length));
      },
      onCallerGone() {
        finish(null);
      },
      onCallerWritable() {},
    };
    stream.attach(events);
  });
}
