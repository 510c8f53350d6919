import type { Schemas } from '../../api/client.ts';

/** What moved the money, for people. Of the sums of an hour the name of the service follows. */
const TEXTS: Readonly<Record<string, string>> = {
  credit: 'Money added',
  debit: 'Money taken out',
  correction: 'Correction',
  charge: 'Calls to',
  pending: 'Calls of this moment that are not in the books yet',
  earning: 'Calls of',
  fee: 'Fee of the marketplace for calls of',
  payout: 'Paid out to you',
};

export const kindText = ({ kind }: Pick<Schemas['Movement'], 'kind'>): string => TEXTS[kind] ?? kind;
