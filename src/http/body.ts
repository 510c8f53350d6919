import type { CallerEvents, CallerStream } from '../gate/caller-io.ts';

/** What is kept at first for a body that does not arrive in one piece. It doubles as often as needed. */
const FIRST_BYTES = 4_096;

/** Counts the bytes that long bodies keep while they arrive. A slow caller sends an octet a minute, and keeps what it has sent. */
export class BodyBudget {
  /** Maximum bytes of one body that count for nothing. There are as many of them as connections. */
  readonly freeBytes: number;
  #left: number;

  constructor({ freeBytes, maxBytes }: { readonly freeBytes: number; readonly maxBytes: number }) {
    this.freeBytes = freeBytes;
    this.#left = maxBytes;
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

/**
 * Reads a whole request body. Its pieces are copied into one buffer: a caller may send chunks of a single octet, and an object for each
 * would take a hundred times their length.
 *
 * @returns the bytes, 'too_large' if there are more than `maxBytes`, or 'no_room' if the bodies of all requests take too much memory.
 *   Never resolves if the caller leaves, because nobody is left to answer.
 */
export function readBody(
  stream: CallerStream,
  maxBytes: number,
  budget: BodyBudget,
): Promise<Buffer | 'too_large' | 'no_room'> {
  return new Promise((resolve) => {
    let buffer = Buffer.alloc(0);
    let length = 0;
    let isOver = false;
    const finish = (result: Buffer | 'too_large' | 'no_room' | null): void => {
      if (isOver) return;
      isOver = true;
      budget.release(buffer.byteLength);
      buffer = Buffer.alloc(0);
      if (result !== null) resolve(result);
    };
    const makeRoom = (needed: number): boolean => {
      if (needed <= buffer.byteLength) return true;
      const size = Math.min(Math.max(needed, 2 * buffer.byteLength, FIRST_BYTES), maxBytes);
      if (!budget.grow(buffer.byteLength, size)) return false;
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
