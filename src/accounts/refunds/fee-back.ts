/**
 * How much of a call's fee the platform has given back once this much of its amount is given back: the same proportion, rounded
 * down. All in micro-USD. It counts all refunds of the call together, so that many small ones give back no more of the fee than a
 * single one.
 */
export function feeBackMicros(feeMicros: number, refundedMicros: number, amountMicros: number): number {
  // The product may be above 2^53.
  return Number((BigInt(feeMicros) * BigInt(refundedMicros)) / BigInt(amountMicros));
}
