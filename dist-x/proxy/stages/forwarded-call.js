import { assert } from '../../assert.js';
import { ApiError, tooLargeError } from '../../errors.js';
import { errorHeaderLines } from '../../gate/answer.js';
import { requestHeaderLines, responseHeaderLines } from '../header-rules.js';
import { upstreamPath } from '../target.js';
import { isSilence, refundOf, upstreamApiError } from '../upstream-failure.js';
import { AnsweredCall } from './answered-call.js';
/**
 * A call that is sent to its service. It passes the request body on, and decides how the call ends, whoever ends it:
 *
 *   forwarded ──onHead──► answered ──onEnd──────────────────────────────► settled: charged, refunded if the service answered 5xx
 *       │                    ├──the caller left, or broke a bound───────► the same
 *       │                    └──onError, or the gateway stops───────────► refunded
 *       ├──the caller left, and the service has the whole request──────► charged
 *       └──the caller left before, or broke a bound; onError; a stop───► refunded
 *
 * The failure table in docs/design.md has the reasons. Once the call is settled, callbacks of the caller change nothing, and the
 * upstream client makes none.
 */
export class ForwardedCall {
    #call;
    #identified;
    #admitted;
    #isProbe;
    #breakerEra;
    #upstream;
    /** Null until the service has begun to answer. */
    #answered = null;
    #requestBytes = 0;
    /** Bytes of the request body that the caller has sent and the service has not taken yet. */
    bufferedBytes = 0;
    constructor(identified, admitted, { bodyLength, isProbe, breakerEra }) {
        const { call, key, target, listing, offer } = identified;
        this.#call = call;
        this.#identified = identified;
        this.#admitted = admitted;
        this.#isProbe = isProbe;
        this.#breakerEra = breakerEra;
        const { head, usageId, options } = call;
        const { method } = head;
        const { destination, basePath, idleBodyTimeoutMs, headers } = offer;
        const path = upstreamPath(basePath, target.rest, head.query);
        const buyer = options.pseudonyms.of(admitted.buyer, listing.providerId);
        this.#upstream = options.upstream.dispatch({
            destination,
            account: key.accountId,
            method,
            path,
            headerLines: headers === null
                ? requestHeaderLines(head, usageId, buyer)
                : headers.lines(head, { method, path, usageId, buyer }, Date.now()),
            bodyLength,
            headTimeoutMs: listing.timeoutSeconds * 1000,
            idleBodyTimeoutMs,
        }, this);
    }
    /** @param message  the whole request body, if it has been read */
    start(message) {
        this.#call.caller.attach(this);
        if (message !== null)
            this.onCallerBody(message, true);
    }
    // Callbacks of the caller's connection.
    onCallerBody(chunk, last) {
        if (this.#admitted.isSettled)
            return;
        const { options, caller } = this.#call;
        this.#requestBytes += chunk.length;
        if (this.#requestBytes > options.maxRequestBodyBytes) {
            this.overflow();
            return;
        }
        const hasRoom = chunk.length === 0 || this.#upstream.write(chunk);
        this.#countBuffered(hasRoom ? -this.bufferedBytes : chunk.length);
        if (!hasRoom) {
            options.bufferedBytes.makeRoom();
            if (this.#admitted.isSettled)
                return;
        }
        // After the last piece there is nothing left to pause. A pause would need a resume later, which starts the 10 s idle
        // timeout of uWebSockets.js. That timeout would cut off the caller of a service that takes longer to answer.
        if (last)
            this.#upstream.end();
        else if (!hasRoom)
            caller.pauseBody();
    }
    /** The request body is larger than allowed, or all calls together buffer too much and this call buffers most. */
    overflow() {
        this.#refuseBody(tooLargeError(this.#call.options.maxRequestBodyBytes), 'payload_too_large');
    }
    /**
     * The caller of an event stream may take its time: it has an answer, and the stream itself keeps the service's connection.
     */
    onCallerTooSlow() {
        if (this.#admitted.isSettled || this.#answered?.isEventStream)
            return;
        this.#refuseBody(new ApiError('body_too_slow'), 'body_too_slow');
    }
    /**
     * Gives up the request body. Before the service has answered, the call is refunded. After that it is charged, unless the answer
     * was a 5xx, as if the caller had left. Otherwise a caller could get any response for nothing: it would leave its request body
     * open, and break its bound shortly before the response ends.
     */
    #refuseBody(error, reason) {
        this.#upstream.destroy();
        const answered = this.#answered;
        if (answered === null) {
            this.#fail(error, reason);
            return;
        }
        this.#settle(answered.refund, answered.status);
        this.#call.caller.abort();
    }
    /**
     * The caller left. Once the service has the whole request, or has answered, it did the work and is paid, unless it answered
     * 5xx (failure table in docs/design.md).
     */
    onCallerGone() {
        if (this.#admitted.isSettled)
            return;
        const { requestSent } = this.#upstream;
        this.#upstream.destroy();
        const answered = this.#answered;
        const status = answered?.status ?? 499;
        // The time to drain was up, and the gateway cut the call off: refunded, as the sweep refunds calls of a killed gateway.
        if (this.#call.caller.wasCut)
            this.#settle('unavailable', status);
        else if (answered !== null)
            this.#settle(answered.refund, status);
        else
            this.#settle(requestSent ? null : 'caller_gone', status);
    }
    onCallerWritable() {
        this.#upstream.resume();
    }
    // Callbacks of the upstream client.
    onInterim(head) {
        const { usageId, caller } = this.#call;
        const lines = `\r\nX-Request-Id: ${usageId}${responseHeaderLines(head.headers, this.#identified)}`;
        caller.interim(head.status, lines, head.isAscii);
    }
    onHead(head) {
        assert(this.#answered === null && !this.#admitted.isSettled, 'a call is answered once, before it is settled');
        this.#call.clock.endService();
        this.#answered = new AnsweredCall(head, this.#identified, this.#admitted, this.#upstream);
        // From now on the call counts as answered: once its response begins, the caller's request body cannot be paused.
        if (this.bufferedBytes > 0)
            this.#call.options.bufferedBytes.changed(this, 0);
        this.#identified.offer.breaker.answered(this.#isProbe);
    }
    onData(chunk) {
        assert(this.#answered !== null);
        this.#answered.onData(chunk);
    }
    onEnd() {
        const answered = this.#answered;
        assert(answered !== null);
        answered.begin();
        this.#settle(answered.refund, answered.status);
        this.#call.caller.end();
    }
    onError(error) {
        const { clock, usageId, options } = this.#call;
        const { listing, offer } = this.#identified;
        const answered = this.#answered;
        if (answered === null)
            clock.endService();
        const fields = { err: error, code: error.code, request_id: usageId, service_id: listing.id };
        options.log.info(fields, 'service failed');
        if (answered === null && isSilence(error) && offer.breaker.failed(this.#breakerEra)) {
            options.log.warn({ service_id: listing.id }, 'service does not answer: refusing calls to it');
        }
        this.#fail(upstreamApiError(error), answered?.hasBegun ? 'upstream_cut' : refundOf(error));
    }
    /** The service has taken the buffered request body, and takes more. */
    onWritable() {
        this.#countBuffered(-this.bufferedBytes);
        this.#call.caller.resumeBody();
    }
    /** Ends a failed call and refunds it. The caller gets an error response, or a visible cut if its response had begun. */
    #fail(error, reason) {
        const { caller } = this.#call;
        const answered = this.#answered;
        if (answered?.hasBegun) {
            this.#settle(reason, answered.status);
            caller.abort();
            return;
        }
        this.#settle(reason, error.status);
        const lines = this.#admitted.headerLines(true) + errorHeaderLines(error);
        caller.respond(error.status, lines, JSON.stringify(error.body()));
    }
    #countBuffered(bytes) {
        if (bytes === 0)
            return;
        const before = this.bufferedBytes;
        this.bufferedBytes += bytes;
        if (this.#answered !== null)
            this.#call.options.bufferedBytes.changed(this, before);
    }
    #settle(refund, status) {
        this.#answered?.stop();
        this.#countBuffered(-this.bufferedBytes);
        this.#admitted.settle(refund, status, this.#requestBytes, this.#answered?.bytes ?? 0);
    }
}
//# sourceMappingURL=forwarded-call.js.map