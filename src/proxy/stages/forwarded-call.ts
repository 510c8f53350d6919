import { assert } from '../../assert.ts';
import { ApiError, tooLargeError } from '../../errors.ts';
import { errorHeaderLines } from '../../gate/answer.ts';
import type { CallerEvents } from '../../gate/caller-io.ts';
import type { RefundReason } from '../../ledger/usage-event.ts';
import type { ResponseHead, UpstreamCall, UpstreamError, UpstreamHandler } from '../../upstream/index.ts';
import type { BufferingCall } from '../buffered-bytes.ts';
import { authorizedLine } from '../by-use/authorized.ts';
import { usageEvent, wantsUsageEvent } from '../by-use/cost-event.ts';
import { type Flow, PausedService } from '../by-use/paused-service.ts';
import { UnheardCall } from '../by-use/unheard-call.ts';
import { CAUSE_TEXTS } from '../cause-texts.ts';
import { isEventStream } from '../event-stream.ts';
import { causeOf } from '../failure-cause.ts';
import { requestHeaderLines } from '../header-rules.ts';
import { upstreamPath } from '../target.ts';
import { isSilence, refundOf, upstreamApiError } from '../upstream-failure.ts';
import type { AdmittedCall } from './admitted-call.ts';
import { AnsweredCall } from './answered-call.ts';
import type { ArrivedCall } from './arrived-call.ts';
import type { IdentifiedCall } from './identified-call.ts';

/** Decisions made before the admission and needed after it. */
export type Decided = {
  /** Length of the body of the request to the service. */
  readonly bodyLength: number;
  /** The most that the service may charge for a call priced by use, as far as it is known without Redis; null at a fixed price. */
  readonly authorizedMicros: number | null;
  /** Whether this call is the breaker's probe, which finds out whether a silent service answers again. */
  readonly isProbe: boolean;
  /** The breaker's era in which the call was let through. */
  readonly breakerEra: number;
};

/**
 * A call that is sent to its service. It passes the request body on, and decides how the call ends, on either side:
 *
 *   forwarded ──onHead──► answered ──onEnd──────────────────────────────► settled: charged, refunded if the answer is a failure
 *       │                    ├──the caller left, or broke a bound───────► the same, but if the call is priced by use, and its
 *       │                    │                                            service may still report, it becomes an UnheardCall, or
 *       │                    │                                            all is captured if the request had not arrived whole. With
 *       │                    │                                            an idempotency key it becomes one, too
 *       │                    └──onError, or the gateway stops───────────► refunded
 *       ├──the caller left, and the service has the whole request──────► charged, or an UnheardCall
 *       └──the caller left before, or broke a bound; onError; a stop───► refunded
 *
 * The failure table in docs/design.md has the reasons. Once the call is settled, callbacks of the caller change nothing, and the
 * upstream client makes none.
 */
export class ForwardedCall implements UpstreamHandler, CallerEvents, BufferingCall {
  readonly #call: ArrivedCall;
  readonly #identified: IdentifiedCall;
  readonly #admitted: AdmittedCall;
  readonly #isProbe: boolean;
  readonly #breakerEra: number;
  readonly #upstream: UpstreamCall;
  /** Pauses and resumes the response. */
  readonly #flow: Flow;
  /** Null until the service has begun to answer. */
  #answered: AnsweredCall | null = null;
  #requestBytes = 0;
  /** Bytes of the request body that the caller has sent and the service has not taken yet. */
  bufferedBytes = 0;
  /** The caller has left, and an `UnheardCall` will settle the call. */
  #isUnheard = false;

  constructor(identified: IdentifiedCall, admitted: AdmittedCall, decided: Decided) {
    const { call, key, target, listing, offer } = identified;
    const { bodyLength, isProbe, breakerEra } = decided;
    // The owner of a listing pays nothing, but its service is still told what it might charge.
    const authorizedMicros = admitted.authorizedMicros ?? decided.authorizedMicros;
    this.#call = call;
    this.#identified = identified;
    this.#admitted = admitted;
    this.#isProbe = isProbe;
    this.#breakerEra = breakerEra;
    const { head, usageId, options } = call;
    const { method } = head;
    const { destination, basePath, idleBodyTimeoutMs, headers, query } = offer;
    const path = upstreamPath(basePath, target.rest, query === null ? head.query : query.sent(head.query));
    const buyer = options.pseudonyms.of(admitted.buyer, listing.providerId);
    this.#upstream = options.upstream.dispatch(
      {
        destination,
        account: key.accountId,
        method,
        path,
        headerLines:
          (headers === null
            ? requestHeaderLines(head, usageId, buyer)
            : headers.lines(head, { method, path, usageId, buyer }, Date.now())) + authorizedLine(authorizedMicros),
        bodyLength,
        wantsTrailers: authorizedMicros !== null,
        headTimeoutMs: listing.timeoutSeconds * 1000,
        idleBodyTimeoutMs,
      },
      this,
    );
    this.#flow = admitted.use === null ? this.#upstream : new PausedService(this.#upstream);
  }

  get #isOver(): boolean {
    return this.#admitted.isSettled || this.#isUnheard;
  }

  /** @param message  the whole request body, if it has been read */
  start(message: Buffer | null): void {
    this.#call.caller.attach(this);
    if (message !== null) this.onCallerBody(message, true);
  }

  // Callbacks of the caller's connection.

  onCallerBody(chunk: Uint8Array, last: boolean): void {
    if (this.#isOver) return;
    const { options, caller } = this.#call;
    this.#requestBytes += chunk.length;
    this.#admitted.keyed?.onRequestBody(chunk, last);
    if (this.#requestBytes > options.maxRequestBodyBytes) {
      this.overflow();
      return;
    }
    const hasRoom = chunk.length === 0 || this.#upstream.write(chunk);
    this.#countBuffered(hasRoom ? -this.bufferedBytes : chunk.length);
    if (!hasRoom) {
      options.bufferedBytes.makeRoom();
      if (this.#isOver) return;
    }
    // After the last piece there is nothing left to pause. A pause would need a resume later, which starts the 10 s idle
    // timeout of uWebSockets.js. That timeout would cut off the caller of a service that takes longer to answer.
    if (last) this.#upstream.end();
    else if (!hasRoom) caller.pauseBody();
  }

  /** The request body is larger than allowed, or all calls together buffer too much and this call buffers most. */
  overflow(): void {
    this.#refuseBody(tooLargeError(this.#call.options.maxRequestBodyBytes), 'payload_too_large');
  }

  /**
   * The caller of an event stream may send its request slowly: it has an answer, and the stream itself keeps the service's
   * connection.
   */
  onCallerTooSlow(): void {
    if (this.#isOver || this.#answered?.isEventStream) return;
    this.#refuseBody(new ApiError('body_too_slow'), 'body_too_slow');
  }

  /**
   * Abandons the request body. If the service has not answered, the call is refunded. Otherwise it is charged, unless the answer is
   * a failure, as if the caller had left. Without this, a caller could get any response for free: it would leave its request body
   * open, and exceed its bound shortly before the response ends.
   */
  #refuseBody(error: ApiError, reason: RefundReason): void {
    const answered = this.#answered;
    if (answered === null) {
      this.#upstream.destroy();
      this.#fail(error, reason);
      return;
    }
    this.#leave(answered.refund, answered.status);
    this.#call.caller.abort();
  }

  /**
   * The caller left. Once the service has the whole request, or has answered, it did the work and is paid, unless its answer
   * is a failure (failure table in docs/design.md).
   */
  onCallerGone(): void {
    if (this.#isOver) return;
    const answered = this.#answered;
    const status = answered?.status ?? 499;
    // The time to drain has passed, and the gateway cut the call off: it is refunded, as the sweep refunds calls of a killed
    // gateway.
    if (this.#call.caller.wasCut) this.#leave('unavailable', status);
    else if (answered !== null) this.#leave(answered.refund, status);
    else this.#leave(this.#upstream.requestSent ? null : 'caller_gone', status);
  }

  onCallerWritable(): void {
    this.#flow.resume();
  }

  /**
   * Settles a call whose caller has left. A call that must be charged, and whose service has the whole request, is read on until
   * its service has reported what it cost, or as long as its answer may be kept for a repeat. A service that still waits for the
   * rest of the request might never end, and the buffered part would stay in memory.
   */
  #leave(refund: RefundReason | null, status: number): void {
    const { use, keyed } = this.#admitted;
    if (refund === null && (use?.awaitsReport || keyed?.isCapturing) && this.#upstream.requestSent) {
      this.#readOn(status);
      return;
    }
    this.#upstream.destroy();
    this.#settleUnreported(refund, status);
  }

  /** Nobody will read a report that is still to come: the whole hold is captured. */
  #settleUnreported(refund: RefundReason | null, status: number): void {
    this.#settle(refund, status, this.#admitted.use?.awaitsReport ? null : undefined);
  }

  #readOn(status: number): void {
    this.#isUnheard = true;
    const { key, listing, offer } = this.#identified;
    const { keyed } = this.#admitted;
    const bytesBefore = this.#answered?.bytes ?? 0;
    let isStream = this.#answered?.isEventStream ?? false;
    this.#answered?.stop();
    this.#countBuffered(-this.bufferedBytes);
    const left = {
      account: key.accountId,
      upstream: this.#upstream,
      use: this.#admitted.use,
      keyed,
      maxMs: listing.timeoutSeconds * 1000,
      isAnswered: this.#answered !== null,
      onAnswer: (head: ResponseHead) => {
        this.#call.clock.endService();
        isStream = isEventStream(head);
        if (this.#admitted.refundOfAnswer(head.status, this.#identified) === null)
          keyed?.onHead(head, this.#identified.responseLines(head.headers));
        offer.breaker.answered(this.#isProbe);
      },
      onComplete: () => {
        // A repeat gets what the caller would have got if it had stayed.
        if (keyed !== null && isStream && wantsUsageEvent(this.#call.head.headers))
          keyed.onAnswer(usageEvent(this.#admitted.cost, keyed.isBetweenEvents));
        this.#admitted.keepAnswer();
      },
      onFailure: (error: UpstreamError, isAnswered: boolean) => this.#noteFailure(error, isAnswered),
      refundOfAnswer: (status: number) => this.#admitted.refundOfAnswer(status, this.#identified),
      settle: (refund: RefundReason | null, capturedMicros: number | null, bytes: number) =>
        this.#admitted.settle(refund, status, this.#requestBytes, bytesBefore + bytes, capturedMicros),
    };
    new UnheardCall(left, this.#call.options.unheardCalls);
  }

  // Callbacks of the upstream client.

  onInterim(head: ResponseHead): void {
    const { usageId, caller } = this.#call;
    const lines = `\r\nX-Request-Id: ${usageId}${this.#identified.responseLines(head.headers)}`;
    caller.interim(head.status, lines, head.isAscii);
  }

  onHead(head: ResponseHead): void {
    assert(this.#answered === null && !this.#admitted.isSettled, 'a call is answered once, before it is settled');
    this.#call.clock.endService();
    this.#admitted.use?.readHead(head);
    this.#answered = new AnsweredCall(head, this.#identified, this.#admitted, this.#flow);
    if (this.#answered.refund === null)
      this.#admitted.keyed?.onHead(head, this.#identified.responseLines(head.headers));
    // From now on the call counts as answered: once its response begins, the caller's request body cannot be paused.
    if (this.bufferedBytes > 0) this.#call.options.bufferedBytes.changed(this, 0);
    this.#identified.offer.breaker.answered(this.#isProbe);
  }

  onData(chunk: Buffer): void {
    assert(this.#answered !== null);
    this.#answered.onData(chunk);
  }

  onEnd(trailers: readonly string[]): void {
    const answered = this.#answered;
    assert(answered !== null);
    this.#admitted.use?.read(trailers);
    answered.complete();
    if (answered.refund === null) this.#admitted.keepAnswer();
    this.#settle(answered.refund, answered.status);
    this.#call.caller.end();
  }

  onError(error: UpstreamError): void {
    const answered = this.#answered;
    this.#noteFailure(error, answered !== null);
    const flow = this.#flow;
    // Only a closed connection can be a reaction to a slow caller. Silence and malformed responses are the service's own fault.
    const isCut = error.code === 'reset' && flow instanceof PausedService && flow.wasLong;
    if (isCut && answered?.refund === null) this.#cutByCaller(answered);
    else this.#fail(this.#errorOf(error), answered?.hasBegun ? 'upstream_cut' : refundOf(error));
  }

  /** The owner of the service may read what is wrong with it. */
  #errorOf(failure: UpstreamError): ApiError {
    const error = upstreamApiError(failure);
    const cause = this.#identified.isOwn ? causeOf(failure) : null;
    if (cause === null) return error;
    return new ApiError(error.code, CAUSE_TEXTS[cause], { headers: error.headers, fields: { cause } });
  }

  #noteFailure(error: UpstreamError, isAnswered: boolean): void {
    this.#admitted.cause = causeOf(error);
    const { clock, usageId, options } = this.#call;
    const { listing, offer } = this.#identified;
    if (!isAnswered) clock.endService();
    const fields = { err: error, code: error.code, request_id: usageId, service_id: listing.id };
    options.log.info(fields, 'service failed');
    if (!isAnswered && isSilence(error) && offer.breaker.failed(this.#breakerEra)) {
      options.log.warn({ service_id: listing.id }, 'service does not answer: refusing calls to it');
    }
  }

  /**
   * The service has abandoned the response after its caller had delayed it for long: the call is charged as if the caller had left.
   */
  #cutByCaller(answered: AnsweredCall): void {
    this.#settleUnreported(null, answered.status);
    this.#call.caller.abort();
  }

  /** The service has taken the buffered request body, and is ready for more. */
  onWritable(): void {
    this.#countBuffered(-this.bufferedBytes);
    this.#call.caller.resumeBody();
  }

  /** Ends a failed call and refunds it. The caller gets an error response, or a visible cut if its response had begun. */
  #fail(error: ApiError, reason: RefundReason): void {
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

  #countBuffered(bytes: number): void {
    if (bytes === 0) return;
    const before = this.bufferedBytes;
    this.bufferedBytes += bytes;
    if (this.#answered !== null) this.#call.options.bufferedBytes.changed(this, before);
  }

  #settle(refund: RefundReason | null, status: number, capturedMicros?: number | null): void {
    this.#answered?.stop();
    this.#countBuffered(-this.bufferedBytes);
    this.#admitted.settle(refund, status, this.#requestBytes, this.#answered?.bytes ?? 0, capturedMicros);
  }
}
