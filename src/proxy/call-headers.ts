import type { Admitted } from '../admission/commands.ts';
import { commonHeaderLines } from '../gate/answer.ts';
import { formatUsd } from '../platform/money.ts';
import type { Use } from './by-use/use.ts';

/**
 * The gateway's own header lines on the response to an admitted call, each preceded by CRLF.
 *
 * @param refunded whether the call is settled by a refund. The balance then includes its amount again
 * @param use for a call priced by use: until its service has reported, its amount is what is held
 */
export function callHeaderLines(admitted: Admitted, usageId: string, refunded: boolean, use: Use | null): string {
  return commonHeaderLines(admitted.rate, usageId) + costHeaderLines(admitted, usageId, refunded, use);
}

/** Only the lines about the call and its cost. */
export function costHeaderLines(admitted: Admitted, usageId: string, refunded: boolean, use: Use | null): string {
  const returned = refunded ? admitted.amountMicros : use === null ? 0 : returnedOf(use);
  const held = use?.isOpen && !refunded ? '\r\nX-ACF-Held: true' : '';
  const { freeTier, freeLeft } = admitted;
  const left = freeLeft === null ? '' : `\r\nX-ACF-Free-Left: ${freeLeft + (refunded && freeTier ? 1 : 0)}`;
  return (
    `\r\nX-ACF-Amount: ${formatUsd(admitted.amountMicros - returned)}${held}` +
    `\r\nX-ACF-Free-Tier: ${freeTier}${left}\r\nX-ACF-Usage-Id: ${usageId}` +
    `\r\nX-ACF-Balance: ${formatUsd(admitted.balanceMicros + returned)}`
  );
}

const returnedOf = (use: Use): number => (use.isOpen ? 0 : use.heldMicros - use.chargedMicros);
