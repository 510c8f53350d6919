/** A call whose response has begun, while the gateway buffers request body that the service has not taken yet. */
export interface BufferingCall {
  readonly bufferedBytes: number;
  /** Ends the call as if its request body had exceeded the bound on one body, and drops the buffered bytes. */
  overflow(): void;
}

/**
 * Bounds the request body that all calls together buffer for services that do not take it, counting calls whose response has
 * begun. From then on the gateway cannot pause the caller's body (see http/caller-stream.ts), so one call can buffer as much as a
 * request body may have. At the bound, the call that buffers most is ended: callers who fill the bound on purpose do not end a
 * call that buffers little. Before its response, a call is paused instead, and buffers only what had been read already.
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

  /** @param before  how many bytes the call had buffered before this change */
  changed(call: BufferingCall, before: number): void {
    const { bufferedBytes } = call;
    this.#total += bufferedBytes - before;
    if (bufferedBytes === 0) this.#calls.delete(call);
    else if (before === 0) this.#calls.add(call);
  }

  /** Ends the call that buffers most, again and again until the total is within the bound. */
  makeRoom(): void {
    while (this.full) {
      const [first] = this.#calls;
      let largest = first as BufferingCall;
      for (const call of this.#calls) if (call.bufferedBytes > largest.bufferedBytes) largest = call;
      largest.overflow();
    }
  }
}
