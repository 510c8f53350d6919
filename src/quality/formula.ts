/**
 * The formula of a service's quality. docs/quality.md explains it, with an example that a test computes.
 *
 * Tested by test/quality/quality.test.ts.
 */

/** After this many days a call weighs half. Long enough that one bad hour does not bury a good month. */
export const HALF_LIFE_DAYS = 5;
/** Calls older than this are left out: they would weigh 1/64 and less. */
export const WINDOW_DAYS = 30;
/**
 * The weight that all calls of one buyer approach, in calls: n calls weigh n × 5 / (n + 5). With it, one buyer alone can move a
 * service only between 40 and 60 by success, and one buyer of a hundred by less than five points.
 */
export const BUYER_WEIGHT = 5;
/** The weight of the prior, in calls: with evidence worth 20 calls, a service is half-way from the prior to what was observed. */
const PRIOR_WEIGHT = 20;
/** Both parts of the score have this value when nothing is known. */
const PRIOR = 0.5;
/** The prior of the lower bound, in calls: two that succeeded and two that failed, as of Agresti and Coull. */
const BOUND_PRIOR_WEIGHT = 4;
/** Nine in ten services with such evidence succeed more often. */
const BOUND_DEVIATIONS = 1.28;
/** Success counts nine times as much as latency: a fast failure is worth nothing. */
const SUCCESS_SHARE = 0.9;

/** What a trend compares the quality with: that of this many days before. */
export const TREND_DAYS = 7;
/** With less evidence than this on that day, the prior would be compared: there is no trend. */
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
 * The quality, but of what success is at least, very likely. Catalogs sort by it: a service with little evidence, however good, comes
 * after one that many buyers have found as good. At the usual speed, more successes never lower it, and more failures never raise it.
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
 * How much more the quality is than what the calls of `TREND_DAYS` before gave, as they weighed then; null when they were too few.
 * Both are compared with the same typical latency, so the trend is what the service did, and not what others of its category did.
 */
export function trendFrom(now: Evidence, before: Evidence, typicalUs: number | null): number | null {
  if (before.weight < MIN_EVIDENCE_BEFORE) return null;
  return Math.round(10 * (qualityFrom(now, typicalUs) - qualityFrom(before, typicalUs))) / 10 || 0;
}

/** The observed share, drawn to the prior by `PRIOR_WEIGHT` calls that are not there. */
const shrunk = (sum: number, weight: number): number => (sum + PRIOR * PRIOR_WEIGHT) / (weight + PRIOR_WEIGHT);

/** 1/2 for the category's median, 2/3 when it takes half of that, 1/3 when it takes twice as long. */
const speedOf = (latencyUs: number, typicalUs: number): number => typicalUs / (latencyUs + typicalUs);
