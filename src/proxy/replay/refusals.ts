import type { ClaimRefusal } from '../../admission/codes.ts';
import { ApiError, unavailableError } from '../../errors.ts';
import { microsToUsd } from '../../platform/money.ts';
import type { ChargedCall } from '../../replay/answers.ts';

/**
 * A wait of this many seconds is suggested. Each claim ends a day after it was made; when enough of them end depends on the
 * account's other calls.
 */
const FULL_SECONDS = 60;

export const callInProgress = (): ApiError =>
  new ApiError('call_in_progress', undefined, { headers: { 'Retry-After': '1' } });

export const idempotencyMismatch = (): ApiError => new ApiError('idempotency_mismatch');

/** Names the first call, whose record has what the caller needs. */
export const answerNotKept = ({ usageId, amountMicros }: ChargedCall): ApiError =>
  new ApiError('answer_not_kept', undefined, {
    fields: { usage_id: usageId, amount: amountMicros === null ? null : microsToUsd(amountMicros) },
  });

export const badIdempotencyKey = (): ApiError =>
  new ApiError('invalid_request', 'Idempotency-Key must be sent once, and have 1 to 255 visible ASCII characters.');

/** The error for a call that is refused because of another call with its idempotency key. */
export function refusalOfClaim(outcome: Exclude<ClaimRefusal, 'charged_before'>): ApiError {
  switch (outcome) {
    case 'call_in_progress':
      return callInProgress();
    case 'idempotency_mismatch':
      return idempotencyMismatch();
    case 'claims_full':
      return unavailableError(
        undefined,
        'The account has 100000 idempotency keys of the last 24 hours. Calls without one are served.',
        FULL_SECONDS,
      );
  }
}
