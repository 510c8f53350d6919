import { ApiFailure, dataOf } from '../../../api/client.ts';
import { api } from '../../../session.ts';
import { today } from '../../shared/days.ts';

export type MoneyAct = 'credit' | 'debit' | 'payout';

export const MONEY_ACTS: Readonly<
  Record<MoneyAct, { readonly title: string; readonly verb: string; readonly done: string; readonly lead: string }>
> = {
  credit: {
    title: 'Credit',
    verb: 'Credit',
    done: 'was credited',
    lead: 'Puts money into the wallet: somebody has paid you. Use the id of the payment as reference.',
  },
  debit: {
    title: 'Debit',
    verb: 'Debit',
    done: 'was debited',
    lead: 'Takes money out of the wallet: a refund to the bank, or a correction. Open calls keep what they hold.',
  },
  payout: {
    title: 'Record a payout',
    verb: 'Record payout of',
    done: 'was recorded as paid out',
    lead: 'Tollgate moves no money outside. Make the transfer first, then record it here.',
  },
};

const newReference = (act: MoneyAct): string => {
  const random = crypto.getRandomValues(new Uint32Array(2));
  const [a = 0, b = 0] = random;
  return `${act}-${today()}-${a.toString(36)}${b.toString(36)}`;
};

export type Draft = { readonly reference: string; readonly amount: string; readonly reason: string };

/**
 * Payments whose outcome is not known yet, by account and act: their dialog opens again with the same reference, so that sending it
 * once more is no second payment. In the memory of this tab only.
 */
const unknown = new Map<string, Draft>();

const nameOf = (act: MoneyAct, accountId: string): string => `${act} ${accountId}`;

export const draftOf = (act: MoneyAct, accountId: string): { readonly draft: Draft; readonly isRetry: boolean } => {
  const kept = unknown.get(nameOf(act, accountId));
  return { draft: kept ?? { reference: newReference(act), amount: '', reason: '' }, isRetry: kept !== undefined };
};

/** Whether nobody knows if the request was carried out: no answer came, or one that says so. */
const isUnknown = (failure: unknown): boolean =>
  !(failure instanceof ApiFailure) || failure.status === 0 || failure.status >= 500;

/** Sends it. @returns 'again' if this reference had moved its money before. Throws as `dataOf` does */
export async function sendMoney(act: MoneyAct, accountId: string, draft: Draft): Promise<'done' | 'again'> {
  const name = nameOf(act, accountId);
  const body = { account_id: accountId, amount: Number(draft.amount), reference: draft.reference };
  unknown.set(name, draft);
  try {
    const answer = await post(act, body, draft.reason);
    unknown.delete(name);
    return answer;
  } catch (failure) {
    if (!isUnknown(failure)) unknown.delete(name);
    throw failure;
  }
}

async function post(
  act: MoneyAct,
  body: { account_id: string; amount: number; reference: string },
  reason: string,
): Promise<'done' | 'again'> {
  let status = 0;
  const seen = <T extends { response: Response }>(answer: T): T => {
    status = answer.response.status;
    return answer;
  };
  if (act === 'credit') await dataOf(api.value.POST('/api/v1/admin/credits', { body }).then(seen));
  if (act === 'debit') await dataOf(api.value.POST('/api/v1/admin/debits', { body: { ...body, reason } }).then(seen));
  if (act === 'payout') await dataOf(api.value.POST('/api/v1/admin/payouts', { body }).then(seen));
  return status === 201 ? 'done' : 'again';
}

/** What a refusal means, and what to do. Null if its own message says enough. */
export function explain(act: MoneyAct, failure: unknown, usd: (amount: number) => string): string | null {
  if (isUnknown(failure)) {
    return 'Nobody knows yet whether it was carried out. Send it again with the same reference: it counts once.';
  }
  if (!(failure instanceof ApiFailure) || failure.status !== 409) return null;
  const { balance, payable } = failure.details;
  if (act === 'debit' && typeof balance === 'number') {
    return `Nothing was taken. The wallet can spare ${usd(balance)} now. Change the amount, and send it again.`;
  }
  if (act === 'payout' && typeof payable === 'number') {
    return `Nothing was recorded. ${usd(payable)} is payable now. Was this payout recorded before?`;
  }
  return 'If the reference belongs to another payment, this one has not been made. Look for the reference under Payments before you choose another.';
}
