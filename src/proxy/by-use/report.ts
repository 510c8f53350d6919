import { MAX_AMOUNT_MICROS, parseUsd } from '../../platform/money.ts';

const NAME = 'x-acf-charge';
/** An amount, but more than the gateway reckons with. Its service says that the call cost too much, not that it says nothing. */
const HUGE = /^[1-9]\d{9,}(?:\.\d{1,6})?$/;

/**
 * What a service says that a call cost: the value of `X-ACF-Charge` in its response head or in its trailers.
 *
 * Tested by test/proxy/by-use/use.test.ts.
 *
 * @param fields  flat [name, value, …]
 * @returns micro-USD; null if there is no such field, or several, or one that is no amount
 */
export function reportIn(fields: readonly string[]): number | null {
  let found: string | null = null;
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string;
    if (name.length !== NAME.length || name.toLowerCase() !== NAME) continue;
    // Two reports could be read as either.
    if (found !== null) return null;
    found = fields[i + 1] as string;
  }
  if (found === null) return null;
  return parseUsd(found) ?? (HUGE.test(found) ? MAX_AMOUNT_MICROS : null);
}
