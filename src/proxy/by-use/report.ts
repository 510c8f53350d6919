import { MAX_AMOUNT_MICROS, parseUsd } from '../../platform/money.ts';

const NAME = 'x-acf-charge';
/** Stands for an amount above all that the gateway computes with. The service then reports too high a cost, not none. */
const HUGE = /^[1-9]\d{9,}(?:\.\d{1,6})?$/;

/**
 * What a service says that a call cost: the value of `X-ACF-Charge` in its response head or in its trailers.
 *
 * Tested by test/proxy/by-use/use.test.ts.
 *
 * @param fields  flat [name, value, …]
 * @returns micro-USD; null if there is no such field, if there are several, or if its value is not an amount
 */
export function reportIn(fields: readonly string[]): number | null {
  let found: string | null = null;
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string;
    if (name.length !== NAME.length || name.toLowerCase() !== NAME) continue;
    // With two reports, it is unclear which one counts.
    if (found !== null) return null;
    found = fields[i + 1] as string;
  }
  if (found === null) return null;
  return parseUsd(found) ?? (HUGE.test(found) ? MAX_AMOUNT_MICROS : null);
}
