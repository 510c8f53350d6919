import type { Comparison, FreeDrift } from './identity.ts';

/** Accounts listed one by one; beyond it they are only counted. */
export const MAX_LISTED = 100;
/** Accounts of which it is kept since when they drift. Those beyond look as if they had begun to with the next report. */
const MAX_REMEMBERED = 10_000;

/** An account that does not agree. Amounts in micro-USD. */
export type Drift = {
  readonly accountId: string;
  readonly walletMicros: number;
  readonly settledMicros: number;
  readonly streamedMicros: number;
  readonly heldMicros: number;
  readonly expectedMicros: number;
  /** 0 where the wallet's numbers are damaged: nobody knows it. */
  readonly driftMicros: number;
  readonly damagedFields: readonly string[];
  readonly freeDrifts: readonly FreeDrift[];
  /** Holds of calls that are in Postgres. */
  readonly storedHolds: number;
  /** When a comparison first found it. */
  readonly sinceMs: number;
  /** Why it was not repaired. */
  readonly unproven: string;
};

/** What one comparison of one shard found. It is kept as JSON. */
export type ShardReport = {
  readonly shard: number;
  /** By Redis's clock, as the times of drifts are. */
  readonly checkedAtMs: number;
  /** False when the stream was too long to be compared (the writer is behind), or the shard's own keys are damaged. All else is of the last comparison then. */
  readonly compared: boolean;
  /** Of the Redis process that was compared; '' before the first comparison. */
  readonly redisRunId: string;
  /** Loaded wallets; one that is not loaded cannot drift. The sums are of these, without those whose numbers are damaged. */
  readonly wallets: number;
  readonly walletMicros: number;
  readonly settledMicros: number;
  readonly streamedMicros: number;
  readonly heldMicros: number;
  readonly driftMicros: number;
  /** Without their signs: what is too much in one wallet does not make up for what another lacks. */
  readonly absoluteDriftMicros: number;
  readonly driftingAccounts: number;
  /** Those of damaged wallets first, then the largest; at most `MAX_LISTED`. */
  readonly drifts: readonly Drift[];
  /** All of them with the time of `sinceMs`. */
  readonly driftingSince: Readonly<Record<string, number>>;
};

/** What such a wallet seems to lack is the sum of all its credits, or its whole balance. */
const isUnknown = ({ damagedFields }: Comparison): boolean =>
  damagedFields.includes('balance') || damagedFields.includes('credit_seq');

/** Adds up comparisons. */
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
  { shard, checkedAtMs, redisRunId }: Pick<ShardReport, 'shard' | 'checkedAtMs' | 'redisRunId'>,
  sums: ReportSums,
  drifts: readonly Drift[],
): ShardReport {
  const isDamaged = ({ damagedFields }: Drift): number => (damagedFields.length > 0 ? 1 : 0);
  const sorted = drifts.toSorted(
    (a, b) => isDamaged(b) - isDamaged(a) || Math.abs(b.driftMicros) - Math.abs(a.driftMicros),
  );
  return {
    shard,
    checkedAtMs,
    compared: true,
    redisRunId,
    ...sums,
    driftMicros: drifts.reduce((sum, drift) => sum + drift.driftMicros, 0),
    absoluteDriftMicros: drifts.reduce((sum, drift) => sum + Math.abs(drift.driftMicros), 0),
    driftingAccounts: drifts.length,
    drifts: sorted.slice(0, MAX_LISTED),
    driftingSince: Object.fromEntries(sorted.slice(0, MAX_REMEMBERED).map((drift) => [drift.accountId, drift.sinceMs])),
  };
}

/** It could not be compared this time: what was found the last time stays known. */
export function notCompared(shard: number, checkedAtMs: number, before: ShardReport | undefined): ShardReport {
  const known = before ?? newReport({ shard, checkedAtMs, redisRunId: '' }, new ReportSums(), []);
  return { ...known, checkedAtMs, compared: false };
}

/** Whether the report shows that the account agreed: what is too much to be remembered may have drifted. */
export function hadAgreed({ driftingSince, driftingAccounts }: ShardReport, accountId: string): boolean {
  return driftingSince[accountId] === undefined && Object.keys(driftingSince).length === driftingAccounts;
}

export function newDrift(comparison: Comparison, sinceMs: number, unproven: string): Drift {
  const { storedHolds, isIncomplete: _, ...rest } = comparison;
  const driftMicros = isUnknown(comparison) ? 0 : comparison.driftMicros;
  return { ...rest, driftMicros, storedHolds: storedHolds.length, sinceMs, unproven };
}
