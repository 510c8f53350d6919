import { commonHeaderLines } from '../gate/answer.js';
import { formatUsd } from '../platform/money.js';
/**
 * The header lines of ours on the response to an admitted call, each preceded by CRLF.
 *
 * @param refunded  whether the call is settled by a refund. The balance then has its amount again
 */
export function callHeaderLines(admitted, usageId, refunded) {
    const amount = refunded ? 0 : admitted.amountMicros;
    const balance = refunded ? admitted.balanceMicros + admitted.amountMicros : admitted.balanceMicros;
    return (`${commonHeaderLines(admitted.rate, usageId)}\r\nX-ACF-Amount: ${formatUsd(amount)}` +
        `\r\nX-ACF-Free-Tier: ${admitted.freeTier}\r\nX-ACF-Usage-Id: ${usageId}` +
        `\r\nX-ACF-Balance: ${formatUsd(balance)}`);
}
//# sourceMappingURL=call-headers.js.map