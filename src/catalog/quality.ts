/**
 * The quality of a service about which nothing is known yet, on a scale from 0 to 100 (docs/api.md, 'Catalog'). The middle, so
 * that a new service is neither buried below the proven ones nor put above them.
 */
const NEUTRAL = 50;

/** How well calls of a service went lately (docs/quality.md). */
export type Quality = {
  /** 0 to 100, with one decimal. */
  readonly value: number;
  /** How much more that is than seven days before; null when too little was known then. */
  readonly trend: number | null;
  /** Whether calls went into it. Calls of a rated service may make 50, too. */
  readonly rated: boolean;
};

export const UNKNOWN_QUALITY: Quality = { value: NEUTRAL, trend: null, rated: false };

export const isSameQuality = (a: Quality, b: Quality): boolean =>
  a.value === b.value && a.trend === b.trend && a.rated === b.rated;
