/**
 * The caller of a call that begins inside this process. To the exchange it is a caller like any other: it sends a request body
 * that has arrived already, reads the response into memory, and may leave at any moment.
 *
 *   waiting ──► admitted (attach) ──► answering (begin) ──► ended
 *      │             │                    │  reached a bound: leaves, with what it has
 *      └─────────────┴────────────────────┴──► left: the tool's caller is gone
 *
 * Leaving settles the call as the failure table (docs/design.md) says of a caller who goes away.
 *
 * Tested by test/mcp/in-process-caller.test.ts, and test/integration/mcp-tools.test.ts.
 */
export class InProcessCaller {
    #outer;
    /** The request body that has not been delivered; null once it has. */
    #requestBody;
    #bounds;
    #onProgress;
    #events = null;
    #headers = new Map();
    #chunks = [];
    #timer = null;
    #hasEnded = false;
    #resolve = () => { };
    answer;
    aborted = false;
    /** Status of the service's response; 0 before it. */
    status = 0;
    /** Bytes of the response that have come. */
    bytes = 0;
    /** @param onProgress  invoked when somebody attaches, and when the service's response begins */
    constructor(outer, requestBody, bounds, onProgress) {
        this.#outer = outer;
        // An exchange without a request body awaits no piece of it.
        this.#requestBody = requestBody.length === 0 ? null : requestBody;
        this.#bounds = bounds;
        this.#onProgress = onProgress;
        this.answer = new Promise((resolve) => {
            this.#resolve = resolve;
        });
    }
    get address() {
        return this.#outer.address;
    }
    get wasCut() {
        return this.#outer.wasCut;
    }
    /** The rate limit that the call's answer states; null before the answer. */
    get rate() {
        const number = (name) => Number(this.#headers.get(name));
        if (!this.#headers.has('x-ratelimit-limit'))
            return null;
        return {
            limit: number('x-ratelimit-limit'),
            remaining: number('x-ratelimit-remaining'),
            resetSeconds: number('x-ratelimit-reset'),
        };
    }
    /** The tool's caller has gone away. The call ends as it would for a caller of the proxy. */
    leave() {
        if (this.#hasEnded)
            return;
        this.#end({ kind: 'left' });
        this.aborted = true;
        this.#events?.onCallerGone();
    }
    attach(events) {
        this.#events = events;
        if (this.aborted) {
            events.onCallerGone();
            return;
        }
        // The service failed before the exchange could begin to listen.
        if (this.#hasEnded)
            return;
        this.#onProgress();
        // As at the edge, who attaches later gets what has not been delivered yet.
        const body = this.#requestBody;
        this.#requestBody = null;
        if (body !== null)
            events.onCallerBody(body, true);
    }
    /** The whole body was delivered by attach(). */
    pauseBody() { }
    resumeBody() { }
    respond(_status, headerLines, body) {
        if (this.#hasEnded)
            return;
        this.#headers = parseHeaderLines(headerLines);
        const text = typeof body === 'string' ? body : Buffer.from(body).toString('utf8');
        this.#end({ kind: 'error', headers: this.#headers, body: text });
    }
    /** An interim response tells a tool nothing that it could use before the final one. */
    interim() { }
    begin(status, headerLines) {
        if (this.#hasEnded)
            return;
        this.status = status;
        this.#headers = parseHeaderLines(headerLines);
        const { maxMs, maxStreamMs } = this.#bounds;
        const isStream = this.#headers.get('content-type')?.toLowerCase().startsWith('text/event-stream') ?? false;
        this.#timer = setTimeout(() => this.#cut('time'), isStream ? maxStreamMs : maxMs);
        this.#onProgress();
    }
    write(chunk) {
        if (this.#hasEnded)
            return false;
        const room = this.#bounds.maxBytes - this.bytes;
        // A copy: the upstream client overwrites its buffer. Not slice(), because that of a Buffer does not copy.
        this.#chunks.push(new Uint8Array(chunk.subarray(0, room)));
        this.bytes += Math.min(room, chunk.length);
        if (chunk.length <= room)
            return true;
        this.#cut('size');
        return false;
    }
    end() {
        this.#respondWith(null);
    }
    abort() {
        if (!this.#hasEnded)
            this.#end({ kind: 'broken', status: this.status, headers: this.#headers });
    }
    #cut(by) {
        if (this.#hasEnded)
            return;
        this.#respondWith(by);
        this.aborted = true;
        // In a turn of its own: the exchange destroys the upstream call, which may be in the middle of handing over a piece.
        setImmediate(() => this.#events?.onCallerGone());
    }
    #respondWith(cutBy) {
        if (this.#hasEnded)
            return;
        this.#end({
            kind: 'response',
            status: this.status,
            headers: this.#headers,
            body: Buffer.concat(this.#chunks),
            cutBy,
        });
    }
    #end(answer) {
        this.#hasEnded = true;
        if (this.#timer !== null)
            clearTimeout(this.#timer);
        this.#resolve(answer);
    }
}
/**
 * Header lines, each with a CRLF in front → values by name. Of a repeated name the first value counts: the gateway's own lines
 * come before the service's.
 */
function parseHeaderLines(lines) {
    const headers = new Map();
    for (const line of lines.split('\r\n')) {
        const colon = line.indexOf(':');
        if (colon < 1)
            continue;
        const name = line.slice(0, colon).toLowerCase();
        if (!headers.has(name))
            headers.set(name, line.slice(colon + 1).trim());
    }
    return headers;
}
//# sourceMappingURL=in-process-caller.js.map