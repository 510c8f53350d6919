/**
 * The quality of a service about which nothing is known yet, on a scale from 0 to 100 (docs/api.md, 'Catalog'). The middle, so
 * that a new service is neither buried below the proven ones nor put above them.
 */
export const NEUTRAL_QUALITY = 50;

/**
 * The quality of a service, 0 to 100. It is not computed from real calls yet: every service has the neutral value. No other code
 * relies on that.
 */
export function qualityOf(_serviceId: string): number {
  return NEUTRAL_QUALITY;
}
