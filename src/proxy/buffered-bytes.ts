/** A call whose response has begun, with request body buffered that its service has not taken yet. */
export interface BufferingCall {
  readonly bufferedBytes: number;
  /** Ends the call as if the caller had overrun its own bound, and drops what is buffered. */
  overflow(): void;
}

/**
 * Bounds the request body that all calls together buffer for services that do not take it, once their response has begun: from
 * then on the caller's body cannot be paused (see http/caller-stream.ts), and a single call may send all it is allowed to. At the
 * bound, the call that buffers most ends, so that callers who fill the bound do not end a call that buffers little. Before its
 * response a call is paused instead, and buffers only what had been read already.
 */
export class BufferedBytes {
  readonly #max: number;
  readonly #calls = new Set<BufferingCall>();
  #total = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get full(): boolean {
    return this.#total > this.#max;
  }

  /** @param before  bytes that the call buffered until now */
  changed(call: BufferingCall, before: number): void {
    const { bufferedBytes } = call;
    this.#total += bufferedBytes - before;
    if (bufferedBytes === 0) this.#calls.delete(call);
    else if (before === 0) this.#calls.add(call);
  }

  /** Ends calls until the bound is kept. */
  makeRoom(): void {
    while (this.full) {
      const [first] = this.#calls;
      let largest = first as BufferingCall;
      for (const call of this.#calls) if (call.bufferedBytes > largest.bufferedBytes) largest = call;
      largest.overflow();
    }
  }
}
