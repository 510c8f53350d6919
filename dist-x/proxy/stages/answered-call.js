import { EventStream, isEventStream } from '../event-stream.js';
import { responseHeaderLines } from '../header-rules.js';
/** A call whose service has begun to answer: the response on its way to the caller. */
export class AnsweredCall {
    status;
    /** Bytes of the body that the service has sent. */
    bytes = 0;
    #identified;
    #admitted;
    #upstream;
    /**
     * The service's response head, kept back until its body begins or ends. If the service fails before that, the caller can
     * still get an error response. The head of an event stream is kept back only until the end of this event-loop turn.
     */
    #pendingHead;
    /** Null unless the response is an event stream. */
    #events;
    constructor(head, identified, admitted, upstream) {
        this.status = head.status;
        this.#identified = identified;
        this.#admitted = admitted;
        this.#upstream = upstream;
        this.#pendingHead = head;
        this.#events = isEventStream(head) ? new EventStream(this, identified.call.options.eventStreams) : null;
    }
    get isEventStream() {
        return this.#events !== null;
    }
    /** Whether the caller has been given the response head. From then on it can get no other response. */
    get hasBegun() {
        return this.#pendingHead === null;
    }
    /** What the status alone decides: why the call is refunded, or null. */
    get refund() {
        return this.status >= 500 ? 'upstream_5xx' : null;
    }
    onData(chunk) {
        this.bytes += chunk.length;
        const bytes = this.#events === null ? chunk : this.#events.pass(chunk);
        if (bytes.length > 0)
            this.send(bytes);
    }
    send(bytes) {
        this.begin();
        if (!this.#identified.call.caller.write(bytes))
            this.#upstream.pause();
    }
    get isStalled() {
        return this.#upstream.isPaused;
    }
    /** Gives the caller the response head, unless it has it. */
    begin() {
        const head = this.#pendingHead;
        if (head === null)
            return;
        this.#pendingHead = null;
        const { call } = this.#identified;
        const lines = this.#admitted.headerLines(this.refund !== null) + responseHeaderLines(head.headers, this.#identified);
        call.caller.begin(head.status, lines, head.isAscii, head.contentLength, head.hasBody);
    }
    /** Ends the comments of an event stream, because the call is settled. */
    stop() {
        this.#events?.end();
    }
}
//# sourceMappingURL=answered-call.js.map