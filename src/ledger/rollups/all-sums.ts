import { amountColumns, keyDayColumns, latencyColumns } from './day-sums.ts';
import { type Hours, keyHourColumns, keyHours, serviceColumns } from './hour-sums.ts';
import { addRowsSql, SUM_TABLES } from './sum-tables.ts';

/** All sums of calls: by hour, of services and of keys, and by day, of keys, of latencies and of amounts. */

/**
 * Parts of a WITH clause that add sums to all tables. The sums are the parameters `$first` and following: `sumsColumns`.
 *
 * @param prefix of the tables' names
 */
export function addSumsFrom(first: number, prefix = ''): string {
  let next = first;
  const parts = SUM_TABLES.map((table) => {
    const part = `${table.name}_sums AS (${addRowsSql(table, next, prefix)})`;
    next += table.columns.length;
    return part;
  });
  return parts.join(', ');
}

/** The sums of all pages of a batch, as the array literals that `addSumsFrom` reads. */
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
