/** A call that the service has begun to answer. Meanwhile the gateway buffers request body that the service has not taken yet. */
export interface BufferingCall {
  readonly bufferedBytes: number;
  /** Ends the call as if its request body exceeded the maximum size, and drops the buffered bytes. */
  overflow(): void;
}

/**
 * Bounds the request body that all answered calls together buffer for services that do not take it. Once a response has begun, the
 * gateway cannot pause the caller's request body (see http/caller-stream.ts), so one call can buffer a whole request body of the
 * maximum size. Beyond the bound, the call that buffers most is ended, so that a call that buffers little does not suffer from
 * callers who fill the buffers on purpose.
 *
 * A call that the service has not answered yet is not counted: the gateway pauses its request body, so it buffers only what was
 * read before the pause.
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

  /** Ends calls until the total is within the bound, each time the call that buffers most. */
  makeRoom(): void {
    while (this.full) {
      const [first] = this.#calls;
      let largest = first as BufferingCall;
      for (const call of this.#calls) if (call.bufferedBytes > largest.bufferedBytes) largest = call;
      largest.overflow();
    }
  }
}
