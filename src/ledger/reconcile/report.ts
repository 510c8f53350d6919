import type { BudgetDrift, Comparison, FreeDrift } from './identity.ts';

/** Maximum number of accounts listed in a report; further accounts are only counted. */
const MAX_LISTED = 100;
/**
 * Maximum number of accounts for which the start of the drift is remembered. For others each report gives its own time as the
 * start.
 */
const MAX_REMEMBERED = 10_000;

/** An account that does not agree. Amounts in micro-USD. */
export type Drift = {
  readonly accountId: string;
  readonly walletMicros: number;
  readonly settledMicros: number;
  readonly streamedMicros: number;
  readonly heldMicros: number;
  readonly expectedMicros: number;
  /** 0 if the balance, the number of the last credit or debit, or the sum of debits is damaged: the drift is then unknown. */
  readonly driftMicros: number;
  readonly damagedFields: readonly string[];
  readonly freeDrifts: readonly FreeDrift[];
  readonly budgetDrifts: readonly BudgetDrift[];
  /** Number of holds of calls that Postgres has stored. */
  readonly storedHolds: number;
  /** When a comparison first found the drift. */
  readonly sinceMs: number;
  readonly notRepaired: string;
};

/**
 * What one comparison of one shard found. Stored as JSON. Tested by test/ledger/reconcile/reconciler.test.ts and restart.test.ts.
 */
export type ShardReport = {
  readonly shard: number;
  /** By Redis's clock, like the times of drifts; if Redis was away, by that of the process. */
  readonly checkedAtMs: number;
  /**
   * False when the stream was too long to compare (the writer is behind), the shard's own keys are damaged, or a store was away. All
   * other fields then come from the last comparison.
   */
  readonly compared: boolean;
  /** Only of a shard that was not compared. */
  readonly whyNot?: string;
  /** Number of loaded wallets; others cannot drift. The sums leave out wallets with a damaged balance or credit number. */
  readonly wallets: number;
  readonly walletMicros: number;
  readonly settledMicros: number;
  readonly streamedMicros: number;
  readonly heldMicros: number;
  readonly driftMicros: number;
  /** The sum of the drifts without their signs, so that a surplus in one wallet does not cancel what another lacks. */
  readonly absoluteDriftMicros: number;
  readonly driftingAccounts: number;
  /** Accounts with damaged wallets first, then the largest drifts; at most `MAX_LISTED`. */
  readonly drifts: readonly Drift[];
  /** The `sinceMs` of each drifting account; at most `MAX_REMEMBERED`. */
  readonly driftingSince: Readonly<Record<string, number>>;
};

/** Whether the drift is unknown. A damaged field counts as 0: the wallet would seem to lack its balance, all credits or all debits. */
const isUnknown = ({ damagedFields }: Comparison): boolean =>
  ['balance', 'credit_seq', 'debit_seq', 'debited'].some((field) => damagedFields.includes(field));

/** Adds up the comparisons of a shard. */
export class ReportSums {
  wallets = 0;
  walletMicros = 0;
  settledMicros = 0;
  streamedMicros = 0;
  heldMicros = 0;

  add(comparison: Comparison): void {
    this.wallets++;
    if (isUnknown(comparison)) return;
    this.walletMicros += comparison.walletMicros;
    this.settledMicros += comparison.settledMicros;
    this.streamedMicros += comparison.streamedMicros;
    this.heldMicros += comparison.heldMicros;
  }
}

export function newReport(
  about: Pick<ShardReport, 'shard' | 'checkedAtMs'>,
  sums: ReportSums,
  drifts: readonly Drift[],
): ShardReport {
  const isDamaged = ({ damagedFields }: Drift): number => (damagedFields.length > 0 ? 1 : 0);
  const sorted = drifts.toSorted(
    (a, b) => isDamaged(b) - isDamaged(a) || Math.abs(b.driftMicros) - Math.abs(a.driftMicros),
  );
  return {
    ...about,
    compared: true,
    ...sums,
    driftMicros: drifts.reduce((sum, drift) => sum + drift.driftMicros, 0),
    absoluteDriftMicros: drifts.reduce((sum, drift) => sum + Math.abs(drift.driftMicros), 0),
    driftingAccounts: drifts.length,
    drifts: sorted.slice(0, MAX_LISTED),
    driftingSince: Object.fromEntries(sorted.slice(0, MAX_REMEMBERED).map((drift) => [drift.accountId, drift.sinceMs])),
  };
}

/** The report of a shard that could not be compared this time: the findings of the last comparison stay. */
export function notCompared(
  { shard, checkedAtMs, why }: Pick<ShardReport, 'shard' | 'checkedAtMs'> & { readonly why: unknown },
  before: ShardReport | undefined,
): ShardReport {
  const known = before ?? newReport({ shard, checkedAtMs }, new ReportSums(), []);
  return { ...known, checkedAtMs, compared: false, whyNot: why instanceof Error ? why.message : String(why) };
}

export function newDrift(comparison: Comparison, sinceMs: number, notRepaired: string): Drift {
  const { storedHolds, isIncomplete: _, lostDebitsMicros: __, ...rest } = comparison;
  const driftMicros = isUnknown(comparison) ? 0 : comparison.driftMicros;
  return { ...rest, driftMicros, storedHolds: storedHolds.length, sinceMs, notRepaired };
}
