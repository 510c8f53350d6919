import { COUNTED_SQL } from '../ledger/usage-event.ts';
import { dayOfId, timeOfId } from '../platform/ids.ts';
import type { Sql, Tx } from '../platform/postgres.ts';
import { clampTime, MAX_TIME_MS, type TimeRange, utcDay } from './time-range.ts';

/** Which calls of one key are meant. */
export type UsageFilter = TimeRange & { readonly keyId: string; readonly serviceId: string | null };

/** One recorded call. Amounts in micro-USD, latency in microseconds. */
export type CallRecord = {
  readonly usageId: string;
  readonly accountId: string;
  readonly keyId: string;
  readonly providerId: string;
  readonly serviceId: string;
  readonly serviceName: string;
  readonly method: string;
  readonly path: string;
  /**
   * The HTTP status sent to the caller; 499 if the caller left before one was sent; 0 when the gateway died, since then nobody
   * knows what was sent.
   */
  readonly status: number;
  readonly amountMicros: number;
  readonly feeMicros: number;
  readonly freeTier: boolean;
  readonly outcome: string;
  readonly latencyUs: number;
  readonly requestBytes: number;
  readonly responseBytes: number;
  readonly createdAt: Date;
};

/** Sums over the matching calls of one service that count (`isCounted` of src/ledger/usage-event.ts). */
export type ServiceUsage = {
  readonly serviceId: string;
  readonly serviceName: string;
  readonly calls: number;
  /** Free calls used. A call that was refunded gave its free call back, and does not count. */
  readonly freeCalls: number;
  readonly spentMicros: number;
  /** Sum and number of the known latencies. A call whose gateway died, or whose admission got no reply, has none. */
  readonly latencySumUs: number;
  readonly latencyCount: number;
};

export type KeyActivity = {
  /** When the last recorded call through the proxy began; null when there is none. */
  readonly lastUsedAt: Date | null;
  readonly totalSpentMicros: number;
};

/**
 * By how much the gateway's clock and Redis's clock may differ before a query misses a call. Ids carry the gateway's time, and
 * `created_at` Redis's. A time range selects by `created_at`; ids only narrow the search to partitions and a range of the index.
 */
const CLOCK_SLACK_MS = 3_600_000;

/** The lowest id of a millisecond. */
export function lowestId(ms: number): string {
  const hex = clampTime(ms).toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}

/** Whether a call can have this id. False when its time is later than `MAX_TIME_MS`: `dayOfId` cannot write its day. */
export function isUsageTime(usageId: string): boolean {
  return timeOfId(usageId) <= MAX_TIME_MS;
}

function matches(sql: Sql | Tx, filter: UsageFilter, before: string | null) {
  const { keyId, fromMs, toMs, serviceId } = filter;
  const from = fromMs === null ? null : fromMs - CLOCK_SLACK_MS;
  const to = toMs === null ? null : toMs + CLOCK_SLACK_MS;
  return sql`
    c.key_id = ${keyId}
    ${from === null ? sql`` : sql`AND c.day >= ${utcDay(from)} AND c.usage_id >= ${lowestId(from)}`}
    ${to === null ? sql`` : sql`AND c.day <= ${utcDay(to)} AND c.usage_id < ${lowestId(to)}`}
    ${fromMs === null ? sql`` : sql`AND c.created_at >= ${new Date(fromMs)}`}
    ${toMs === null ? sql`` : sql`AND c.created_at < ${new Date(toMs)}`}
    ${serviceId === null ? sql`` : sql`AND c.service_id = ${serviceId}`}
    ${before === null ? sql`` : sql`AND c.day <= ${dayOfId(before)} AND c.usage_id < ${before}`}`;
}

const callColumns = (sql: Sql | Tx) => sql`
  c.usage_id AS "usageId", c.account_id AS "accountId", c.key_id AS "keyId", c.provider_id AS "providerId",
  c.service_id AS "serviceId", coalesce(s.name, '') AS "serviceName", c.method, c.path, c.status,
  c.amount AS "amountMicros", c.fee AS "feeMicros", c.free_tier AS "freeTier", c.outcome, c.latency_us AS "latencyUs",
  c.request_bytes AS "requestBytes", c.response_bytes AS "responseBytes", c.created_at AS "createdAt"`;

/**
 * Matching calls, newest first.
 *
 * @param before the last `usageId` of the previous page, or null for the first page
 */
export async function selectCalls(
  sql: Sql | Tx,
  filter: UsageFilter,
  before: string | null,
  limit: number,
): Promise<CallRecord[]> {
  return sql<CallRecord[]>`
    SELECT ${callColumns(sql)}
    FROM calls c LEFT JOIN services s ON s.id = c.service_id
    WHERE ${matches(sql, filter, before)}
    ORDER BY c.usage_id DESC LIMIT ${limit}`;
}

/** Sums of the matching calls that count by service, in descending order of money spent. Reads every matching call. */
export async function selectUsageByService(sql: Sql | Tx, filter: UsageFilter): Promise<ServiceUsage[]> {
  return sql<ServiceUsage[]>`
    WITH sums AS (
      SELECT c.service_id, count(*) AS calls,
             count(*) FILTER (WHERE c.free_tier AND c.outcome = 'completed') AS free_calls,
             sum(c.amount)::bigint AS spent,
             coalesce(sum(c.latency_us), 0)::bigint AS latency_sum,
             count(*) FILTER (WHERE c.latency_us > 0) AS latency_count
      FROM calls c WHERE ${matches(sql, filter, null)} AND ${sql.text(COUNTED_SQL)}
      GROUP BY c.service_id)
    SELECT t.service_id AS "serviceId", coalesce(s.name, '') AS "serviceName", t.calls, t.free_calls AS "freeCalls",
           t.spent AS "spentMicros", t.latency_sum AS "latencySumUs", t.latency_count AS "latencyCount"
    FROM sums t LEFT JOIN services s ON s.id = t.service_id
    ORDER BY t.spent DESC, t.calls DESC, t.service_id`;
}

/** Sums and one page of calls, both from one snapshot. */
export async function selectUsage(
  sql: Sql,
  filter: UsageFilter,
  before: string | null,
  limit: number,
): Promise<{ byService: ServiceUsage[]; calls: CallRecord[] }> {
  return sql.begin(
    async (tx) => ({
      byService: await selectUsageByService(tx, filter),
      calls: await selectCalls(tx, filter, before, limit),
    }),
    'ISOLATION LEVEL REPEATABLE READ READ ONLY',
  );
}

/** One call by its id. The day in the id tells in which partition the call is. */
export async function selectCall(sql: Sql, usageId: string): Promise<CallRecord | null> {
  const rows = await sql<CallRecord[]>`
    SELECT ${callColumns(sql)}
    FROM calls c LEFT JOIN services s ON s.id = c.service_id
    WHERE c.day = ${dayOfId(usageId)} AND c.usage_id = ${usageId}`;
  return rows[0] ?? null;
}

/** When the key was last used, and what it has spent in all. Reads all its calls. */
export async function selectKeyActivity(sql: Sql, keyId: string): Promise<KeyActivity> {
  const rows = await sql<KeyActivity[]>`
    SELECT max(created_at) AS "lastUsedAt", coalesce(sum(amount), 0)::bigint AS "totalSpentMicros"
    FROM calls WHERE key_id = ${keyId}`;
  return rows[0] ?? { lastUsedAt: null, totalSpentMicros: 0 };
}
