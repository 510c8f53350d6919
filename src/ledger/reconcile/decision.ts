import { isInDoubt, type ShardHistory } from '../history/judge.ts';
import { mayRepair } from '../history/may-repair.ts';
import {
  type AccountState,
  type BudgetDrift,
  type Comparison,
  knowsItsDebits,
  type Numbers,
  type Wallet,
} from './identity.ts';

/** Maximum length of a reason; the rest is cut off. A damaged wallet may have any number of damaged fields. */
const MAX_REASON = 300;

/** What is taken out of the wallet, and why; or why nothing is taken out. */
export type Decision =
  | { readonly part: Comparison; readonly reason: string }
  | {
      readonly part: null;
      readonly notRepaired: string;
      /** What prevents the account from being judged. Once it is gone, the drift may be repaired, so the shard stays in doubt. */
      readonly isObstacle: boolean;
    };

/**
 * Decides about a drift (docs/decisions: 'The wallet follows Postgres'). Redis has caused it if Redis may have changed since the
 * last clean comparison; Postgres is then right. Any other drift is a fault of Postgres, of this program or of somebody who wrote
 * to Redis: it is only reported. Holds of stored calls are removed in any case, because the sweep would refund these calls.
 */
export function decide(
  comparison: Comparison,
  state: Pick<AccountState, 'wallet' | 'settled'>,
  history: ShardHistory,
  hasRejectedEvent: boolean,
): Decision {
  const obstacle = obstacleOf(comparison);
  if (comparison.damagedFields.length > 0) return { part: null, notRepaired: obstacle as string, isObstacle: true };
  const isAheadOfPostgres = isAhead(state);
  if (obstacle === null && mayRepair(history, { hasRejectedEvent, isAheadOfPostgres })) {
    return { part: comparison, reason: reasonOf(comparison) };
  }
  const holds = holdsOnly(comparison, state.wallet);
  if (holds !== null) return { part: holds, reason: reasonOf(holds) };
  return { part: null, notRepaired: obstacle ?? whyNot(history, isAheadOfPostgres), isObstacle: obstacle !== null };
}

/** Whether the wallet has a credit or a debit that Postgres does not know. */
export const isAhead = ({ wallet, settled }: { readonly wallet: Wallet; readonly settled: Numbers }): boolean =>
  wallet.creditSeq > settled.creditSeq || !knowsItsDebits(wallet, settled);

/** The damage or the unreadable data that prevent the account from being judged, as text for the report; null: none. */
export function obstacleOf({ damagedFields, isIncomplete }: Comparison): string | null {
  if (damagedFields.length > 0) return `damaged in Redis: ${damagedFields.join(', ')}`.slice(0, MAX_REASON);
  return isIncomplete ? 'its shard has holds or events that this version cannot read' : null;
}

function whyNot(history: ShardHistory, isAheadOfPostgres: boolean): string {
  if (isAheadOfPostgres) return 'the wallet has a credit or a debit that Postgres does not know';
  if (isInDoubt(history)) return 'rejected_events has an event of this account';
  return 'Redis has not changed since the account was last found right: a bug or a person changed its wallet or its books';
}

function reasonOf({ driftMicros, freeDrifts, budgetDrifts, storedHolds }: Comparison): string {
  const parts = [
    storedHolds.length > 0 ? `${storedHolds.length} holds belonged to calls that had ended` : '',
    driftMicros !== 0 ? 'the balance was not that of Postgres' : '',
    freeDrifts.length > 0 ? 'free calls used were not those of Postgres' : '',
    budgetDrifts.length > 0 ? 'what was spent of budgets was not that of Postgres' : '',
  ];
  return `Redis came back with other data than Postgres: ${parts.filter((part) => part !== '').join('; ')}`;
}

/** Only the holds of stored calls, and the difference between their amounts and the cost of the calls; null: there are none. */
function holdsOnly(comparison: Comparison, wallet: Wallet): Comparison | null {
  const { storedHolds, walletMicros } = comparison;
  if (storedHolds.length === 0) return null;
  const tooMuchHeld = storedHolds.reduce((sum, hold) => sum + hold.amountMicros - hold.stored.amountMicros, 0);
  const expectedMicros = walletMicros + tooMuchHeld;
  const budgetDrifts = heldOfBudgets(storedHolds, wallet);
  return { ...comparison, driftMicros: -tooMuchHeld, expectedMicros, freeDrifts: [], budgetDrifts };
}

/** What these holds have taken from budgets beyond the cost of their calls, in the periods that the wallet counts. */
function heldOfBudgets(holds: Comparison['storedHolds'], wallet: Wallet): readonly BudgetDrift[] {
  return Array.from(wallet.budgets, ([keyId, { period, spentMicros }]) => {
    const its = holds.filter(({ budgets }) => budgets.some((of) => of.keyId === keyId && of.period === period));
    const tooMuch = its.reduce((sum, hold) => sum + hold.amountMicros - hold.stored.amountMicros, 0);
    return { keyId, period, spentMicros, expectedPeriod: period, expectedMicros: spentMicros - tooMuch };
  }).filter((drift) => drift.expectedMicros !== drift.spentMicros);
}
