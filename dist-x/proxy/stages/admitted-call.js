import { assert } from '../../assert.js';
import { countLatency } from '../../ledger/rollups/latency-buckets.js';
import { encodeSettlement } from '../../ledger/usage-event.js';
import { callHeaderLines } from '../call-headers.js';
/** A call that Redis has admitted: it has a hold, which `settle` ends. */
export class AdmittedCall {
    buyer;
    isSettled = false;
    #call;
    #admitted;
    constructor(call, buyer, admitted) {
        this.buyer = buyer;
        this.#call = call;
        this.#admitted = admitted;
        call.rate = admitted.rate;
        const { counters } = call.options;
        counters.admitted++;
        counters.open++;
    }
    /** The gateway's own header lines of the response. */
    headerLines(refunded) {
        const { usageId, clock } = this.#call;
        return callHeaderLines(this.#admitted, usageId, refunded) + clock.headerLines();
    }
    /**
     * Ends the hold. To be called exactly once, whatever happens to the call.
     *
     * @param refund  null if the call is charged
     * @param status  what the record says that the caller got
     */
    settle(refund, status, requestBytes, responseBytes) {
        assert(!this.isSettled, 'an admitted call is settled exactly once');
        this.isSettled = true;
        const call = this.#call;
        call.isRefunded = refund !== null;
        const { admission, counters } = call.options;
        counters.open--;
        if (refund === null)
            counters.completed++;
        else
            counters.refunded.set(refund, (counters.refunded.get(refund) ?? 0) + 1);
        const latencyUs = call.clock.end();
        countLatency(counters.latencies, latencyUs);
        const settlement = encodeSettlement({
            outcome: refund === null ? 'completed' : `refunded:${refund}`,
            status,
            latencyUs,
            requestBytes,
            responseBytes,
        });
        admission.settle(call.usageId, this.buyer, refund !== null, settlement, this.#admitted.owner);
    }
}
//# sourceMappingURL=admitted-call.js.map