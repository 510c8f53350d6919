import { BodyBytes } from '../gate/body-bytes.js';
/**
 * Counts the bytes that long bodies keep while they arrive, and then until their requests are handled. The edge cuts callers that are idle for a minute; one that sends an octet a
 * minute would keep its share of the memory for days, so a body also has a time.
 */
export class BodyBudget {
    /** Maximum bytes of one body that count for nothing. There are as many of them as connections. */
    freeBytes;
    /** Maximum time in which a body must arrive, counted from when reading begins. */
    maxMs;
    #left;
    constructor(options) {
        this.freeBytes = options.freeBytes;
        this.maxMs = options.maxMs;
        this.#left = options.maxBytes;
    }
    /** @returns false, and changes nothing, if the bytes are not left */
    grow(from, to) {
        const more = this.#counted(to) - this.#counted(from);
        if (more > this.#left)
            return false;
        this.#left -= more;
        return true;
    }
    release(bytes) {
        this.#left += this.#counted(bytes);
    }
    #counted(bytes) {
        return bytes > this.freeBytes ? bytes : 0;
    }
}
/**
 * Reads a whole request body.
 *
 * @returns the bytes, 'too_large' if there are more than `maxBytes`, 'too_slow' if it takes too much time, or 'no_room' if the
 *   bodies of all requests take too much memory. Never resolves if the caller leaves, because nobody is left to answer.
 */
export function readBody(stream, maxBytes, budget) {
    return new Promise((resolve) => {
        const bytes = new BodyBytes(maxBytes);
        let isOver = false;
        let deadline;
        const finish = (result) => {
            if (isOver)
                return;
            isOver = true;
            clearTimeout(deadline);
            budget.release(bytes.capacity);
            bytes.clear();
            if (result !== null)
                resolve(result);
        };
        const events = {
            onCallerBody(chunk, last) {
                if (isOver)
                    return;
                if (bytes.length + chunk.length > maxBytes)
                    return finish('too_large');
                const capacity = bytes.capacityWith(chunk.length);
                if (!budget.grow(bytes.capacity, capacity))
                    return finish('no_room');
                bytes.add(chunk);
                if (last)
                    finish(bytes.all);
            },
            onCallerGone() {
                finish(null);
            },
            onCallerWritable() { },
        };
        stream.attach(events);
        // Most bodies have come with their heads, and need no timer.
        if (!isOver)
            deadline = setTimeout(() => finish('too_slow'), budget.maxMs);
    });
}
//# sourceMappingURL=body.js.map