/**
 * The quality of a service about which nothing is known yet, on a scale from 0 to 100 (docs/api.md, 'Catalog'). It is the middle,
 * so that a new service is neither hidden below the proven ones nor placed above them.
 */
const NEUTRAL = 50;
/** The result of `lowerBoundFrom` (src/quality/formula.ts) when nothing is known. */
const NEUTRAL_BOUND = 24.2;

/** The calls from which a quality was computed, unweighted, rounded so that a few calls seldom change what searches show. */
type TrackRecord = {
  /** Rounded down to three digits. */
  readonly calls: number;
  /** Accounts. */
  readonly buyers: number;
  /** The share of calls that succeeded, from 0 to 1, rounded down to three decimals: 1 only if all did. */
  readonly successRate: number;
  /** The typical latency, to two digits; null when none is known. */
  readonly latencyMs: number | null;
};

/** How well calls of a service went lately (docs/quality.md). */
export type Quality = {
  /** 0 to 100, with one decimal. */
  readonly value: number;
  /** The change of the value in seven days; null when too little was known then. */
  readonly trend: number | null;
  /** Catalogs sort by this: as `value`, but computed from the lower bound of success. It may be more than `value`. */
  readonly lowerBound: number;
  /** Null: the quality was computed without calls. A rated service may have 50, too. */
  readonly record: TrackRecord | null;
};

export const UNKNOWN_QUALITY: Quality = { value: NEUTRAL, trend: null, lowerBound: NEUTRAL_BOUND, record: null };

export const isSameQuality = (a: Quality, b: Quality): boolean =>
  a.value === b.value && a.trend === b.trend && a.lowerBound === b.lowerBound && isSameRecord(a.record, b.record);

const isSameRecord = (a: TrackRecord | null, b: TrackRecord | null): boolean =>
  a === null || b === null
    ? a === b
    : a.calls === b.calls && a.buyers === b.buyers && a.successRate === b.successRate && a.latencyMs === b.latencyMs;
