import { isInDoubt, type ShardHistory } from './judge.ts';

/** What bars a repair although Redis may have changed. */
type Obstacles = {
  /** `rejected_events` has an event of the account: Redis has taken money that Postgres has not. */
  readonly hasRejectedEvent: boolean;
  /** The wallet has a credit or a debit that Postgres does not know. */
  readonly isAheadOfPostgres: boolean;
};

/**
 * Whether the drift of an account is Redis's, and may be taken out of its wallet. Any other drift is a bug or tampering: it is
 * reported as unattributed, and an operator ends it. Holds of stored calls are removed in any case.
 *
 * @param history as it was when the account was compared
 */
export function mayRepair(history: ShardHistory, { hasRejectedEvent, isAheadOfPostgres }: Obstacles): boolean {
  return isInDoubt(history) && !hasRejectedEvent && !isAheadOfPostgres;
}
