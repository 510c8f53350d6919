import { ApiFailure, dataOf, type Schemas } from '../../../api/client.ts';
import { api } from '../../../session.ts';
import { firstReference, leftOf } from './shares.ts';

// The input for giving a call back, and how it is sent.

export type Draft = { readonly amount: string; readonly reason: string; readonly reference: string };
export type Given = { readonly isNew: boolean; readonly refund: Schemas['Refund'] };

/**
 * Refunds whose outcome is not known yet, by call. Their dialog opens again as it was sent, so that sending it once more gives
 * nothing back twice. Kept only in the memory of this tab.
 */
const unknown = new Map<string, Draft>();

export function draftOf(call: Schemas['Call']): { readonly draft: Draft; readonly isRetry: boolean } {
  const kept = unknown.get(call.usage_id);
  const fresh = { amount: String(leftOf(call)), reason: '', reference: firstReference(call) };
  return { draft: kept ?? fresh, isRetry: kept !== undefined };
}

/** Throws as `dataOf` does. */
export async function giveBack(usageId: string, { amount, reason, reference }: Draft): Promise<Given> {
  let status = 0;
  const body = { amount: Number(amount), reason, reference };
  unknown.set(usageId, { amount, reason, reference });
  try {
    const params = { path: { usage_id: usageId } };
    const asked = api.value.POST('/api/v1/usage/{usage_id}/refund', { params, body }).then((answer) => {
      status = answer.response.status;
      return answer;
    });
    const refund = await dataOf(asked);
    unknown.delete(usageId);
    return { isNew: status === 201, refund };
  } catch (failure) {
    if (!isUnknown(failure)) unknown.delete(usageId);
    throw failure;
  }
}

/** Whether it is unknown if the request was carried out: there was no answer, or the answer says so. */
export const isUnknown = (failure: unknown): boolean =>
  !(failure instanceof ApiFailure) || failure.status === 0 || failure.status >= 500;
