import { amountColumns, keyDayColumns, latencyColumns } from './day-sums.ts';
import { type Hours, keyHourColumns, keyHours, serviceColumns } from './hour-sums.ts';

/**
 * The sums of all pages of a batch, as the array literals that `addSumsFrom` (sum-tables.ts) reads: by hour, of services and of keys, and
 * by day, of keys, of latencies and of amounts.
 */
export function sumsColumns(pages: readonly Hours[]): string[] {
  const keys = keyHours(pages);
  return [
    ...serviceColumns(pages),
    ...keyHourColumns(keys),
    ...keyDayColumns(keys),
    ...latencyColumns(pages),
    ...amountColumns(pages),
  ];
}
