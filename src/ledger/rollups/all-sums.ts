import { amountColumns, latencyColumns } from './day-sums.ts';
import { type Hours, keyHourColumns, keyHours, serviceColumns } from './hour-sums.ts';

/**
 * The sums of all pages of a batch, as the array literals that `addSumsFrom` (sum-tables.ts) reads: by hour, of services and of keys, and
 * by day, of latencies and of amounts.
 */
export const sumsColumns = (pages: readonly Hours[]): string[] => [
  ...serviceColumns(pages),
  ...keyHourColumns(keyHours(pages)),
  ...latencyColumns(pages),
  ...amountColumns(pages),
];
