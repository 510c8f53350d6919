import type { Schemas } from '../../api/client.ts';

/** What moved the money, for people. For sums of an hour, the name of the service follows. */
const TEXTS: Readonly<Record<string, string>> = {
  credit: 'Money added',
  debit: 'Money taken out',
  correction: 'Correction',
  refund: 'Given back: call',
  charge: 'Calls to',
  pending: 'Calls of this moment that are not stored yet',
  earning: 'Calls of',
  fee: 'Fee of the marketplace for calls of',
  payout: 'Paid out to you',
};

/** A fee with a call was given back with it. */
export const kindText = ({
  kind,
  usage_id,
  calls,
}: Pick<Schemas['Movement'], 'kind' | 'usage_id' | 'calls'>): string =>
  calls !== undefined && (kind === 'charge' || kind === 'earning')
    ? `${calls.toLocaleString('en')} ${calls === 1 ? 'call' : 'calls'} ${kind === 'charge' ? 'to' : 'of'}`
    : kind === 'fee' && usage_id !== undefined
      ? 'Fee given back: call'
      : (TEXTS[kind] ?? kind);
