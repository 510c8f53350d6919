import type { Buyer } from '../../admission/buyer.ts';
import type { CallTerms } from '../../admission/call-terms.ts';
import type { Claim } from '../../admission/claims.ts';
import type { Admitted } from '../../admission/commands.ts';
import { assert } from '../../assert.ts';
import { countLatency } from '../../ledger/rollups/latency-buckets.ts';
import { encodeSettlement, type RefundReason } from '../../ledger/usage-event.ts';
import type { Cost } from '../by-use/cost-event.ts';
import { Use } from '../by-use/use.ts';
import { callHeaderLines, costHeaderLines } from '../call-headers.ts';
import type { FailureCause } from '../cause-texts.ts';
import { causeOfAnswer } from '../failure-cause.ts';
import { KeyedCall } from '../replay/keyed-call.ts';
import { type Asked, refundOfAnswer } from '../upstream-failure.ts';
import type { ArrivedCall } from './arrived-call.ts';

/** A call that Redis has admitted: it has a hold, which `settle` ends. */
export class AdmittedCall {
  readonly buyer: Buyer;
  isSettled = false;
  /** Null for a call at a fixed price. */
  readonly use: Use | null;
  /** Null for a call without an idempotency key. */
  readonly keyed: KeyedCall | null;
  /** Why the service failed the call, if it did: for its provider and operators. */
  cause: FailureCause | null = null;
  readonly #call: ArrivedCall;
  readonly #admitted: Admitted;

  constructor(
    call: ArrivedCall,
    buyer: Buyer,
    admitted: Admitted,
    terms: CallTerms,
    claim: Claim | null = null,
    bodyDigest: string | null = null,
  ) {
    this.buyer = buyer;
    this.use = admitted.authorizedMicros === null ? null : new Use(admitted, terms);
    this.#call = call;
    this.#admitted = admitted;
    call.rate = admitted.rate;
    call.authorizedMicros = admitted.authorizedMicros;
    const { counters, answers } = call.options;
    this.keyed = claim === null ? null : new KeyedCall(claim, answers, bodyDigest);
    counters.admitted++;
    counters.open++;
  }

  /** The most that the service may charge for a call priced by use; null at a fixed price. */
  get authorizedMicros(): number | null {
    return this.#admitted.authorizedMicros;
  }

  /** What the call costs, unless it is refunded. It is final once the response has been read to the end. */
  get cost(): Cost {
    const { amountMicros, balanceMicros, freeTier } = this.#admitted;
    const returned = this.use === null ? 0 : this.use.heldMicros - this.use.chargedMicros;
    const { usageId } = this.#call;
    return { usageId, amountMicros: amountMicros - returned, freeTier, balanceMicros: balanceMicros + returned };
  }

  /** Why the head of the answer alone makes the call be refunded; null if it does not. */
  refundOfAnswer(status: number, asked: Asked): RefundReason | null {
    const refund = refundOfAnswer(status, asked, this.keyed !== null);
    if (refund !== null) this.cause = causeOfAnswer(refund, status);
    return refund;
  }

  /** The gateway's own header lines for the response. */
  headerLines(refunded: boolean): string {
    const { usageId, clock } = this.#call;
    return callHeaderLines(this.#admitted, usageId, refunded, this.use) + clock.headerLines();
  }

  /** The response was read to its end, and is charged. Keeps it for a repeat of the call, if the call has an idempotency key. */
  keepAnswer(): void {
    if (this.keyed === null) return;
    const { usageId } = this.#call;
    this.keyed.keep(this.buyer.accountId, usageId, this.#finalCostLines());
  }

  /** Unlike those in the head of the response, these lines say what a call priced by use has cost. */
  #finalCostLines(): string {
    const { usageId } = this.#call;
    const { amountMicros, balanceMicros } = this.cost;
    return costHeaderLines({ ...this.#admitted, amountMicros, balanceMicros }, usageId, false, null);
  }

  /**
   * Ends the hold. Must be called exactly once, whatever happens to the call.
   *
   * @param refund  null if the call is charged
   * @param status the status that the caller got, for the record
   * @param capturedMicros what a call priced by use is charged, at most what is held. Null: the whole hold, as with a fixed price.
   *   If it is missing, the service's report decides
   */
  settle(
    refund: RefundReason | null,
    status: number,
    requestBytes: number,
    responseBytes: number,
    capturedMicros: number | null = this.use?.capturedMicros ?? null,
  ): void {
    assert(!this.isSettled, 'an admitted call is settled exactly once');
    this.isSettled = true;
    const call = this.#call;
    call.isRefunded = refund !== null;
    const heldMicros = this.#admitted.amountMicros;
    call.chargedMicros = refund === null ? Math.min(capturedMicros ?? heldMicros, heldMicros) : 0;
    const { admission, counters } = call.options;
    counters.open--;
    if (refund === null) counters.completed++;
    else counters.refunded.set(refund, (counters.refunded.get(refund) ?? 0) + 1);
    const latencyUs = call.clock.end();
    countLatency(counters.latencies, latencyUs);
    const settlement = encodeSettlement({
      outcome: refund === null ? 'completed' : `refunded:${refund}`,
      status,
      latencyUs,
      requestBytes,
      responseBytes,
      cause: refund === null ? null : this.cause,
    });
    const captured = refund === null ? capturedMicros : null;
    const { owner } = this.#admitted;
    if (this.keyed === null) {
      admission.settle(call.usageId, this.buyer, refund !== null, settlement, owner, captured);
    } else {
      const claim = this.keyed.end(call.chargedMicros);
      admission.settle(call.usageId, this.buyer, refund !== null, settlement, owner, captured, claim);
    }
  }
}
