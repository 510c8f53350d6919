import { ApiFailure, dataOf } from '../../../api/client.ts';
import { api } from '../../../session.ts';
import { today } from '../../shared/days.ts';

export type MoneyAct = 'credit' | 'debit' | 'payout';

export const MONEY_ACTS: Readonly<
  Record<MoneyAct, { readonly title: string; readonly verb: string; readonly done: string; readonly lead: string }>
> = {
  credit: {
    title: 'Add money',
    verb: 'Add',
    done: 'was added',
    lead: 'Adds to the balance: somebody has paid you. Use the id of the payment as reference.',
  },
  debit: {
    title: 'Take out money',
    verb: 'Take out',
    done: 'was taken out',
    lead: 'Takes from the balance: a refund to the bank, or a correction. Open calls keep what they hold.',
  },
  payout: {
    title: 'Record a payout',
    verb: 'Record payout of',
    done: 'was recorded as paid out',
    lead: 'Tollgate moves no money outside. Record the payout first, and make the transfer once it is recorded: so nobody pays twice.',
  },
};

/**
 * The suggested reference. For a payout, it is the same for each account and day, so that somebody who repeats a payout at the same
 * time as a colleague is told so. A payout after those that the dialog shows has a number. For other acts it is new.
 *
 * @param earlier  the account's last acts of this kind
 */
export function newReference(
  act: MoneyAct | 'correction',
  accountId: string,
  earlier: readonly Pick<Earlier, 'reference'>[] = [],
): string {
  if (act === 'payout') {
    const first = `payout-${today()}-${accountId.slice(-12)}`;
    const made = earlier.filter(({ reference }) => reference === first || reference.startsWith(`${first}-`)).length;
    return made === 0 ? first : `${first}-${made + 1}`;
  }
  const random = crypto.getRandomValues(new Uint32Array(2));
  const [a = 0, b = 0] = random;
  return `${act}-${today()}-${a.toString(36)}${b.toString(36)}`;
}

export type Draft = { readonly reference: string; readonly amount: string; readonly reason: string };

/**
 * Payments whose outcome is not known yet, by account and act. Their dialog opens again with the same reference, so that sending it
 * once more makes no second payment. Kept only in the memory of this tab.
 */
const unknown = new Map<string, Draft>();

/** What a dialog is about. `preset`: its initial values, such as the price of a call that is given back. */
type Subject = {
  readonly act: MoneyAct;
  readonly accountId: string;
  readonly preset?: Partial<Draft> | undefined;
};

const nameOf = ({ act, accountId, preset }: Subject): string => `${act} ${accountId} ${preset?.reference ?? ''}`;

export const draftOf = (subject: Subject): { readonly draft: Draft; readonly isRetry: boolean } => {
  const { act, accountId, preset } = subject;
  const kept = unknown.get(nameOf(subject));
  const fresh = { reference: newReference(act, accountId), amount: '', reason: '', ...preset };
  return { draft: kept ?? fresh, isRetry: kept !== undefined };
};

/** Whether it is unknown if the request was carried out: there was no answer, or the answer says so. */
export const isUnknown = (failure: unknown): boolean =>
  !(failure instanceof ApiFailure) || failure.status === 0 || failure.status >= 500;

/** What this reference has moved. `isNew`: just now, and not earlier. */
export type Moved = { readonly isNew: boolean; readonly createdAt: string };

/** Sends the request. Throws as `dataOf` does */
export async function sendMoney(subject: Subject, draft: Draft): Promise<Moved> {
  const { act, accountId } = subject;
  const name = nameOf(subject);
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
): Promise<Moved> {
  let status = 0;
  const seen = <T extends { response: Response }>(answer: T): T => {
    status = answer.response.status;
    return answer;
  };
  const send = {
    credit: () => dataOf(api.value.POST('/api/v1/admin/credits', { body }).then(seen)),
    debit: () => dataOf(api.value.POST('/api/v1/admin/debits', { body: { ...body, reason } }).then(seen)),
    payout: () => dataOf(api.value.POST('/api/v1/admin/payouts', { body }).then(seen)),
  }[act];
  const { created_at: createdAt } = await send();
  return { isNew: status === 201, createdAt };
}

export type Earlier = { readonly amount: number; readonly reference: string; readonly created_at: string };

/** The account's last acts of this kind, newest first, so that somebody who pays twice by mistake notices. */
export async function lastOf(act: MoneyAct, accountId: string, signal: AbortSignal): Promise<readonly Earlier[]> {
  const asked = { params: { query: { account_id: accountId, limit: 5 } }, signal };
  if (act === 'credit') return (await dataOf(api.value.GET('/api/v1/admin/credits', asked))).credits;
  if (act === 'debit') return (await dataOf(api.value.GET('/api/v1/admin/debits', asked))).debits;
  return (await dataOf(api.value.GET('/api/v1/admin/payouts', asked))).payouts;
}

/** What a refusal means, and what to do. Null if its own message says enough. */
export function explain(act: MoneyAct, failure: unknown, usd: (amount: number) => string): string | null {
  if (isUnknown(failure)) {
    return 'It is not known whether it was carried out. Send it again with the same reference: it counts once.';
  }
  if (!(failure instanceof ApiFailure) || failure.status !== 409) return null;
  const { balance, payable } = failure.details;
  if (act === 'debit' && typeof balance === 'number') {
    return `Nothing was taken. The balance can spare ${usd(balance)} now. Change the amount, and send it again.`;
  }
  if (act === 'payout' && typeof payable === 'number') {
    return `Nothing was recorded. ${usd(payable)} is payable now. Was this payout recorded before?`;
  }
  if (act === 'payout') {
    return 'Nothing was recorded. If a payout of today has this reference, and this is another one, change the reference. Make no transfer before it is recorded.';
  }
  return 'If the reference belongs to another payment, this one has not been made. Look for the reference under Payments before you choose another.';
}
