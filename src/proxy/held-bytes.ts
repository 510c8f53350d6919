/**
 * Request body that services have not taken yet, over all calls. A body cannot be paused once its response has begun (see
 * http/caller-stream.ts), and a call may then hold all it may send: this bounds what all of them hold together.
 */
export class HeldBytes {
  readonly #max: number;
  #held = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get full(): boolean {
    return this.#held > this.#max;
  }

  /** @param bytes  negative when they are let go */
  add(bytes: number): void {
    this.#held += bytes;
  }
}
