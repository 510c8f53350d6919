/**
 * Money is an integer number of micro-USD (1 USD = 1 000 000). Conversions go through decimal text, never through
 * arithmetic on floats: 0.1 + 0.2 must not reach a wallet.
 */

/** No single amount may exceed this: 1 billion USD. 2^53 micro-USD is nine times as much, so the sum of nine amounts is exact. */
export const MAX_AMOUNT_MICROS = 1_000_000_000_000_000;

/**
 * Maximum balance of a wallet; anything that would exceed it is refused. 4 billion USD, less than half of 2^53 micro-USD: a balance
 * beyond 2^53 could not be read back exactly, and the account's wallet could never be loaded again.
 */
export const MAX_BALANCE_MICROS = 4 * MAX_AMOUNT_MICROS;

const DECIMAL = /^(0|[1-9]\d{0,9})(?:\.(\d{1,6}))?$/;

/** Decimal USD text with at most 6 decimals → micro-USD. Null for any other text, and for more than MAX_AMOUNT_MICROS. */
export function parseUsd(text: string): number | null {
  const match = DECIMAL.exec(text);
  if (match === null) return null;
  const micros = Number(match[1]) * 1_000_000 + Number((match[2] ?? '').padEnd(6, '0'));
  return micros <= MAX_AMOUNT_MICROS ? micros : null;
}

/** A JSON number of USD → micro-USD, or null when negative, too large or finer than a micro-dollar. */
export function usdToMicros(usd: number): number | null {
  if (!Number.isFinite(usd) || usd < 0) return null;
  // String() gives the shortest text that reads back as this number, but writes numbers below 1e-6 with an exponent. Those are
  // too fine: toFixed(7) gives them a seventh decimal, which parseUsd refuses.
  const text = usd < 1e-6 && usd > 0 ? usd.toFixed(7) : String(usd);
  return parseUsd(text);
}

/** micro-USD → decimal text without trailing zeros ('0', '0.002', '12.5'), for header values and CSV. */
export function formatUsd(micros: number): string {
  if (micros === 0) return '0';
  const sign = micros < 0 ? '-' : '';
  const abs = Math.abs(micros);
  const whole = Math.trunc(abs / 1_000_000);
  const rest = abs % 1_000_000;
  if (rest === 0) return `${sign}${whole}`;
  // Arithmetic instead of padding and a regular expression: those took 0.3 µs per amount, and every response has two.
  let decimals = rest;
  let zeros = '';
  while (decimals % 10 === 0) decimals /= 10;
  for (let unit = 100_000; rest < unit; unit /= 10) zeros += '0';
  return `${sign}${whole}.${zeros}${decimals}`;
}

/** micro-USD → a JSON number that prints as the exact decimal, up to 2^33 USD (8.5 billion). Doubles beyond are too far apart. */
export function microsToUsd(micros: number): number {
  return micros / 1_000_000;
}
