import { addressOf } from './address.js';
import { CallerBody } from './caller-body.js';
import { afterRest } from './closing.js';
import { ResponseWriter } from './response-writer.js';
import { UploadPace } from './upload-pace.js';
import { renewTimeout } from './uws-response.js';
/**
 * The connection of one caller on uWebSockets.js ("the addon"), for one request: its body comes in (CallerBody), and the response goes
 * out (ResponseWriter). The stream watches that the caller does its part, and ends with the response: when all of it was sent, when
 * abort() cuts the connection, or when the caller leaves (`aborted`).
 *
 * Tested by test/http/caller-stream.test.ts, early-answers.test.ts, slow-callers.test.ts and slow-bodies.test.ts.
 */
export class UwsCallerStream {
    /** The index of this stream in the server's list of open streams. */
    place = 0;
    #response;
    #writer;
    #owner;
    #head;
    /** The request is chunked or has a fault: no other request is served on its connection. */
    #isLastRequest;
    #events = null;
    /** The body of the request, or null if it has none. */
    #body;
    /** Since the last tick, bytes have come from the caller. */
    #hasReceived = false;
    #idleTicks = 0;
    /** Null until the first tick that finds the body incomplete: most bodies need no look. */
    #pace = null;
    aborted = false;
    #address = null;
    /** @param secondHandle  see `ResponseWriter`, or null. The server has one only for chunked requests and during a drain */
    constructor(response, head, owner, secondHandle = null) {
        this.#response = response;
        this.#writer = new ResponseWriter(response, this, secondHandle);
        this.#head = head;
        this.#owner = owner;
        this.#isLastRequest = head.bodyLength < 0 || head.fault !== null;
        response.onAborted(() => this.#onAborted());
        this.#body = head.bodyLength === 0 ? null : new CallerBody(response, this);
    }
    /** The addon is asked only when somebody reads this, because asking takes 0.5 µs. A call with a known key never reads it. */
    get address() {
        // Nobody read the address before the response ended, and now the addon can no longer tell it.
        if (this.#address === null && this.#writer.isFinished)
            return null;
        this.#address ??= addressOf(this.#response, this.#head.headers, this.#owner.trustedProxyHops);
        return this.#address;
    }
    get wasCut() {
        return this.#owner.closing;
    }
    attach(events) {
        this.#events = events;
        if (this.aborted) {
            events.onCallerGone();
            return;
        }
        this.#body?.attach(events);
        this.resumeBody();
    }
    /**
     * Does nothing once the response has begun: the addon's pause() also stops the socket's writable event, and a resume() after a
     * failed write does not bring it back. The body then arrives unpaused; the maximum size of request bodies bounds it.
     */
    pauseBody() {
        if (!this.#writer.isFinished && !this.#writer.hasBegun)
            this.#body?.pause();
    }
    resumeBody() {
        if (!this.#writer.isFinished)
            this.#body?.resume();
    }
    respond(status, headerLines, body) {
        this.resumeBody();
        this.#writer.respond(status, headerLines, body, this.#head.method === 'HEAD');
    }
    /**
     * Does nothing while some of the request has not arrived: the socket of a paused request cannot say when it is writable.
     */
    interim(status, headerLines, isAscii) {
        if (!this.#awaitsBody())
            this.#writer.interim(status, headerLines, isAscii);
    }
    begin(status, headerLines, isAscii, contentLength, hasBody) {
        // pauseBody() says why the body must not stay paused from here on.
        this.resumeBody();
        this.#writer.begin(status, headerLines, isAscii, contentLength, hasBody);
    }
    write(chunk) {
        return this.#writer.write(chunk);
    }
    end() {
        this.#writer.end();
    }
    abort() {
        this.#writer.abort();
    }
    /** CallerBody calls this. After respond() or end(), nobody wants the rest of the request. */
    onBodyBytes() {
        this.#hasReceived = true;
        return !this.#writer.isFinished && !this.#writer.isEnding;
    }
    // What the response needs.
    mustClose() {
        return this.#isLastRequest || this.#owner.draining || this.#awaitsBody();
    }
    afterRest(then) {
        afterRest(this.#body, this.#owner.maxRequestBodyBytes, then);
    }
    onWritable() {
        this.#events?.onCallerWritable();
    }
    onFinished() {
        this.#owner.onFinished(this);
    }
    /**
     * The server calls this every few seconds. It restarts the addon's timeout, so that the gateway and not the addon decides when
     * a caller is idle. The addon would cut a caller that takes nothing for 10 s, that sends less than 16 KB/s, or that waits
     * because the service does not read its upload.
     *
     * @param maxIdleTicks  a caller that ought to send or take bytes, and has done neither for more ticks than this, is cut
     */
    tick(maxIdleTicks) {
        if (this.#writer.isFinished || !(this.#writer.isStalled || this.#awaitsBody()))
            return;
        if (this.#body !== null && this.#isTooSlow(this.#body))
            this.#events?.onCallerTooSlow?.();
        if (this.#writer.isFinished)
            return;
        if (this.#body?.isPaused) {
            // The caller waits for the service to read its upload. The timeouts of the upstream client bound this wait.
            renewTimeout(this.#response, true);
            return;
        }
        this.#idleTicks = this.#hasReceived || this.#writer.hasMoved ? 0 : this.#idleTicks + 1;
        this.#hasReceived = false;
        this.#writer.hasMoved = false;
        // close() makes the addon call onAborted, as if the caller had left.
        if (this.#idleTicks > maxIdleTicks)
            this.#response.close();
        else
            renewTimeout(this.#response, false);
    }
    #isTooSlow(body) {
        const { isDone, isPaused, wasPaused, bytes } = body;
        if (isDone || this.#writer.isEnding)
            return false;
        body.wasPaused = isPaused;
        this.#pace ??= new UploadPace();
        return this.#pace.tick(bytes, wasPaused);
    }
    /** Whether some of the request has not arrived yet. */
    #awaitsBody() {
        return this.#body !== null && !this.#body.isDone;
    }
    #onAborted() {
        if (this.#writer.isFinished)
            return;
        this.aborted = true;
        this.#writer.onCallerGone();
        this.#events?.onCallerGone();
        this.onFinished();
    }
}
//# sourceMappingURL=caller-stream.js.map