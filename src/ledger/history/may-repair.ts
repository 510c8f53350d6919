import { isInDoubt, type ShardHistory } from './judge.ts';

/** Conditions that forbid a repair although Redis may have changed. */
type Obstacles = {
  /** `rejected_events` has an event of the account: Redis has taken money that Postgres has not. */
  readonly hasRejectedEvent: boolean;
  /** The wallet has a credit or a debit that Postgres does not know. */
  readonly isAheadOfPostgres: boolean;
};

/**
 * Whether Redis has caused the drift of an account, so that it may be taken out of the wallet. Any other drift is a bug or
 * tampering: it is reported as unattributed, and an operator ends it. Holds of stored calls are removed in any case.
 *
 * @param history the history when the account was compared
 */
export function mayRepair(history: ShardHistory, { hasRejectedEvent, isAheadOfPostgres }: Obstacles): boolean {
  return isInDoubt(history) && !hasRejectedEvent && !isAheadOfPostgres;
}

/**
 * Whether the account stays in doubt when its shard is verified. A wallet ahead of Postgres is not repaired, but may lack changes
 * of its shard, or have changes that its shard has lost. Once the credit or debit has been made again, Redis is still the cause of
 * the remaining drift. This applies even if nothing is wrong now, because the loss may equal the amount that is ahead.
 *
 * A rejected event does not leave the account in doubt: Redis did not cause its drift, whatever happens to the event.
 */
export function staysInDoubt(
  history: ShardHistory,
  { isAheadOfPostgres }: Pick<Obstacles, 'isAheadOfPostgres'>,
): boolean {
  return isInDoubt(history) && isAheadOfPostgres;
}
