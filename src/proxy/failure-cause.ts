import type { RefundReason } from '../ledger/usage-event.ts';
import type { UpstreamError } from '../upstream/index.ts';
import type { FailureCause } from './cause-texts.ts';

/** Null: the gateway had no connection to give, which is not the service's failure. */
export const causeOf = ({ code }: UpstreamError): FailureCause | null => (code === 'busy' ? null : code);

/** Why an answer is refunded. Null: its status says it. */
export function causeOfAnswer(refund: RefundReason, status: number): FailureCause | null {
  if (refund === 'upstream_denied') return status === 429 ? 'quota_used_up' : 'credentials_refused';
  if (refund === 'upstream_error') return status === 406 ? 'not_acceptable' : 'redirected';
  return null;
}
