/**
 * Bounds the request body that all answered calls together buffer for services that do not take it. Once a response has begun,
 * the gateway cannot pause the caller's request body (see http/caller-stream.ts), so one call can buffer a whole request body
 * of the maximum size. Beyond the bound, the call that buffers most is ended, so that callers who fill the buffers on purpose
 * do not end a call that buffers little.
 *
 * A call that the service has not answered yet is not counted. The gateway pauses its request body, so it buffers only what had
 * been read before the pause.
 */
export class BufferedBytes {
    #max;
    #calls = new Set();
    #total = 0;
    constructor(max) {
        this.#max = max;
    }
    get full() {
        return this.#total > this.#max;
    }
    /** @param before  how many bytes the call had buffered before this change */
    changed(call, before) {
        const { bufferedBytes } = call;
        this.#total += bufferedBytes - before;
        if (bufferedBytes === 0)
            this.#calls.delete(call);
        else if (before === 0)
            this.#calls.add(call);
    }
    /** Ends calls until the total is within the bound: each time the call that buffers most. */
    makeRoom() {
        while (this.full) {
            const [first] = this.#calls;
            let largest = first;
            for (const call of this.#calls)
                if (call.bufferedBytes > largest.bufferedBytes)
                    largest = call;
            largest.overflow();
        }
    }
}
//# sourceMappingURL=buffered-bytes.js.map