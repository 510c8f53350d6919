import { assert } from '../assert.js';
import { RequestBody } from './request-body.js';
import { surface, UpstreamError } from './upstream-error.js';
/**
 * One request with its response, independent of the connection that carries it: if a reused connection turns out to be dead, the
 * call goes on to a new one.
 *
 *   waiting ──attached──► active ──complete / fail / destroy──► over
 *      ▲ ╲                  │                                    ▲
 *      │  ╲─────────fail / destroy───────────────────────────────┘
 *      └───detached─────────┘ (then complete, fail or destroy; or attached once more)
 *
 * Tested by test/upstream/client.test.ts, reuse.test.ts and pool.test.ts.
 */
export class Call {
    request;
    body;
    state = 'waiting';
    isPaused = false;
    headReceived = false;
    /** When the call joined its pool's queue. */
    waitingSinceTicks = 0;
    /** The connection that the pool is making for this call; null when there is none. */
    reserved = null;
    #pool;
    #handler;
    #connection = null;
    /** Whether a request without a body was given to a socket. For a request with a body, see `RequestBody.started`. */
    #started = false;
    #sent = false;
    constructor(request, handler, pool) {
        this.request = request;
        this.body = request.bodyLength === 0 ? null : new RequestBody(request.bodyLength);
        this.#pool = pool;
        this.#handler = handler;
    }
    get requestStarted() {
        return this.#started || (this.body?.started ?? false);
    }
    get requestSent() {
        return this.#connection === null ? this.#sent : this.#connection.isRequestSent;
    }
    write(chunk) {
        if (this.state === 'over')
            return true;
        assert(this.body !== null, 'a body for a request without one');
        return this.body.write(chunk);
    }
    end() {
        if (this.state === 'over')
            return;
        this.body?.end();
    }
    pause() {
        if (this.state === 'over' || this.isPaused)
            return;
        this.isPaused = true;
        this.#connection?.pause();
    }
    resume() {
        if (this.state === 'over' || !this.isPaused)
            return;
        this.isPaused = false;
        this.#connection?.resume();
    }
    destroy() {
        if (this.state === 'over')
            return;
        if (this.state === 'waiting') {
            this.state = 'over';
            this.#pool.cancel(this);
            return;
        }
        assert(this.#connection !== null);
        this.#connection.abandon();
        this.state = 'over';
    }
    // The methods below are for the pool and the connection.
    attached(connection) {
        assert(this.state === 'waiting');
        this.state = 'active';
        this.#connection = connection;
        this.reserved = null;
    }
    started() {
        this.#started = true;
    }
    /** The connection no longer carries the call. `complete`, `fail`, another `attached`, or the end of `destroy` follows. */
    detached(isRequestSent) {
        assert(this.state === 'active');
        this.state = 'waiting';
        this.#sent = isRequestSent;
        this.#connection = null;
        this.body?.detach();
    }
    /** The request will be sent again: what was sent on the dead connection no longer counts as sent. */
    unsent() {
        this.#sent = false;
    }
    deliverInterim(head) {
        try {
            this.#handler.onInterim?.(head);
        }
        catch (error) {
            this.#crashed(error);
        }
    }
    deliverHead(head) {
        assert(this.state === 'active' && !this.headReceived);
        this.headReceived = true;
        try {
            this.#handler.onHead(head);
        }
        catch (error) {
            this.#crashed(error);
        }
    }
    deliverData(chunk) {
        try {
            this.#handler.onData(chunk);
        }
        catch (error) {
            this.#crashed(error);
        }
    }
    deliverWritable() {
        try {
            this.#handler.onWritable();
        }
        catch (error) {
            this.#crashed(error);
        }
    }
    complete() {
        assert(this.state === 'waiting' && this.headReceived);
        this.state = 'over';
        try {
            this.#handler.onEnd();
        }
        catch (error) {
            surface(error);
        }
    }
    fail(failure) {
        assert(this.state === 'waiting');
        this.state = 'over';
        try {
            this.#handler.onError(new UpstreamError(failure, this.headReceived, this.requestStarted));
        }
        catch (error) {
            surface(error);
        }
    }
    #crashed(error) {
        surface(error);
        this.destroy();
    }
}
//# sourceMappingURL=call.js.map