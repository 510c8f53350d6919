import { ApiError } from '../../errors.js';
import { commonHeaderLines, renderError } from '../../gate/answer.js';
import { uuidv7 } from '../../platform/ids.js';
import { CallClock } from '../call-clock.js';
/** A call whose request head has arrived: what all later stages know of it, and how it is answered if it is not admitted. */
export class ArrivedCall {
    options;
    head;
    caller;
    usageId = uuidv7();
    clock;
    /** The rate limit after the call was admitted or refused; null before. Callers in this process read it. */
    rate = null;
    /** Whether the call was settled by a refund. Callers in this process read it; others learn it from the response. */
    isRefunded = false;
    constructor(options, head, caller) {
        this.options = options;
        this.clock = new CallClock(options.counters.timings);
        this.head = head;
        this.caller = caller;
    }
    /**
     * Answers a call that is not admitted, and takes a token from the caller's rate limit.
     *
     * @param key  of the caller; null if it has no valid one
     */
    refuse(key, error) {
        const who = key ?? this.caller.address;
        // No key, and the caller left before its address was read: there is nobody to answer, or to count the request against.
        if (who === null)
            return;
        this.options.gate.take(who, ({ rate, refusal }) => {
            if (refusal !== null)
                this.answer(refusal, rate);
            else
                this.fail(error, rate);
        });
    }
    /** Answers a call that is not admitted, and takes no token. An error that is not for callers becomes `internal`. */
    fail(error, rate) {
        if (error instanceof ApiError) {
            this.answer(error, rate);
            return;
        }
        this.options.log.error({ err: error, request_id: this.usageId }, 'call failed before admission');
        this.answer(new ApiError('internal'), rate);
    }
    answer(error, rate) {
        this.rate = rate;
        const { refused } = this.options.counters;
        refused.set(error.code, (refused.get(error.code) ?? 0) + 1);
        const { lines, body } = renderError(error, commonHeaderLines(rate, this.usageId));
        this.caller.respond(error.status, lines, body);
    }
}
//# sourceMappingURL=arrived-call.js.map