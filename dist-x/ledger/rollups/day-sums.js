import { arrayLiterals } from '../writing/array-literal.js';
import { SERVICE_AMOUNTS, SERVICE_LATENCIES } from './sum-tables.js';
const HOURS_PER_DAY = 24;
/** An amount rounded down to three digits; exact up to 2^53, because the quotient is below 1 000. */
export function roundedAmount(amount) {
    const unit = 10 ** Math.max(0, String(amount).length - 3);
    return Math.floor(amount / unit) * unit;
}
/** The latencies of all pages of a batch: one array literal for each column of `service_latencies`. */
export const latencyColumns = (pages) => columnsOf(pages, ({ buckets }) => countOf(buckets), SERVICE_LATENCIES.columns.length);
/** The amounts of all pages of a batch: one array literal for each column of `service_amounts`. */
export const amountColumns = (pages) => columnsOf(pages, ({ amounts }) => roundedCounts(countOf(amounts)), SERVICE_AMOUNTS.columns.length);
/** How often each value occurs, by service and day. */
function columnsOf(pages, counts, columns) {
    const rows = new Map();
    for (const { services } of pages) {
        for (const sums of services) {
            const { serviceId } = sums;
            const day = Math.floor(sums.hour / HOURS_PER_DAY);
            for (const [value, calls] of counts(sums)) {
                const name = `${serviceId} ${day} ${value}`;
                const row = rows.get(name);
                if (row === undefined)
                    rows.set(name, { serviceId, day, value, calls });
                else
                    row.calls += calls;
            }
        }
    }
    return arrayLiterals(Array.from(rows.values()), columns, ({ serviceId, day, value, calls }, add) => {
        add(0, serviceId);
        add(1, day);
        add(2, value);
        add(3, calls);
    });
}
function countOf(values) {
    const counts = new Map();
    for (const value of values)
        counts.set(value, (counts.get(value) ?? 0) + 1);
    return counts;
}
/** Most calls of a service cost the same, so each amount is rounded once. */
function roundedCounts(exact) {
    const counts = new Map();
    for (const [amount, calls] of exact) {
        const rounded = roundedAmount(amount);
        counts.set(rounded, (counts.get(rounded) ?? 0) + calls);
    }
    return counts;
}
//# sourceMappingURL=day-sums.js.map