import type { Buyer } from '../admission/buyer.ts';
import type { CallTerms } from '../admission/call-terms.ts';
import type { RateState } from '../admission/codes.ts';
import type { AdmissionListener, AdmitResult, Admitted } from '../admission/commands.ts';
import { assert } from '../assert.ts';
import type { Listing } from '../catalog/listing.ts';
import { ApiError, tooLargeError } from '../errors.ts';
import {
  commonHeaderLines,
  errorHeaderLines,
  renderError,
  suspendedError,
  unauthorizedError,
  unavailableError,
  unknownRate,
} from '../gate/answer.ts';
import type { CallerEvents, CallerStream, RequestHead } from '../gate/caller-io.ts';
import type { KeyRecord } from '../keys/caller.ts';
import { countLatency } from '../ledger/rollups/latency-buckets.ts';
import { encodeSettlement, type RefundReason } from '../ledger/usage-event.ts';
import { uuidv7 } from '../platform/ids.ts';
import type { ResponseHead, UpstreamCall, UpstreamError, UpstreamHandler } from '../upstream/index.ts';
import type { BufferingCall } from './buffered-bytes.ts';
import { CallClock } from './call-clock.ts';
import { callHeaderLines } from './call-headers.ts';
import { EventStream, isEventStream, type StreamingCall } from './event-stream.ts';
import type { ExchangeOptions } from './exchange-options.ts';
import { requestHeaderLines, responseHeaderLines } from './header-rules.ts';
import type { MessageListener, PricedMessage } from './mcp/messages.ts';
import type { Offer } from './offers.ts';
import { locationForCaller } from './redirects.ts';
import { checkMaxAmount, faultError, notOwnError, refusalOf, unreadableSecrets } from './refusals.ts';
import { parseTarget, type Target, upstreamPath } from './target.ts';
import { busyServiceError, isSilence, refundOf, silentServiceError, upstreamApiError } from './upstream-failure.ts';

/**
 * Maximum characters that a usage event records of a call's path after the service id; the rest is cut off. The query is never
 * recorded: it can carry secrets.
 */
const MAX_RECORDED_PATH = 512;

/**
 * The life of one call, from request head to settlement.
 *
 *   identify ──► admit ──► forward ──► respond ──► settled       (to an MCP server: identify ──► read the message ──► admit)
 *      │           │          │           │
 *      └───────────┴──► refused          caller left, service failed ──► settled (refunded or charged)
 *
 * An admitted call is settled exactly once, whatever happens; `#settle` asserts it. A call that is not admitted costs nothing.
 * Callbacks know the state of the call by `#admitted`, `#upstream` and `#isSettled`. No callback throws.
 *
 * Tested by test/proxy/exchange.test.ts and buffered-bytes.test.ts, and above all by test/integration/proxying.test.ts,
 * service-failures.test.ts and caller-gone.test.ts.
 */
export class Exchange
  implements AdmissionListener, UpstreamHandler, CallerEvents, BufferingCall, StreamingCall, MessageListener
{
  readonly #options: ExchangeOptions;
  #head: RequestHead;
  readonly #caller: CallerStream;
  readonly #usageId = uuidv7();
  readonly #clock: CallClock;
  #key: KeyRecord | null = null;
  #target: Target | null = null;
  #listing: Listing | null = null;
  /** The whole request body of a call to an MCP server, until it is forwarded; null for any other call, whose body is forwarded as it arrives. */
  #message: Buffer | null = null;
  #offer: Offer | null = null;
  #terms: CallTerms | null = null;
  #admitted: Admitted | null = null;
  #rateOfRefusal: RateState | null = null;
  #upstream: UpstreamCall | null = null;
  /**
   * The service's response head, kept back until its body begins or ends. If the service fails before that, the caller can
   * still get an error response. The head of an event stream is kept back only until the end of this event-loop turn.
   */
  #pendingHead: ResponseHead | null = null;
  /** Null unless the response is an event stream. */
  #events: EventStream | null = null;
  #responseStatus = 0;
  #requestBytes = 0;
  /** Bytes of the request body that the caller has sent and the service has not taken yet. */
  bufferedBytes = 0;
  #responseBytes = 0;
  #isSettled = false;
  /** Whether the call was settled by a refund. Callers in this process read it; others learn it from the response. */
  isRefunded = false;
  /** Whether this call is the breaker's probe, which finds out whether a silent service answers again. */
  #isProbe = false;
  #breakerEra = 0;

  constructor(options: ExchangeOptions, head: RequestHead, caller: CallerStream) {
    this.#options = options;
    this.#clock = new CallClock(options.counters.timings);
    this.#head = head;
    this.#caller = caller;
  }

  /** The rate limit after this call was admitted or refused; null before. */
  get rate(): RateState | null {
    return this.#admitted?.rate ?? this.#rateOfRefusal;
  }

  start(): void {
    const who = this.#options.gate.identify(this.#head.authorization, this.#caller);
    if (!(who instanceof Promise)) this.#identified(who);
    else
      who.then(
        (key) => this.#identified(key),
        (error: unknown) => this.#failed(error),
      );
  }

  #identified(key: KeyRecord | null): void {
    this.#key = key;
    // The caller left while its key was looked up, or the gateway is stopping and cut it off. If the call were admitted now,
    // this process might end before it could settle the call.
    if (key !== null && this.#caller.aborted) return;
    try {
      const { tools, operations, terms } = this.#find();
      if (tools !== null) {
        this.#options.messages.read(this.#head, this.#caller, key as KeyRecord, tools, this);
        return;
      }
      this.#check(operations === null ? terms : operations.termsOf(this.#head, (this.#target as Target).rest));
    } catch (error) {
      this.#refuse(error);
      return;
    }
    this.#admit('');
  }

  /** Finds what the caller may call. Throws the `ApiError` that the caller gets. */
  #find(): Offer {
    const head = this.#head;
    if (head.fault !== null) throw faultError(head.fault);
    if (this.#key === null) throw unauthorizedError();
    if (this.#key.accountStatus !== 'active') throw suspendedError();
    this.#target = parseTarget(head.path);
    const listing = this.#options.catalog.get(this.#target.serviceId);
    if (listing === undefined && !this.#options.catalog.ready()) throw unavailableError();
    if (listing === undefined) throw new ApiError('service_not_found');
    this.#listing = listing;
    if (!this.#isOwn) {
      if (listing.status !== 'active') throw new ApiError('service_not_found');
      if (this.#key.role === 'provider') throw notOwnError();
    }
    this.#offer = this.#options.offers.of(listing);
    return this.#offer;
  }

  /**
   * Providers call their own listings for nothing, to try them, even when these are paused. Comparing the two ids takes about 10 ns.
   */
  get #isOwn(): boolean {
    return (this.#key as KeyRecord).accountId === (this.#listing as Listing).providerId;
  }

  /** Checks everything else that can refuse the call without asking Redis. Throws the `ApiError` that the caller gets. */
  #check(terms: CallTerms): void {
    const head = this.#head;
    const { destination, breaker, headers, forOwner } = this.#offer as Offer;
    this.#terms = this.#isOwn ? forOwner : terms;
    checkMaxAmount(head.headers, this.#terms.priceMicros);
    if (head.bodyLength > this.#options.maxRequestBodyBytes) throw tooLargeError(this.#options.maxRequestBodyBytes);
    if (headers !== null && headers.unreadable.length > 0) throw unreadableSecrets();
    if (this.#options.backlogFull()) throw unavailableError();
    // Checked before admission: a call that is refused after its admission costs a hold, a refund and a record.
    if (destination.isFullFor((this.#key as KeyRecord).accountId)) throw busyServiceError();
    // The breaker comes last: a call that is refused for another reason must not be the probe.
    this.#breakerEra = breaker.era;
    if (!breaker.isClosed) {
      this.#isProbe = breaker.takeProbe();
      if (!this.#isProbe) throw silentServiceError(breaker.retryAfterSeconds);
    }
  }

  /** The message of a call to an MCP server has arrived. It decides what the call costs, so admission had to wait for it. */
  onMessage({ terms, mark, body }: PricedMessage): void {
    if (body !== null) {
      this.#message = body;
      this.#head = { ...this.#head, bodyLength: body.length };
    }
    this.#clock.beginAdmission();
    try {
      this.#check(terms);
    } catch (error) {
      this.#refuse(error);
      return;
    }
    this.#admit(mark);
  }

  onNoMessage(error: unknown, rate: RateState | null): void {
    if (rate === null) this.#refuse(error);
    else this.#failed(error, rate);
  }

  /** Answers a request that is not admitted. The request still takes a token from the caller's rate limit. */
  #refuse(error: unknown): void {
    const who = this.#key ?? this.#caller.address;
    // No key, and the caller left before its address was read: there is nobody to answer, or to count the request against.
    if (who === null) return;
    this.#options.gate.take(who, ({ rate, refusal }) => {
      if (refusal !== null) this.#answer(refusal, rate);
      else if (error instanceof ApiError) this.#answer(error, rate);
      else this.#failed(error, rate);
    });
  }

  /** The key could not be looked up, or something broke inside the gateway before admission. */
  #failed(error: unknown, rate: RateState = unknownRate(this.#options.gate.limitOf(this.#key))): void {
    if (error instanceof ApiError) {
      this.#answer(error, rate);
      return;
    }
    this.#options.log.error({ err: error, request_id: this.#usageId }, 'call failed before admission');
    this.#answer(new ApiError('internal'), rate);
  }

  #answer(error: ApiError, rate: RateState): void {
    this.#rateOfRefusal = rate;
    const { refused } = this.#options.counters;
    refused.set(error.code, (refused.get(error.code) ?? 0) + 1);
    const { lines, body } = renderError(error, commonHeaderLines(rate, this.#usageId));
    this.#caller.respond(error.status, lines, body);
  }

  /** @param mark  what the record has behind the path, printable ASCII. The path makes room for it: statistics go by it */
  #admit(mark: string): void {
    const { admission } = this.#options;
    const key = this.#key as KeyRecord;
    key.buyer ??= admission.buyer(key.keyId, key.accountId);
    admission.admit(
      {
        usageId: this.#usageId,
        buyer: key.buyer as Buyer,
        terms: this.#terms as CallTerms,
        method: this.#head.method,
        path: (this.#target as Target).rest.slice(0, MAX_RECORDED_PATH - mark.length) + mark,
      },
      this,
    );
  }

  onAdmission(result: AdmitResult): void {
    const key = this.#key as KeyRecord;
    this.#clock.endAdmission();
    this.#options.gate.heard(key, result);
    if (this.#isProbe && (result.outcome !== 'admitted' || this.#caller.aborted)) this.#offer?.breaker.returnProbe();
    if (result.outcome !== 'admitted') {
      const { error, rate } = refusalOf(result, key, this.#terms as CallTerms, this.#options);
      this.#answer(error, rate);
      return;
    }
    this.#admitted = result;
    this.#options.counters.admitted++;
    this.#options.counters.open++;
    if (this.#caller.aborted) this.#settle('caller_gone', 499);
    else this.#forward();
  }

  #forward(): void {
    const { upstream, pseudonyms } = this.#options;
    const listing = this.#listing as Listing;
    const { destination, basePath, idleBodyTimeoutMs, headers } = this.#offer as Offer;
    const head = this.#head;
    const { method } = head;
    const usageId = this.#usageId;
    const path = upstreamPath(basePath, (this.#target as Target).rest, head.query);
    const buyer = pseudonyms.of((this.#key as KeyRecord).buyer as Buyer, listing.providerId);
    this.#upstream = upstream.dispatch(
      {
        destination,
        account: (this.#key as KeyRecord).accountId,
        method,
        path,
        headerLines:
          headers === null
            ? requestHeaderLines(head, usageId, buyer)
            : headers.lines(head, { method, path, usageId, buyer }, Date.now()),
        bodyLength: head.bodyLength,
        headTimeoutMs: listing.timeoutSeconds * 1000,
        idleBodyTimeoutMs,
      },
      this,
    );
    this.#caller.attach(this);
    const message = this.#message;
    // An answer can take an hour; its message, up to a megabyte, must not stay that long.
    this.#message = null;
    if (message !== null) this.onCallerBody(message, true);
  }

  // Callbacks of the caller's connection.

  onCallerBody(chunk: Uint8Array, last: boolean): void {
    const upstream = this.#upstream as UpstreamCall;
    if (this.#isSettled) return;
    this.#requestBytes += chunk.length;
    if (this.#requestBytes > this.#options.maxRequestBodyBytes) {
      this.overflow();
      return;
    }
    const hasRoom = chunk.length === 0 || upstream.write(chunk);
    this.#countBuffered(hasRoom ? -this.bufferedBytes : chunk.length);
    if (!hasRoom) {
      this.#options.bufferedBytes.makeRoom();
      if (this.#isSettled) return;
    }
    // After the last piece there is nothing left to pause. A pause would need a resume later, which starts the 10 s idle
    // timeout of uWebSockets.js. That timeout would cut off the caller of a service that takes longer to answer.
    if (last) upstream.end();
    else if (!hasRoom) this.#caller.pauseBody();
  }

  /** The request body is larger than allowed, or all calls together buffer too much and this call buffers most. */
  overflow(): void {
    this.#refuseBody(tooLargeError(this.#options.maxRequestBodyBytes), 'payload_too_large');
  }

  /**
   * The caller of an event stream may take its time: it has an answer, and the stream itself keeps the service's connection.
   */
  onCallerTooSlow(): void {
    if (!this.#isSettled && this.#events === null) this.#refuseBody(new ApiError('body_too_slow'), 'body_too_slow');
  }

  /**
   * Gives up the request body. Before the service has answered, the call is refunded. After that it is charged, unless the answer
   * was a 5xx, as if the caller had left. Otherwise a caller could get any response for nothing: it would leave its request body
   * open, and break its bound shortly before the response ends.
   */
  #refuseBody(error: ApiError, reason: RefundReason): void {
    this.#upstream?.destroy();
    if (this.#responseStatus === 0) {
      this.#fail(error, reason);
      return;
    }
    this.#settle(this.#refundOfStatus(), this.#responseStatus);
    this.#caller.abort();
  }

  /**
   * The caller left. Once the service has the whole request, or has answered, it did the work and is paid, unless it answered
   * 5xx (failure table in docs/design.md).
   */
  onCallerGone(): void {
    if (this.#isSettled) return;
    const upstream = this.#upstream as UpstreamCall;
    const answered = this.#responseStatus !== 0;
    const served = answered || upstream.requestSent;
    upstream.destroy();
    // The time to drain was up, and the gateway cut the call off: refunded, as the sweep refunds calls of a killed gateway.
    const refund = this.#caller.wasCut ? 'unavailable' : served ? this.#refundOfStatus() : 'caller_gone';
    this.#settle(refund, answered ? this.#responseStatus : 499);
  }

  onCallerWritable(): void {
    this.#upstream?.resume();
  }

  // Callbacks of the upstream client.

  onInterim(head: ResponseHead): void {
    const lines = `\r\nX-Request-Id: ${this.#usageId}${responseHeaderLines(head.headers, this)}`;
    this.#caller.interim(head.status, lines, head.isAscii);
  }

  onHead(head: ResponseHead): void {
    this.#clock.endService();
    this.#pendingHead = head;
    this.#responseStatus = head.status;
    // From now on the call counts as answered: once its response begins, the caller's request body cannot be paused.
    if (this.bufferedBytes > 0) this.#options.bufferedBytes.changed(this, 0);
    (this.#offer as Offer).breaker.answered(this.#isProbe);
    if (isEventStream(head)) this.#events = new EventStream(this, this.#options.eventStreams);
  }

  onData(chunk: Buffer): void {
    this.#responseBytes += chunk.length;
    const bytes = this.#events === null ? chunk : this.#events.pass(chunk);
    if (bytes.length > 0) this.send(bytes);
  }

  onEnd(): void {
    if (this.#pendingHead !== null) this.#begin(this.#pendingHead);
    this.#settle(this.#refundOfStatus(), this.#responseStatus);
    this.#caller.end();
  }

  onError(error: UpstreamError): void {
    if (this.#responseStatus === 0) this.#clock.endService();
    this.#options.log.info(
      { err: error, code: error.code, request_id: this.#usageId, service_id: this.#listing?.id },
      'service failed',
    );
    if (this.#responseStatus === 0 && isSilence(error) && this.#offer?.breaker.failed(this.#breakerEra)) {
      this.#options.log.warn({ service_id: this.#listing?.id }, 'service does not answer: refusing calls to it');
    }
    this.#fail(
      upstreamApiError(error),
      this.#pendingHead === null && this.#responseStatus !== 0 ? 'upstream_cut' : refundOf(error),
    );
  }

  /** The service has taken the buffered request body, and takes more. */
  onWritable(): void {
    this.#countBuffered(-this.bufferedBytes);
    this.#caller.resumeBody();
  }

  /** Where a `Location` or `Content-Location` of the service leads the caller. */
  place(value: string): string | null {
    const { destination, basePath } = this.#offer as Offer;
    const { query, headers } = this.#head;
    const target = this.#target as Target;
    return locationForCaller(value, { origin: destination.origin, basePath, target, query, headers });
  }

  // What an event stream needs of its call.

  send(bytes: Uint8Array): void {
    if (this.#pendingHead !== null) this.#begin(this.#pendingHead);
    if (!this.#caller.write(bytes)) (this.#upstream as UpstreamCall).pause();
  }

  get isStalled(): boolean {
    return (this.#upstream as UpstreamCall).isPaused;
  }

  #begin(head: ResponseHead): void {
    this.#pendingHead = null;
    const lines = this.#ownLines(head.status >= 500) + responseHeaderLines(head.headers, this);
    this.#caller.begin(head.status, lines, head.isAscii, head.contentLength, head.hasBody);
  }

  /** Ends a failed call and refunds it. The caller gets an error response, or a visible cut if its response had begun. */
  #fail(error: ApiError, reason: RefundReason): void {
    const begun = this.#responseStatus !== 0 && this.#pendingHead === null;
    this.#settle(reason, begun ? this.#responseStatus : error.status);
    if (begun) {
      this.#caller.abort();
      return;
    }
    const lines = this.#ownLines(true) + errorHeaderLines(error);
    this.#caller.respond(error.status, lines, JSON.stringify(error.body()));
  }

  #ownLines(refunded: boolean): string {
    return callHeaderLines(this.#admitted as Admitted, this.#usageId, refunded) + this.#clock.headerLines();
  }

  #refundOfStatus(): RefundReason | null {
    return this.#responseStatus >= 500 ? 'upstream_5xx' : null;
  }

  #countBuffered(bytes: number): void {
    if (bytes === 0) return;
    const before = this.bufferedBytes;
    this.bufferedBytes += bytes;
    if (this.#responseStatus !== 0) this.#options.bufferedBytes.changed(this, before);
  }

  #settle(refund: RefundReason | null, status: number): void {
    assert(this.#admitted !== null && !this.#isSettled, 'an admitted call is settled exactly once');
    this.#isSettled = true;
    this.isRefunded = refund !== null;
    this.#events?.end();
    this.#countBuffered(-this.bufferedBytes);
    const { admission, counters } = this.#options;
    const { owner } = this.#admitted;
    counters.open--;
    if (refund === null) counters.completed++;
    else counters.refunded.set(refund, (counters.refunded.get(refund) ?? 0) + 1);
    const latencyUs = this.#clock.end();
    countLatency(counters.latencies, latencyUs);
    const settlement = encodeSettlement({
      outcome: refund === null ? 'completed' : `refunded:${refund}`,
      status,
      latencyUs,
      requestBytes: this.#requestBytes,
      responseBytes: this.#responseBytes,
    });
    admission.settle(this.#usageId, (this.#key as KeyRecord).buyer as Buyer, refund !== null, settlement, owner);
  }
}
