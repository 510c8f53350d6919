import { arrayLiterals } from '../writing/array-literal.ts';
import type { Hours, ServiceHour } from './hour-sums.ts';
import { SERVICE_AMOUNTS, SERVICE_LATENCIES } from './sum-tables.ts';

const HOURS_PER_DAY = 24;
const dayOf = ({ hour }: { readonly hour: number }): number => Math.floor(hour / HOURS_PER_DAY);

/** An amount rounded down to three digits; exact up to 2^53, because the quotient is below 1 000. */
export function roundedAmount(amount: number): number {
  const unit = 10 ** Math.max(0, String(amount).length - 3);
  return Math.floor(amount / unit) * unit;
}

/** The latencies of all pages of a batch: one array literal for each column of `service_latencies`. */
export const latencyColumns = (pages: readonly Hours[]): string[] =>
  columnsOf(pages, ({ buckets }) => countOf(buckets), SERVICE_LATENCIES.columns.length);

/** The amounts of all pages of a batch: one array literal for each column of `service_amounts`. */
export const amountColumns = (pages: readonly Hours[]): string[] =>
  columnsOf(pages, ({ amounts }) => roundedCounts(countOf(amounts)), SERVICE_AMOUNTS.columns.length);

/** How often each value occurs, by service and day. */
function columnsOf(pages: readonly Hours[], counts: (hour: ServiceHour) => Map<number, number>, columns: number) {
  const rows = new Map<string, { serviceId: string; day: number; value: number; calls: number }>();
  for (const { services } of pages) {
    for (const sums of services) {
      const { serviceId } = sums;
      const day = dayOf(sums);
      for (const [value, calls] of counts(sums)) {
        const name = `${serviceId} ${day} ${value}`;
        const row = rows.get(name);
        if (row === undefined) rows.set(name, { serviceId, day, value, calls });
        else row.calls += calls;
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

function countOf(values: readonly number[]): Map<number, number> {
  const counts = new Map<number, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}

/** Most calls of a service cost the same, so each amount is rounded once. */
function roundedCounts(exact: ReadonlyMap<number, number>): Map<number, number> {
  const counts = new Map<number, number>();
  for (const [amount, calls] of exact) {
    const rounded = roundedAmount(amount);
    counts.set(rounded, (counts.get(rounded) ?? 0) + calls);
  }
  return counts;
}
