import { amountColumns, latencyColumns } from './day-sums.js';
import { keyColumns, serviceColumns } from './hour-sums.js';
import { addRowsSql, SUM_TABLES } from './sum-tables.js';
/** All sums of calls: by hour, of services and of keys, and by day, of latencies and of amounts. */
/**
 * Parts of a WITH clause that add sums to all tables. The sums are the parameters `$first` and following: `sumsColumns`.
 *
 * @param prefix of the tables' names
 */
export function addSumsFrom(first, prefix = '') {
    let next = first;
    const parts = SUM_TABLES.map((table) => {
        const part = `${table.name}_sums AS (${addRowsSql(table, next, prefix)})`;
        next += table.columns.length;
        return part;
    });
    return parts.join(', ');
}
/** The sums of all pages of a batch, as the array literals that `addSumsFrom` reads. */
export const sumsColumns = (pages) => [
    ...serviceColumns(pages),
    ...keyColumns(pages),
    ...latencyColumns(pages),
    ...amountColumns(pages),
];
//# sourceMappingURL=all-sums.js.map