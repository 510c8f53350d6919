import { FAILED_OUTCOMES } from '../ledger/rollups/call-class.ts';
import { COUNTED_SQL } from '../ledger/usage-event.ts';
import { selectList } from '../platform/fields.ts';
import type { Sql } from '../platform/postgres.ts';
import { CALL, type CallRow } from './call-fields.ts';
import { clampTime, type TimeRange, utcDay } from './time-range.ts';
import { lowestId } from './usage-sql.ts';

const HOUR_MS = 3_600_000;
/**
 * By how much the clock of a gateway, from which a call's id comes, and that of Redis, from which its hour comes, may differ before
 * the list misses calls at the border of an hour. Each additional minute makes a busy hour 1/60 slower to read.
 */
const CLOCK_SLACK_MS = 600_000;
/** Maximum hours and days with calls that one page reads. So a page may have fewer records than requested, and still a cursor. */
const MAX_HOURS = 744;
const MAX_DAYS = 31;

export const OUTCOMES = ['completed', 'failed'] as const;

type ServiceCallsFilter = TimeRange & {
  readonly serviceId: string;
  readonly outcome: (typeof OUTCOMES)[number] | null;
};

/** A position in the list. It is ordered by hour of `created_at`, then by id, newest first. */
export type Position = { readonly hourMs: number; readonly usageId: string };
/** The position after all calls of the hour. */
const LAST_ID = '00000000-0000-0000-0000-000000000000';

/** All calls of a list belong to one service, whose name would need a join. */
type ServiceCall = Omit<CallRow, 'service_name'>;
const COLUMNS = selectList(CALL, ['service_name']);

type Row = ServiceCall & { readonly hourMs: number };

/**
 * One page of the calls of a service that count, newest first.
 *
 * `calls` has no index by service: it would cost the writer a random write for each event. The sums by hour tell in which hours a
 * service was called and with which keys. A key has at most 300 calls in a minute, and `calls` has an index by key and id. So a
 * page costs one range of that index for each key and hour that it shows. Failed calls are found as fast, because their hours and
 * keys are known: those of calls that the service failed, and those of calls that were given back whole.
 */
export async function selectServiceCalls(
  sql: Sql,
  filter: ServiceCallsFilter,
  after: Position | null,
  limit: number,
): Promise<{ readonly calls: readonly ServiceCall[]; readonly next: Position | null }> {
  const hours = await selectHours(sql, filter, after);
  const found: Row[] = [];
  let days = 0;
  for (let at = 0; at < hours.length; ) {
    if (days++ === MAX_DAYS || at >= MAX_HOURS) return { calls: found, next: behind(hours[at - 1] as Hour) };
    const group = sameDay(hours, at, limit + 1 - found.length);
    at += group.length;
    const needed = limit + 1 - found.length;
    const newest = await selectNewest(sql, filter, after, group[0] as Hour, needed);
    found.push(...(newest ?? (await selectCallsOf(sql, filter, after, group, needed))));
    if (found.length <= limit) continue;
    const calls = found.slice(0, limit);
    const { hourMs, usage_id: usageId } = calls.at(-1) as Row;
    return { calls, next: { hourMs, usageId } };
  }
  return { calls: found, next: null };
}

type Hour = {
  readonly hourMs: number;
  /** How many match. */
  readonly calls: number;
  /** Whether calls were given back whole: looking for them reads a row for each charged call. */
  readonly hasGivenBack: boolean;
};

const behind = ({ hourMs }: Hour): Position => ({ hourMs, usageId: LAST_ID });

/** The hours with matching calls, newest first: one more than a page may read. */
function selectHours(sql: Sql, filter: ServiceCallsFilter, after: Position | null): Promise<Hour[]> {
  const { serviceId, fromMs, toMs, outcome } = filter;
  const givenBack = outcome === 'failed' ? sql`coalesce(whole, 0)` : sql`0`;
  const count =
    outcome === 'failed'
      ? sql`upstream_error + upstream_timeout + upstream_5xx + upstream_cut + ${givenBack}`
      : sql`calls`;
  const refunds = sql`(SELECT hour, sum(whole)::bigint AS whole FROM refund_hours WHERE service_id = ${serviceId} GROUP BY hour)`;
  return sql<Hour[]>`
    SELECT (extract(epoch FROM hour) * 1000)::bigint AS "hourMs", ${count} AS calls, ${givenBack} > 0 AS "hasGivenBack"
    FROM service_hours ${outcome === 'failed' ? sql`LEFT JOIN ${refunds} AS r USING (hour)` : sql``}
    WHERE service_id = ${serviceId} AND ${count} > 0
      ${fromMs === null ? sql`` : sql`AND hour > ${new Date(clampTime(fromMs - HOUR_MS))}`}
      ${toMs === null ? sql`` : sql`AND hour < ${new Date(toMs)}`}
      ${after === null ? sql`` : sql`AND hour <= ${new Date(after.hourMs)}`}
    ORDER BY hour DESC LIMIT ${MAX_HOURS + 1}`;
}

/** The hours from `at` on that belong to one day, as many as contain this many calls. */
function sameDay(hours: readonly Hour[], at: number, needed: number): Hour[] {
  const day = utcDay((hours[at] as Hour).hourMs);
  const group: Hour[] = [];
  let calls = 0;
  for (const hour of hours.slice(at, at + 24)) {
    if (calls >= needed || utcDay(hour.hourMs) !== day) break;
    group.push(hour);
    calls += hour.calls;
  }
  return group;
}

/** From this many calls in an hour, a service may have a large part of all calls of that hour. */
const BUSY_HOUR = 2_000;
/** Maximum calls of all services that are searched for those of a busy one: about 20 ms. */
const MAX_SCAN = 20_000;

/**
 * The newest calls of a busy hour, found among all calls of that hour; null if it finds too few. A service with a large part of
 * these calls has many keys, and reading the calls of each key takes longer. An id begins with its time, so ordering by day and id
 * is ordering by id, which is the order of the primary key.
 */
async function selectNewest(
  sql: Sql,
  filter: ServiceCallsFilter,
  after: Position | null,
  hour: Hour,
  needed: number,
): Promise<Row[] | null> {
  const { hourMs, calls } = hour;
  if (calls < Math.max(BUSY_HOUR, needed)) return null;
  const [firstMs, lastMs] = [hourMs - CLOCK_SLACK_MS, hourMs + HOUR_MS + CLOCK_SLACK_MS];
  const isWithin = after !== null && after.hourMs === hourMs;
  const rows = await sql.anew<Row[]>`
    SELECT ${sql.text(COLUMNS)}, ${hourMs}::bigint AS "hourMs"
    FROM (SELECT * FROM calls
          WHERE day >= ${utcDay(firstMs)} AND day <= ${utcDay(lastMs)} AND usage_id >= ${lowestId(firstMs)}
            AND usage_id < ${isWithin ? after.usageId : lowestId(lastMs)}
          ORDER BY day DESC, usage_id DESC LIMIT ${MAX_SCAN}) AS c
    WHERE created_at >= ${new Date(hourMs)} AND created_at < ${new Date(hourMs + HOUR_MS)} AND ${matching(sql, filter, [hour])}
    ORDER BY usage_id DESC LIMIT ${needed}`;
  return rows.length < needed ? null : rows;
}

/** The condition on `calls c` of these hours. */
const matching = (sql: Sql, { serviceId, fromMs, toMs, outcome }: ServiceCallsFilter, hours: readonly Hour[]) => sql`
  service_id = ${serviceId} AND ${sql.text(COUNTED_SQL)}
  ${fromMs === null ? sql`` : sql`AND created_at >= ${new Date(fromMs)}`}
  ${toMs === null ? sql`` : sql`AND created_at < ${new Date(toMs)}`}
  ${outcome === 'failed' ? sql`AND (outcome = ANY(${FAILED_OUTCOMES}::text[]) OR ${givenBackWhole(sql, hours)})` : sql``}
  ${outcome === 'completed' ? sql`AND outcome = 'completed'` : sql``}`;

const isAnyGivenBack = (hours: readonly Hour[]): boolean => hours.some(({ hasGivenBack }) => hasGivenBack);

/** Nothing can be given back of a call that was not charged, so it is not looked up. */
const givenBackWhole = (sql: Sql, hours: readonly Hour[]) =>
  isAnyGivenBack(hours)
    ? sql`(c.amount > 0 AND EXISTS (SELECT FROM refunds r WHERE r.usage_id = c.usage_id AND r.whole))`
    : sql`false`;

/** The condition on `key_hours k`. */
const hasFailed = (sql: Sql, hours: readonly Hour[]) =>
  isAnyGivenBack(hours)
    ? sql`(k.failed > 0 OR EXISTS (SELECT FROM refund_hours r
            WHERE r.key_id = k.key_id AND r.hour = k.hour AND r.service_id = k.service_id AND r.whole > 0))`
    : sql`k.failed > 0`;

/** @param hours of one day, newest first */
function selectCallsOf(
  sql: Sql,
  filter: ServiceCallsFilter,
  after: Position | null,
  hours: readonly Hour[],
  limit: number,
): Promise<Row[]> {
  const { serviceId, outcome } = filter;
  const begins = hours.map(({ hourMs }) => hourMs);
  const ends = begins.map((ms) => ms + HOUR_MS);
  const times = (list: readonly number[]): string[] => list.map((ms) => new Date(ms).toISOString());
  const firstMs = Math.min(...begins) - CLOCK_SLACK_MS;
  const lastMs = Math.max(...ends) + CLOCK_SLACK_MS;
  return sql.anew<Row[]>`
    SELECT c.*, (extract(epoch FROM h.hour) * 1000)::bigint AS "hourMs"
    FROM unnest(${times(begins)}::timestamptz[], ${times(ends)}::timestamptz[],
                ${begins.map((ms) => lowestId(ms - CLOCK_SLACK_MS))}::uuid[],
                ${ends.map((ms) => lowestId(ms + CLOCK_SLACK_MS))}::uuid[]) AS h (hour, ends, lowest, highest)
    JOIN key_hours k ON k.service_id = ${serviceId} AND k.hour = h.hour ${outcome === 'failed' ? sql`AND ${hasFailed(sql, hours)}` : sql``}
    CROSS JOIN LATERAL (
      SELECT ${sql.text(COLUMNS)} FROM calls c
      WHERE key_id = k.key_id AND ${matching(sql, filter, hours)}
        AND day >= ${utcDay(firstMs)} AND day <= ${utcDay(lastMs)}
        AND usage_id >= h.lowest AND usage_id < h.highest AND created_at >= h.hour AND created_at < h.ends
        ${after === null ? sql`` : sql`AND (h.hour < ${new Date(after.hourMs)} OR usage_id < ${after.usageId})`}
      ORDER BY usage_id DESC LIMIT ${limit}) AS c
    ORDER BY h.hour DESC, c.usage_id DESC LIMIT ${limit}`;
}
