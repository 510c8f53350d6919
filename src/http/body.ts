import { BodyBytes } from '../gate/body-bytes.ts';
import type { CallerEvents, CallerStream } from '../gate/caller-io.ts';

/**
 * Counts the memory of long bodies while they arrive, and until their requests are handled. The edge cuts callers that are idle for
 * a minute. A caller that sends an octet a minute would keep its share of the memory for days, so a body must also arrive within a
 * time limit.
 */
export class BodyBudget {
  /** Bodies up to this size are not counted. There are at most as many of them as connections. */
  readonly freeBytes: number;
  /** Maximum time in which a body must arrive, counted from when reading begins. */
  readonly maxMs: number;
  #left: number;

  constructor(options: { readonly freeBytes: number; readonly maxBytes: number; readonly maxMs: number }) {
    this.freeBytes = options.freeBytes;
    this.maxMs = options.maxMs;
    this.#left = options.maxBytes;
  }

  /** @returns false, and reserves nothing, if too few bytes are left */
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

type Body = Buffer | 'too_large' | 'too_slow' | 'no_room';

/**
 * Reads a whole request body.
 *
 * @returns the bytes, 'too_large' if there are more than `maxBytes`, 'too_slow' if it takes too much time, or 'no_room' if the
 *   bodies of all requests take too much memory. Never resolves if the caller leaves, because nobody is left to answer.
 */
export function readBody(stream: CallerStream, maxBytes: number, budget: BodyBudget): Promise<Body> {
  return new Promise((resolve) => {
    const bytes = new BodyBytes(maxBytes);
    let isOver = false;
    let deadline: NodeJS.Timeout | undefined;
    const finish = (result: Body | null): void => {
      if (isOver) return;
      isOver = true;
      clearTimeout(deadline);
      budget.release(bytes.capacity);
      bytes.clear();
      if (result !== null) resolve(result);
    };
    const events: CallerEvents = {
      onCallerBody(chunk, last) {
        if (isOver) return;
        if (bytes.length + chunk.length > maxBytes) return finish('too_large');
        const capacity = bytes.capacityWith(chunk.length);
        if (!budget.grow(bytes.capacity, capacity)) return finish('no_room');
        bytes.add(chunk);
        if (last) finish(bytes.all);
      },
      onCallerGone() {
        finish(null);
      },
      onCallerWritable() {},
    };
    stream.attach(events);
    // Most bodies arrive with their heads, and need no timer.
    if (!isOver) deadline = setTimeout(() => finish('too_slow'), budget.maxMs);
  });
}
