import { feeBackMicros } from '../../../../../src/accounts/refunds/fee-back.ts';
import type { Schemas } from '../../../api/client.ts';

// The parts of a refund. Computed in micro-USD, so that nothing is lost.

type Call = Pick<Schemas['Call'], 'amount' | 'refunded' | 'fee'>;

/** What is left of the call. */
export const leftOf = ({ amount, refunded = 0 }: Pick<Call, 'amount' | 'refunded'>): number =>
  fromMicros(micros(amount) - micros(refunded));

/** What the platform and the provider still have of the call. */
export function keptOf(call: Pick<Call, 'amount' | 'refunded'> & { readonly fee: number }): {
  readonly fee: number;
  readonly earned: number;
} {
  const [amount, back, fee] = [call.amount, call.refunded ?? 0, call.fee].map(micros) as [number, number, number];
  const feeLeft = fee - (back === 0 ? 0 : feeBackMicros(fee, back, amount));
  return { fee: fromMicros(feeLeft), earned: fromMicros(amount - back - feeLeft) };
}

/** Everybody who has this page open gets the same reference, so that two people cannot give the same call back twice. */
export const firstReference = ({ usage_id: id, refunds = [] }: Pick<Schemas['Call'], 'usage_id' | 'refunds'>): string =>
  `call ${id}${refunds.length === 0 ? '' : ` no. ${refunds.length + 1}`}`;

/**
 * The parts of a refund, as the gateway divides it: the fee comes back in proportion, and the provider pays the rest, as far as its
 * earnings suffice. @param payable earnings of the provider that are not paid out yet; null: not known
 *
 * @param payable  what the provider has earned and was not paid; null: not known
 */
export function sharesOf(
  { amount, refunded = 0, fee = 0 }: Call,
  given: number,
  payable: number | null,
): { readonly fee: number; readonly provider: number; readonly uncovered: number } {
  const [before, whole] = [micros(refunded), micros(amount)];
  const feeBack = (total: number): number => feeBackMicros(micros(fee), total, whole);
  const feePart = feeBack(before + micros(given)) - feeBack(before);
  const provider = micros(given) - feePart;
  const uncovered = payable === null ? 0 : Math.min(provider, Math.max(0, provider - micros(payable)));
  return { fee: fromMicros(feePart), provider: fromMicros(provider), uncovered: fromMicros(uncovered) };
}

const micros = (usd: number): number => Math.round(usd * 1_000_000);
const fromMicros = (amount: number): number => amount / 1_000_000;
