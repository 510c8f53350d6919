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

/**
 * Whether the account stays in doubt when its shard is verified. A wallet ahead of Postgres is not repaired, but lacks what its shard has
 * got, or has what its shard has lost: once the credit or debit was made again, that is still Redis's drift. Also if nothing is wrong
 * now, because what was lost may be as much as what is ahead.
 *
 * Not so a rejected event: what it makes wrong is no fault of Redis, whatever happens to it.
 */
export function staysInDoubt(
  history: ShardHistory,
  { isAheadOfPostgres }: Pick<Obstacles, 'isAheadOfPostgres'>,
): boolean {
  return isInDoubt(history) && isAheadOfPostgres;
}
