// Tested by test/web/service-charts.test.ts.

import type { components } from '../api/schema.d.ts';
import { hoursUpToNow } from '../design/series.ts';

type Day = components['schemas']['DayStats'];
type Hour = components['schemas']['HourStats'];
type Stats = components['schemas']['ServiceStats'];
type Recorded = Pick<components['schemas']['CallableService'], 'track_record'>;

const DAY_S = 86_400;
const DAYS = 30;

/**
 * The success rate and the calls of which it is: without callers' mistakes. From the sums that the page shows below, where they are
 * known; those of the catalog are a little older. Null: none.
 */
export function successOf(
  { track_record: record }: Recorded,
  stats: Pick<Stats, 'calls' | 'succeeded' | 'failed' | 'success_rate'> | null,
): { readonly rate: number | null; readonly calls: number | null } {
  if (stats !== null && stats.calls > 0) return { rate: stats.success_rate, calls: stats.succeeded + stats.failed };
  return { rate: record?.success_rate ?? null, calls: record?.calls ?? null };
}

/** The columns of the charts: 30 days up to today in UTC, oldest first. A day without calls has counts of 0 and no other values. */
export function chartData(days: readonly Day[], nowMs: number) {
  const today = Math.floor(nowMs / 1_000 / DAY_S) * DAY_S;
  const times = Array.from({ length: DAYS }, (_, at) => today - (DAYS - 1 - at) * DAY_S);
  const known = new Map(days.map((day) => [Date.parse(`${day.day}T00:00:00Z`) / 1_000, day]));
  const column = <T>(pick: (day: Day) => T, none: T): T[] =>
    times.map((time) => {
      const day = known.get(time);
      return day === undefined ? none : pick(day);
    });
  return {
    times,
    succeeded: column(({ succeeded }) => succeeded, 0),
    failed: column(({ failed }) => failed, 0),
    callerErrors: column(({ caller_errors }) => caller_errors, 0),
    others: column(({ caller_left, unavailable }) => caller_left + unavailable, 0),
    successRate: column<number | null>(({ success_rate }) => success_rate, null),
    p50: column<number | null>(({ latency_ms }) => latency_ms.p50, null),
    p95: column<number | null>(({ latency_ms }) => latency_ms.p95, null),
    priceMedian: column<number | null>(({ price_charged }) => price_charged.median, null),
    priceP95: column<number | null>(({ price_charged }) => price_charged.p95, null),
  };
}

/** The same for a new service: from the hour of its first call up to this hour, and at least a day. */
export function hourData(hours: readonly Hour[], nowMs: number) {
  const known = new Map(hours.map((hour) => [Date.parse(hour.hour) / 1_000, hour]));
  const times = hoursUpToNow(known.keys(), nowMs);
  const column = <T>(pick: (hour: Hour) => T, none: T): T[] =>
    times.map((time) => {
      const hour = known.get(time);
      return hour === undefined ? none : pick(hour);
    });
  return {
    times,
    succeeded: column(({ succeeded }) => succeeded, 0),
    failed: column(({ failed }) => failed, 0),
    callerErrors: column(({ caller_errors }) => caller_errors, 0),
    others: column(({ caller_left, unavailable }) => caller_left + unavailable, 0),
    successRate: column<number | null>(({ success_rate }) => success_rate, null),
    latency: column<number | null>(({ latency_ms }) => latency_ms, null),
  };
}
