import { formatUsd } from '../../platform/money.ts';

/**
 * The header line that tells a service the most that it may charge.
 *
 * @param micros  null: the call has a fixed price
 */
export const authorizedLine = (micros: number | null): string =>
  micros === null ? '' : `x-acf-authorized: ${formatUsd(micros)}\r\n`;
