import { formatUsd } from '../../platform/money.ts';

/**
 * The header line by which a service learns what it may charge at most.
 *
 * @param micros  null: the call has a fixed price
 */
export const authorizedLine = (micros: number | null): string =>
  micros === null ? '' : `x-acf-authorized: ${formatUsd(micros)}\r\n`;
