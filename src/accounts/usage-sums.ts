import { readHorizonMs } from '../ledger/retention/horizon.ts';
import type { Sql, Tx } from '../platform/postgres.ts';
import { selectAccountSums, selectSummedFrom } from './account-sums.ts';
import type { CallRow } from './call-fields.ts';
import { type DividedRange, divideRange, refusePartsOfDropped } from './divided-range.ts';
import { isOfKeys, isOfSums, MAX_KEYS, onlyKey } from './key-scope.ts';
import { type ListedSums, MAX_DAYS, MAX_KEYS_OF_DAY, type ServiceUsage } from './listed-sums.ts';
import { readWithDeadline } from './lists/deadline.ts';
import { ADDED_UP, addedUp, keyDays, keyHours, SUMS, type Sums, sumsOfCalls, within } from './sums-sql.ts';
import type { TimeRange } from './time-range.ts';
import { type HourUsage, selectHours } from './usage-hours.ts';
import { selectRefundedDays } from './usage-refunds.ts';
import { selectCalls, type UsageFilter } from './usage-sql.ts';
import { hasTagSums, selectTagDays, selectTags, type TagUsage } from './usage-tags.ts';

type UsageSums = ListedSums & {
  /** Over all calls that match. */
  readonly total: Sums;
  /** Null: there are no sums by tag for this filter. */
  readonly byTag: readonly TagUsage[] | null;
  /** The first day whose calls have records, in ms; null: all have. The sums cover all calls. */
  readonly horizonMs: number | null;
};

export type KeyActivity = {
  /** When the last recorded call through the proxy began; null when there is none. */
  readonly lastUsedAt: Date | null;
  readonly totalSpentMicros: number;
};

/** The mode for `sql.begin`: all queries of the transaction see the same calls and sums. */
const ONE_SNAPSHOT = 'ISOLATION LEVEL REPEATABLE READ READ ONLY';

const hourSums = (tx: Tx, filter: UsageFilter, range: TimeRange) => keyHours(tx, isOfFilter(tx, filter), range);

const isOfFilter = (tx: Tx, { scope, serviceId }: UsageFilter) =>
  tx`${isOfSums(tx, scope)} ${serviceId === null ? tx`` : tx`AND service_id = ${serviceId}`}`;

/**
 * The sums of whole days by key and service. If the filter is a whole account and names no service, they are found by the account's
 * keys: before `summed_from`, an account has few.
 */
const daySums = (tx: Tx, filter: UsageFilter, range: TimeRange) =>
  keyDays(tx, filter.serviceId === null ? isOfKeys(tx, filter.scope) : isOfFilter(tx, filter), range);

const noSums = (tx: Tx) => tx`SELECT service_id, key_id, day, ${tx.text(SUMS)} FROM key_days WHERE false`;

/** Days in two parts: those before an instant, and those after it. */
function splitAt(days: TimeRange | null, ms: number | null): { before: TimeRange | null; after: TimeRange | null } {
  if (days === null || ms === null || (days.toMs !== null && days.toMs <= ms)) return { before: days, after: null };
  if (days.fromMs !== null && days.fromMs >= ms) return { before: null, after: days };
  return { before: { fromMs: days.fromMs, toMs: ms }, after: { fromMs: ms, toMs: days.toMs } };
}

/** A row has the sums of a service, of a key, of a day, or of a key on a day. */
type SumsRow = Sums & {
  readonly serviceId: string | null;
  readonly keyId: string | null;
  readonly day: string | null;
} & {
  readonly serviceName: string | null;
  readonly label: string | null;
  readonly parentKeyId: string | null;
};

const isOfKey = (row: SumsRow): row is SumsRow & { keyId: string } => row.keyId !== null;

/**
 * Sums of the matching calls that count, by service, by key and by day, from one reading of the stored sums. A key with a million
 * calls has as few rows as one that made a single call on each of those days.
 */
async function selectSums(timed: () => Promise<Tx>, filter: UsageFilter): Promise<UsageSums> {
  const tx = await timed();
  if (filter.tag !== null && hasTagSums(filter)) {
    const horizonMs = await readHorizonMs(tx);
    return { ...(await selectSumsOfTag(await timed(), filter, horizonMs)), horizonMs };
  }
  const { scope, serviceId } = filter;
  // A single service of an account is looked up in `key_days`.
  const hasOwnSums = scope.kind !== 'key' && serviceId === null;
  const [horizonMs, summedFrom] = await Promise.all([
    readHorizonMs(tx),
    hasOwnSums ? selectSummedFrom(tx, scope) : null,
  ]);
  refusePartsOfDropped(filter, horizonMs);
  const { days, hours, rest } = divideRange(filter);
  const { before, after } = splitAt(days, summedFrom);
  const isOfWholeDays = hours.length === 0 && rest.length === 0;
  await timed();
  const [byTag, listed] = await Promise.all([
    hasTagSums(filter) ? selectTags(tx, filter, horizonMs) : null,
    hasOwnSums && after !== null && before === null && isOfWholeDays
      ? selectAccountSums(timed, scope, after)
      : selectFromParts(tx, filter, { hours, rest, before, after }),
  ]);
  return { total: addedUp(listed.byService), ...listed, byTag, horizonMs };
}

type Parts = Pick<DividedRange, 'hours' | 'rest'> & {
  readonly before: TimeRange | null;
  readonly after: TimeRange | null;
};

/** Adds up the parts of a range. @param parts `after`: the days for which an account has sums of its own, which are read instead */
async function selectFromParts(
  tx: Tx,
  filter: UsageFilter,
  { hours, rest, before, after }: Parts,
): Promise<ListedSums> {
  const { scope } = filter;
  const parts = [
    // Sums of a key or a service include all its calls, whatever their tags.
    ...rest.map((range) => sumsOfCalls(tx, { ...filter, ...range, tag: null })),
    ...hours.map((range) => hourSums(tx, filter, range)),
    before === null ? noSums(tx) : daySums(tx, filter, before),
    ...(after !== null && scope.kind !== 'account' ? [daySums(tx, filter, after)] : []),
  ];
  // With a generic plan, the sums of an account with many keys took 1.7 times as long, and those of a key started parallel workers: 25 ms
  // instead of 14.
  const ask = rest.length > 0 || before !== null || after !== null ? tx.anew : tx;
  // The rows that sums by account add to a part. They are few when keys and services are many.
  const ofAccount = (table: 'account_days' | 'account_key_days', query: (from: ReturnType<Tx>) => ReturnType<Tx>) =>
    scope.kind !== 'account' || after === null
      ? tx``
      : tx`UNION ALL ${query(tx`${tx.text(SUMS)} FROM ${tx.text(table)} WHERE account_id = ${scope.accountId} ${within(tx, 'day', after)}`)}`;
  const plus = (column: string, table: 'account_days' | 'account_key_days') =>
    ofAccount(table, (from) => tx`SELECT ${tx.text(column)}, ${from}`);
  // Days and keys are computed from the sums by key and day, which are few when there are many services. Grouping sets would sort
  // all rows by the text of their keys, which takes three times as long. The days of the keys that spent the most are looked up one
  // by one in a primary key (LIMIT 1); with a join, Postgres would read all rows of the range a second time.
  const rows = await ask<SumsRow[]>`
    WITH sums AS MATERIALIZED (${parts.map((part, i) => (i === 0 ? part : tx`UNION ALL ${part}`))}
    ), by_key_day AS MATERIALIZED (SELECT key_id, day, ${tx.text(ADDED_UP)} FROM sums GROUP BY key_id, day
    ), by_key AS (
      SELECT key_id, ${tx.text(ADDED_UP)}
      FROM (SELECT key_id, ${tx.text(SUMS)} FROM by_key_day ${plus('key_id', 'account_key_days')}) AS of_keys
      GROUP BY key_id ORDER BY spent DESC, calls DESC, key_id LIMIT ${MAX_KEYS}
    ), by_day AS (
      SELECT day, ${tx.text(ADDED_UP)}
      FROM (SELECT day, ${tx.text(SUMS)} FROM by_key_day ${plus('day', 'account_days')}) AS of_days
      GROUP BY day ORDER BY day DESC LIMIT ${MAX_DAYS}
    ), most AS (SELECT key_id FROM by_key ORDER BY spent DESC, calls DESC, key_id LIMIT ${MAX_KEYS_OF_DAY}
    ), all_sums AS (
      SELECT service_id, NULL AS key_id, NULL::date AS day, ${tx.text(ADDED_UP)}
      FROM (SELECT service_id, ${tx.text(SUMS)} FROM sums ${plus('service_id', 'account_days')}) AS of_services
      GROUP BY service_id
      UNION ALL SELECT NULL, key_id, NULL, ${tx.text(SUMS)} FROM by_key
      UNION ALL SELECT NULL, NULL, day, ${tx.text(SUMS)} FROM by_day
      UNION ALL SELECT NULL, key_id, day, ${tx.text(SUMS)} FROM by_key_day
        WHERE key_id IN (SELECT key_id FROM most) AND day >= (SELECT min(day) FROM by_day)
      ${ofAccount(
        'account_key_days',
        (from) => tx`
        SELECT NULL, of_most.key_id, of_most.day, ${tx.text(SUMS)}
        FROM (SELECT most.key_id, by_day.day FROM by_day CROSS JOIN most) AS of_most
        CROSS JOIN LATERAL (SELECT ${from} AND day = of_most.day AND key_id = of_most.key_id LIMIT 1) AS stored`,
      )}
    )
    SELECT t.service_id AS "serviceId", coalesce(s.name, '') AS "serviceName", t.key_id AS "keyId", k.label,
           k.ancestors[cardinality(k.ancestors)] AS "parentKeyId", to_char(t.day, 'YYYY-MM-DD') AS day,
           t.calls, t.free_calls AS "freeCalls", t.spent AS "spentMicros", t.latency_sum_us AS "latencySumUs",
           t.latency_count AS "latencyCount"
    FROM all_sums t LEFT JOIN services s ON s.id = t.service_id LEFT JOIN api_keys k ON k.key_id = t.key_id
    ORDER BY t.day DESC, t.spent DESC, t.calls DESC, t.service_id, t.key_id`;
  const keysByDay = new Map<string, (SumsRow & { keyId: string })[]>();
  for (const row of rows) {
    if (row.day === null) continue;
    const keys = keysByDay.get(row.day) ?? [];
    if (isOfKey(row)) keys.push(row);
    keysByDay.set(row.day, keys);
  }
  return {
    byService: rows.filter((row): row is SumsRow & ServiceUsage => row.serviceId !== null),
    byKey: rows.filter((row) => row.day === null).filter(isOfKey),
    byDay: rows
      .filter((row): row is SumsRow & { day: string } => row.keyId === null && row.day !== null)
      .map((row) => ({ ...row, byKey: keysByDay.get(row.day) ?? [] })),
  };
}

/** Sums by tag are kept neither by service nor by key. */
async function selectSumsOfTag(tx: Tx, filter: UsageFilter, horizonMs: number | null) {
  const days = await selectTagDays(tx, filter, horizonMs);
  const total = addedUp(days);
  const byDay = days.slice(0, MAX_DAYS).map((sums) => ({ ...sums, byKey: [] }));
  const byTag = days.length === 0 ? [] : [{ ...total, tag: filter.tag as string }];
  return { total, byService: [], byKey: [], byDay, byTag };
}

/** Sums and one page of calls, both from one snapshot. */
export function selectUsage(
  sql: Sql,
  filter: UsageFilter,
  before: string | null,
  limit: number,
): Promise<
  UsageSums & {
    readonly byHour: readonly HourUsage[] | null;
    readonly refundedDays: ReadonlyMap<string, number> | null;
    readonly calls: readonly CallRow[];
  }
> {
  return readSnapshot(sql, filter, async (timed) => {
    const sums = await selectSums(timed, filter);
    return {
      ...sums,
      byHour: await selectHours(timed, filter, sums),
      refundedDays: await selectRefundedDays(timed, filter),
      calls: await selectCalls(timed, filter, before, limit),
    };
  });
}

/** One page of calls without sums. */
export function selectCallPage(
  sql: Sql,
  filter: UsageFilter,
  before: string | null,
  limit: number,
): Promise<CallRow[]> {
  return readSnapshot(sql, filter, (timed) => selectCalls(timed, filter, before, limit));
}

/**
 * No index covers outcomes, or the tags of a key, and an account may have very many keys. So a search for few among very many calls
 * ends at a deadline.
 */
function readSnapshot<T>(
  sql: Sql,
  { scope, outcome, tag }: UsageFilter,
  read: (timed: () => Promise<Tx>) => Promise<T>,
): Promise<T> {
  return scope.kind === 'key' && outcome === null && tag === null
    ? sql.begin((tx) => read(async () => tx), ONE_SNAPSHOT)
    : readWithDeadline(sql, read, ONE_SNAPSHOT);
}

/** When the key's last call known to the sums began; its record may have been dropped. */
async function selectLastCounted(tx: Tx, keyId: string): Promise<Date | null> {
  const rows = await tx<{ lastCallAt: Date }[]>`
    SELECT last_call_at AS "lastCallAt" FROM key_hours WHERE key_id = ${keyId} ORDER BY hour DESC, last_call_at DESC LIMIT 1`;
  return rows[0]?.lastCallAt ?? null;
}

/** When the key was last used, and its total spending. */
export function selectKeyActivity(sql: Sql, keyId: string): Promise<KeyActivity> {
  const filter = { scope: onlyKey(keyId), serviceId: null, fromMs: null, toMs: null, outcome: null, tag: null };
  return sql.begin(async (tx) => {
    const { total } = await selectSums(async () => tx, filter);
    const [last] = await selectCalls(async () => tx, filter, null, 1);
    const lastUsedAt = last?.created_at ?? (await selectLastCounted(tx, keyId));
    return { lastUsedAt, totalSpentMicros: total.spentMicros };
  }, ONE_SNAPSHOT);
}
