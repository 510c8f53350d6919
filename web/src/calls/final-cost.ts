// What a call priced by use finally cost. Tested by test/web/call-body.test.ts.

import type { CallState } from './send.ts';

/** US dollars. */
export type FinalCost = { readonly amount: number; readonly balance: number | null };

/** The event that ends the streams of callers who ask for it. */
const USAGE_EVENT = 'acf.usage';

/**
 * The cost from the head of the response, or from the last event of the stream, if one of them is final. Null if only the record of
 * the call can tell it.
 */
export function finalCostOf({ phase, response, body }: CallState): FinalCost | null {
  if (response === null || response.amount === null) return null;
  if (!response.isHeld) return { amount: Number(response.amount), balance: usdOf(response.balance) };
  const last = body?.events.at(-1);
  // The gateway ends no other streams with this event: in others it would come from the service itself.
  const isTold = phase === 'done' && !response.headers.some(([name]) => /^content-(length|encoding)$/.test(name));
  if (!isTold || last?.name !== USAGE_EVENT) return null;
  try {
    const said = JSON.parse(last.data) as { usage_id?: unknown; amount?: unknown; balance?: unknown };
    if (said.usage_id !== response.usageId) return null;
    return typeof said.amount === 'number' && typeof said.balance === 'number'
      ? { amount: said.amount, balance: said.balance }
      : null;
  } catch {
    return null;
  }
}

/** The unused part of the held amount comes back. @param amount what the call cost */
export function afterRecord({ response }: Pick<CallState, 'response'>, amount: number): FinalCost {
  const left = usdOf(response?.balance ?? null);
  const back = Number(response?.amount ?? amount) - amount;
  return { amount, balance: left === null ? null : Math.round((left + back) * 1e6) / 1e6 };
}

const usdOf = (text: string | null): number | null => (text === null ? null : Number(text));
