/**
 * How much of a call's fee the platform has given back when this much of its amount is given back: its share of that, rounded down. All
 * in micro-USD. Counted over all refunds of the call together, so many small ones give back no more of the fee than a single one.
 */
export function feeBackMicros(feeMicros: number, refundedMicros: number, amountMicros: number): number {
  // The product may be above 2^53.
  return Number((BigInt(feeMicros) * BigInt(refundedMicros)) / BigInt(amountMicros));
}
