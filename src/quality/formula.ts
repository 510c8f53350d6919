/**
 * The formula of a service's quality. docs/quality.md explains it, with an example that a test computes.
 *
 * Tested by test/quality/quality.test.ts.
 */

/** After this many days a call weighs half. Long enough that one bad hour does not outweigh a good month. */
export const HALF_LIFE_DAYS = 5;
/** Calls older than this are left out: they would weigh 1/64 and less. */
export const WINDOW_DAYS = 30;
/**
 * The maximum weight of all calls of one buyer, in calls: n calls weigh n × 5 / (n + 5). So a single buyer can move a service only
 * between 40 and 60 by success, and one buyer of a hundred by less than five points.
 */
export const BUYER_WEIGHT = 5;
/** The weight of the prior, in calls: with evidence worth 20 calls, a service is half-way from the prior to what was observed. */
const PRIOR_WEIGHT = 20;
/** Both parts of the score have this value when nothing is known. */
const PRIOR = 0.5;
/** The prior of the lower bound, in calls: two that succeeded and two that failed, as proposed by Agresti and Coull. */
const BOUND_PRIOR_WEIGHT = 4;
/** Nine in ten services with the same evidence succeed more often than this bound. */
const BOUND_DEVIATIONS = 1.28;
/** Success counts nine times as much as latency: a fast failure is worth nothing. */
const SUCCESS_SHARE = 0.9;

/** A trend compares the quality with that of this many days before. */
export const TREND_DAYS = 7;
/** With less evidence than this on the earlier day there is no trend, because the prior would be compared. */
const MIN_EVIDENCE_BEFORE = 5;

export type Evidence = {
  /** The sum of all buyers' weights. */
  readonly weight: number;
  /** The part of `weight` that counts succeeded calls. */
  readonly succeeded: number;
  /** The typical latency in microseconds: the geometric mean over buyers, by weight. Null when no latency is known. */
  readonly latencyUs: number | null;
};

/**
 * @param typicalUs the median of the typical latencies in the service's category, in microseconds; null when there are too few
 * @returns 0 to 100, with one decimal
 */
export function qualityFrom(evidence: Evidence, typicalUs: number | null): number {
  return scored(shrunk(evidence.succeeded, evidence.weight), evidence, typicalUs);
}

/**
 * The quality, computed from the lower bound of success. Catalogs sort by it: a service with little evidence, however good, comes
 * after one that many buyers have found equally good. At typical latency, more successes never lower it, and more failures never
 * raise it.
 */
export function lowerBoundFrom(evidence: Evidence, typicalUs: number | null): number {
  const { weight, succeeded } = evidence;
  const likely = (succeeded + PRIOR * BOUND_PRIOR_WEIGHT) / (weight + BOUND_PRIOR_WEIGHT);
  const deviation = Math.sqrt((likely * (1 - likely)) / (weight + BOUND_PRIOR_WEIGHT + 1));
  return scored(Math.max(0, likely - BOUND_DEVIATIONS * deviation), evidence, typicalUs);
}

/** @param success  from 0 to 1 */
function scored(success: number, { weight, latencyUs }: Evidence, typicalUs: number | null): number {
  const speed =
    latencyUs === null || typicalUs === null ? PRIOR : shrunk(weight * speedOf(latencyUs, typicalUs), weight);
  return Math.round(1_000 * (SUCCESS_SHARE * success + (1 - SUCCESS_SHARE) * speed)) / 10;
}

/**
 * How much the quality has risen over the quality of `TREND_DAYS` before; null if there were too few calls then. Both are compared
 * with the same typical latency, so the trend shows what the service did, and not what others of its category did.
 */
export function trendFrom(now: Evidence, before: Evidence, typicalUs: number | null): number | null {
  if (before.weight < MIN_EVIDENCE_BEFORE) return null;
  return Math.round(10 * (qualityFrom(now, typicalUs) - qualityFrom(before, typicalUs))) / 10 || 0;
}

/** The observed share, drawn towards the prior by `PRIOR_WEIGHT` imaginary calls. */
const shrunk = (sum: number, weight: number): number => (sum + PRIOR * PRIOR_WEIGHT) / (weight + PRIOR_WEIGHT);

/** 1/2 at the category's median, 2/3 at half of it, 1/3 at twice that. */
const speedOf = (latencyUs: number, typicalUs: number): number => typicalUs / (latencyUs + typicalUs);
