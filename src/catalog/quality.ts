/**
 * The quality of a service about which nothing is known yet, on the scale 0 to 100 (API.md): the middle, so that a
 * newcomer is neither buried under the proven services nor put above them.
 */
export const NEUTRAL_QUALITY = 50;

/**
 * The quality of a service, 0 to 100. Until it is computed from real calls every service has the neutral prior; this
 * function is the one place that knows.
 */
export function qualityOf(_serviceId: string): number {
  return NEUTRAL_QUALITY;
}
