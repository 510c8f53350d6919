import { useEffect, useState } from 'preact/hooks';
import { dataOf } from '../api/client.ts';
import { afterRecord, type FinalCost, finalCostOf } from '../calls/final-cost.ts';
import type { CallState } from '../calls/send.ts';
import { api } from '../session.ts';

/** Records come about a second after the end of a call. The gateway may go on reading an answer that its caller has left. */
const WAITS_MS = [1_000, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000];
/** Calls of this key that may have ended since. */
const LAST = 20;

/**
 * What the call cost; null until it is known.
 *
 * @returns `isOpen`: whether it may still become known here; otherwise only the record has it
 */
export function useFinalCost(state: CallState): { readonly cost: FinalCost | null; readonly isOpen: boolean } {
  const told = finalCostOf(state);
  const { phase, response } = state;
  const id = response?.usageId ?? null;
  const isOver = phase === 'done' || phase === 'cancelled' || phase === 'broken';
  const mustAsk = isOver && told === null && response?.isHeld === true;
  const [found, setFound] = useState<{ readonly id: string; readonly amount: number | null } | null>(null);
  useEffect(() => {
    if (!mustAsk || id === null) return;
    const left = new AbortController();
    void amountOf(id, left.signal).then((amount) => {
      if (!left.signal.aborted) setFound({ id, amount });
    });
    return () => left.abort();
  }, [mustAsk, id]);
  if (told !== null) return { cost: told, isOpen: false };
  if (found === null || found.id !== id) return { cost: null, isOpen: true };
  return { cost: found.amount === null ? null : afterRecord(state, found.amount), isOpen: false };
}

/** Null if the record did not appear in time, or cannot be read. */
async function amountOf(id: string, signal: AbortSignal): Promise<number | null> {
  for (const wait of WAITS_MS) {
    await new Promise((resolve) => setTimeout(resolve, wait));
    if (signal.aborted) return null;
    try {
      // The list is read instead of the record by its id: each 404 until the record exists would be an error in the browser's
      // console.
      const params = { query: { limit: LAST } };
      const { records } = await dataOf(api.value.GET('/api/v1/usage/me', { params, signal }));
      const record = records.find((its) => its.usage_id === id);
      if (record !== undefined) return record.amount;
    } catch {
      // The page then says where it will be: in the record, which it links to.
      return null;
    }
  }
  return null;
}
