const LF = 0x0a;
const CR = 0x0d;
const COLON = 0x3a;
/**
 * Reads a `text/event-stream` (HTML Standard, section 9.2.5) as far as is needed to know whether the bytes so far end between two
 * events. Lines end with LF, CR or CRLF; an empty line ends an event.
 *
 * Tested by test/proxy/event-boundary.test.ts.
 */
export class EventBoundary {
    #place = 'between events';
    /** The last byte was a CR. If an LF follows, both are one line end. */
    #isAfterCr = false;
    /** A line has ended with a CR alone: this stream does not use CRLF. */
    #hasBareCr = false;
    /**
     * After the CR of a stream that may use CRLF this is false: an LF may follow. What is inserted before it would get an empty line
     * that nobody sent.
     */
    get isBetweenEvents() {
        return this.#place === 'between events' && (!this.#isAfterCr || this.#hasBareCr);
    }
    /** The next bytes of the stream, without a byte order mark. Most chunks are whole events, and cost two comparisons. */
    pass(bytes) {
        const { length } = bytes;
        if (length >= 2 && bytes[length - 1] === LF && bytes[length - 2] === LF) {
            this.#place = 'between events';
            this.#isAfterCr = false;
            return;
        }
        for (let at = 0; at < length; at++)
            this.#step(bytes[at]);
    }
    #step(byte) {
        const isAfterCr = this.#isAfterCr;
        this.#isAfterCr = byte === CR;
        if (isAfterCr && byte === LF)
            return;
        if (isAfterCr)
            this.#hasBareCr = true;
        if (byte === LF || byte === CR)
            this.#place = this.#place === 'in a line' ? 'after a line' : 'between events';
        else if (this.#place === 'after a line')
            this.#place = 'in a line';
        else if (this.#place === 'between events')
            this.#place = byte === COLON ? 'in a comment' : 'in a line';
    }
}
//# sourceMappingURL=event-boundary.js.map