import { Buyer } from '../../admission/buyer.ts';
import type { CallTerms } from '../../admission/call-terms.ts';
import type { Claim } from '../../admission/claims.ts';
import type { AdmissionListener, AdmitRequest, AdmitResult, Rejected } from '../../admission/commands.ts';
import { tooLargeError, unavailableError } from '../../errors.ts';
import type { KeyRecord } from '../../keys/caller.ts';
import { BodyDigest, claimOf } from '../../replay/idempotency-key.ts';
import type { ReadMessage } from '../mcp/messages.ts';
import { freeCallsUsed, refusalOf, saidIn, unreadableSecrets } from '../refusals.ts';
import { RepeatedCall } from '../replay/repeated-call.ts';
import { busyServiceError, silentServiceError } from '../upstream-failure.ts';
import { AdmittedCall } from './admitted-call.ts';
import { type Decided, ForwardedCall } from './forwarded-call.ts';
import type { IdentifiedCall } from './identified-call.ts';

/**
 * Maximum characters of a call's path after the service id that a usage event records; the rest is cut off. The query is never
 * recorded, because it can carry secrets.
 */
const MAX_RECORDED_PATH = 512;

/**
 * A call with its price, which has passed every check that does not ask Redis. Admission takes it as the request, and tells it the
 * decision.
 */
export class CheckedCall implements AdmitRequest, AdmissionListener, Decided {
  readonly usageId: string;
  readonly buyer: Buyer;
  readonly terms: CallTerms;
  readonly method: string;
  readonly path: string;
  readonly tag: string | null;
  readonly claim: Claim | null;
  readonly bodyLength: number;
  readonly breakerEra: number;
  readonly isProbe: boolean;
  readonly authorizedMicros: number | null;
  readonly #identified: IdentifiedCall;
  readonly #message: ReadMessage | null;

  /**
   * @param mark what the record appends to the path. The path is cut to make room for it, because statistics depend on it
   * @param message  the whole request body, if it has been read; null if it is forwarded as it arrives
   * @throws ApiError, which the caller gets
   */
  constructor(identified: IdentifiedCall, terms: CallTerms, mark: string, message: ReadMessage | null) {
    const { call, key, target, offer, isOwn } = identified;
    const { head, options } = call;
    this.usageId = call.usageId;
    const said = saidIn(head.headers, isOwn ? 0 : terms.priceMicros, key.maxPriceMicros);
    const { ceilingMicros, isFreeOnly, tag, idempotencyKey } = said;
    const bounded = terms.upTo(ceilingMicros);
    const paid = isOwn ? offer.forOwner : bounded;
    this.terms = isFreeOnly ? freeTermsOf(paid) : paid;
    this.authorizedMicros = bounded.maxPriceMicros === null ? null : bounded.heldMicros;
    this.method = head.method;
    this.tag = tag;
    this.path = target.rest.slice(0, MAX_RECORDED_PATH - mark.length) + mark;
    this.claim = idempotencyKey === null ? null : claimOf(key.keyId, idempotencyKey, head);
    this.bodyLength = message === null ? head.bodyLength : message.body.length;
    this.#identified = identified;
    this.#message = message;
    if (this.bodyLength > options.maxRequestBodyBytes) throw tooLargeError(options.maxRequestBodyBytes);
    const { destination, breaker, headers } = offer;
    if (headers !== null && headers.unreadable.length > 0) throw unreadableSecrets();
    if (options.backlogFull()) throw unavailableError();
    // Checked before admission, because a call that is refused after its admission costs a hold, a refund and a record.
    if (destination.isFullFor(key.accountId)) throw busyServiceError();
    // The breaker comes last: a call that another check refuses must not be the probe.
    this.breakerEra = breaker.era;
    this.isProbe = !breaker.isClosed;
    if (this.isProbe && !breaker.takeProbe()) throw silentServiceError(breaker.retryAfterSeconds);
    this.buyer =
      key.buyer instanceof Buyer ? key.buyer : options.admission.buyer(key.keyId, key.accountId, key.ancestors);
    key.buyer = this.buyer;
  }

  onAdmission(result: AdmitResult): void {
    const { call, key, offer } = this.#identified;
    const { options, caller } = call;
    call.clock.endAdmission();
    options.gate.heard(key, result);
    if (this.isProbe && (result.outcome !== 'admitted' || caller.aborted)) offer.breaker.returnProbe();
    if (result.outcome === 'charged_before') {
      new RepeatedCall(call, this.claim as Claim, result.rate).start(key.accountId, this.#message?.digest ?? null);
      return;
    }
    if (result.outcome !== 'admitted') {
      this.#countRefusal(result, key);
      const { error, rate } = refusalOf(result, key, this.terms, options);
      call.answer(error, rate);
      return;
    }
    const digest = this.#message?.digest ?? (this.bodyLength === 0 ? BodyDigest.EMPTY : null);
    const admitted = new AdmittedCall(call, this.buyer, result, this.terms, this.claim, digest);
    // The later stages keep neither the message nor this object, which refers to it: an answer can take an hour, and a message can
    // be a megabyte.
    if (caller.aborted) admitted.settle('caller_gone', 499, 0, 0);
    else new ForwardedCall(this.#identified, admitted, this).start(this.#message?.body ?? null);
  }

  /** Counted for the owner: nothing else records a refused call. A call that had to be free does not lack money. */
  #countRefusal(result: Rejected, { keyId, accountId }: KeyRecord): void {
    if (this.terms.isFreeOnly) return;
    const { options } = this.#identified.call;
    if (result.outcome === 'budget_exceeded') options.budgetRefusals.count(result.budget);
    if (result.outcome !== 'insufficient_balance') return;
    const { serviceId, heldMicros: requiredMicros } = this.terms;
    options.balanceRefusals.count({ keyId, accountId, serviceId, requiredMicros });
  }
}

/** The terms of a call that must be free. */
function freeTermsOf(terms: CallTerms): CallTerms {
  if (terms.heldMicros === 0) return terms;
  if (!terms.hasFreeCalls) throw freeCallsUsed(terms);
  return terms.freeOnly();
}
