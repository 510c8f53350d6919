import { amountColumns, latencyColumns } from './day-sums.ts';
import { type Hours, keyHourColumns, keyHours, serviceColumns } from './hour-sums.ts';
import type { Span } from './sum-tables.ts';

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

/** Whether the sums by key of all pages belong to the same hour. */
export function spanOf(pages: readonly Hours[]): Span {
  const hour = pages.find(({ keys }) => keys.length > 0)?.keys[0]?.hour;
  return pages.every(({ keys }) => keys.every((key) => key.hour === hour)) ? 'one hour' : 'several hours';
}
