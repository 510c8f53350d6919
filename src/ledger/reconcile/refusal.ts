import { isUuid } from '../../platform/ids.ts';
import { formatUsd, MAX_BALANCE_MICROS } from '../../platform/money.ts';
import { isInDoubt, type ShardHistory } from '../history/judge.ts';
import type { NewCorrection } from './corrections-sql.ts';
import { isAhead, obstacleOf } from './decision.ts';
import { type AccountState, agrees, type Comparison } from './identity.ts';

/** Maximum number of a counter of free calls that Postgres can store. */
const MAX_COUNT = 2 ** 31 - 1;

/** Why the drift of this account cannot be ended as the operator decided, in words for the operator; null: it can. */
export function refusalOf(
  { believe }: Pick<NewCorrection, 'believe'>,
  state: AccountState,
  comparison: Comparison,
  history: ShardHistory,
): string | null {
  if (agrees(comparison)) return 'This account has no drift.';
  const obstacle = obstacleOf(comparison);
  if (obstacle !== null) return `The drift cannot be determined: ${obstacle}.`;
  if (!Number.isSafeInteger(comparison.driftMicros)) return 'The drift is too large to be counted exactly.';
  return believe === 'redis' ? refusalOfBooks(state, comparison, history) : null;
}

/** The same for a correction that changes the books. */
function refusalOfBooks(
  state: AccountState,
  { driftMicros, freeDrifts, budgetDrifts, storedHolds }: Comparison,
  history: ShardHistory,
): string | null {
  // Checked first, because comparing does not end this doubt.
  if (isAhead(state)) {
    return 'believe: the wallet has credits or debits that Postgres does not know. Believe postgres, and then make them again.';
  }
  if (isInDoubt(history)) {
    return 'believe: Redis may have changed since it was last compared. Compare now, and decide about what is left.';
  }
  if (storedHolds.length > 0) {
    return 'believe: Redis has holds of calls that Postgres has stored. Believe postgres, or compare again first.';
  }
  if (Math.abs(state.settled.balanceMicros + driftMicros) > MAX_BALANCE_MICROS) {
    return `believe: the balance would be beyond ${formatUsd(MAX_BALANCE_MICROS)} USD. Believe postgres.`;
  }
  const lost = budgetDrifts.find(({ period, expectedPeriod }) => period !== expectedPeriod);
  if (lost !== undefined) {
    return `believe: Redis does not have the latest period of the budget of ${lost.keyId}. Believe postgres.`;
  }
  const cannotBeCounted = freeDrifts.find(({ serviceId, used, expected }) => {
    const count = (state.settled.freeUsed.get(serviceId) ?? 0) + used - expected;
    return !isUuid(serviceId) || Math.abs(count) > MAX_COUNT || Math.abs(used - expected) > MAX_COUNT;
  });
  if (cannotBeCounted === undefined) return null;
  return `believe: the free calls used of ${cannotBeCounted.serviceId} cannot be stored in Postgres. Believe postgres.`;
}
