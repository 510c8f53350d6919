import { OTHER_TAG, summedAs } from '../ledger/rollups/tag-sums.ts';
import { COUNTED_SQL } from '../ledger/usage-event.ts';
import { dayOfId, timeOfId } from '../platform/ids.ts';
import type { Sql, Tx } from '../platform/postgres.ts';
import { CALL_SELECT, type CallRow } from './call-fields.ts';
import { isOfKeys, type KeyScope, keysOf, MAX_KEYS, type SeveralKeys } from './key-scope.ts';
import { clampTime, MAX_TIME_MS, type TimeRange, utcDay } from './time-range.ts';

/** The outcomes by which a list of calls can be filtered. `refunded`: for any reason, calls whose gateway died included. */
export const OUTCOMES = ['completed', 'refunded'] as const;

/** Which calls to select. */
export type UsageFilter = TimeRange & {
  readonly scope: KeyScope;
  readonly serviceId: string | null;
  /** Applies to the list only: sums cover all outcomes. */
  readonly outcome: (typeof OUTCOMES)[number] | null;
  /** Applies to sums only if they cover a whole account (usage-tags.ts). */
  readonly tag: string | null;
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

/** Whether a call can have this id. False if its time is later than `MAX_TIME_MS`: no list reaches that day. */
export function isUsageTime(usageId: string): boolean {
  return timeOfId(usageId) <= MAX_TIME_MS;
}

/** The condition on `calls c` that selects the calls of the filter, of any outcome. */
export const matches = (sql: Sql | Tx, filter: UsageFilter) =>
  sql`${isOfScope(sql, filter)} ${restricted(sql, filter, null)}`;

/** Calls with a tag are found by their account: the index of tags begins with it. */
function isOfScope(sql: Sql | Tx, { scope, tag }: UsageFilter) {
  if (scope.kind === 'key' || tag === null) return isOfKeys(sql, scope);
  return sql`c.account_id = ${scope.accountId} ${scope.kind === 'branch' ? sql`AND ${isOfKeys(sql, scope)}` : sql``}`;
}

/** SQL for the tag under which call `c` is summed. */
export const SUMMED_AS = summedAs('c', "(c.created_at AT TIME ZONE 'UTC')::date");

/**
 * The calls with this tag. For the tag `other`, also those that its sums include: counted calls whose tag has no sums of its own in
 * their month.
 */
const isTagged = (sql: Sql | Tx, tag: string) =>
  tag === OTHER_TAG
    ? sql`(c.tag = ${tag} OR c.tag IS NOT NULL AND ${sql.text(`${SUMMED_AS} = '${OTHER_TAG}' AND ${COUNTED_SQL}`)})`
    : sql`c.tag = ${tag}`;

/** All conditions except the keys. If `before` is not null, only calls before this one. */
function restricted(sql: Sql | Tx, filter: UsageFilter, before: string | null) {
  const { serviceId, tag } = filter;
  return sql`
    ${madeWithin(sql, filter, before)}
    ${serviceId === null ? sql`` : sql`AND c.service_id = ${serviceId}`}
    ${tag === null ? sql`` : sql`AND ${isTagged(sql, tag)}`}`;
}

/** The condition on `calls c` that selects those of a time range; if `before` is not null, only calls before this one. */
export const madeWithin = (sql: Sql | Tx, range: TimeRange, before: string | null = null) => sql`
  ${withinIds(sql, range, before)}
  ${range.fromMs === null ? sql`` : sql`AND c.created_at >= ${new Date(range.fromMs)}`}
  ${range.toMs === null ? sql`` : sql`AND c.created_at < ${new Date(range.toMs)}`}`;

/** The ids that calls of the range may have; if `before` is not null, only ids before it. */
function withinIds(sql: Sql | Tx, { fromMs, toMs }: TimeRange, before: string | null) {
  const from = fromMs === null ? null : fromMs - CLOCK_SLACK_MS;
  const to = toMs === null ? null : toMs + CLOCK_SLACK_MS;
  return sql`
    ${from === null ? sql`` : sql`AND c.day >= ${utcDay(from)} AND c.usage_id >= ${lowestId(from)}`}
    ${to === null ? sql`` : sql`AND c.day <= ${utcDay(to)} AND c.usage_id < ${lowestId(to)}`}
    ${before === null ? sql`` : sql`AND c.day <= ${dayOfId(before)} AND c.usage_id < ${before}`}`;
}

const DAY_MS = 86_400_000;
/**
 * How far back the first queries for a page of calls reach, in days, and how much further each following query reaches. So the
 * calls of an active key are found in the newest partitions. No query covers more than `WINDOW_DAYS` partitions: planning 64 takes
 * Postgres 3 to 6 ms and 260 locks, a thousand took 100 to 300 ms and 4 400 locks.
 */
const FIRST_REACHES_DAYS = [2, 16, 64];
const WINDOW_DAYS = 64;
/**
 * For several keys the newest partition is searched first: each additional key takes longer than additional partitions for one key.
 */
const REACHES_OF_KEYS_DAYS = [1 / 24, ...FIRST_REACHES_DAYS];

const ofOutcome = (tx: Tx, outcome: UsageFilter['outcome']) =>
  outcome === null
    ? tx``
    : outcome === 'completed'
      ? tx`AND c.outcome = 'completed'`
      : tx`AND c.outcome <> 'completed'`;

/**
 * Matching calls, newest first.
 *
 * @param timed the transaction for the next query; there may be several
 * @param before the last `usageId` of the previous page, or null for the first page
 */
export async function selectCalls(
  timed: () => Promise<Tx>,
  filter: UsageFilter,
  before: string | null,
  limit: number,
): Promise<CallRow[]> {
  const nowMs = Date.now();
  const newestMs = Math.min(filter.toMs ?? MAX_TIME_MS, before === null ? MAX_TIME_MS : timeOfId(before), nowMs);
  // The index of tags finds the calls of one tag. Those of the tag `other` are searched among all calls that have a tag.
  const isIndexed = filter.scope.kind === 'key' || (filter.tag !== null && filter.tag !== OTHER_TAG);
  const reaches = isIndexed ? FIRST_REACHES_DAYS : REACHES_OF_KEYS_DAYS;
  const found: CallRow[] = [];
  let endMs: number | null = null;
  const { scope } = filter;
  if (scope.kind !== 'key' && !isIndexed) {
    const { keys, endOfCallsMs } = await selectExtent(await timed(), scope, nowMs);
    if (newestMs === nowMs) endMs = endOfCallsMs;
    if (scope.kind === 'account' && filter.tag === null && keys >= MANY_KEYS) {
      const window = { fromMs: beginOf(newestMs, FIRST_REACHES_DAYS[0] as number), toMs: endMs };
      const among = Math.min(keys, MAX_KEYS) * AMONG_PER_KEY;
      const own = await selectAmongNewest(await timed(), scope.accountId, { filter, before, limit }, window, among);
      if (own.length === limit) return own;
    }
  }
  let firstDay = null as string | null;
  for (let query = 0; ; query++) {
    if (query === reaches.length) firstDay = await selectFirstDay(await timed());
    const days = reaches[query] ?? WINDOW_DAYS * (query - reaches.length + 2);
    // Calls before the first partition, if any, are in the default partition.
    const isBehindAll = firstDay !== null && endMs !== null && utcDay(endMs) <= firstDay;
    const isLast = isBehindAll || days * DAY_MS > newestMs - (filter.fromMs ?? 0);
    const beginMs = isLast ? null : beginOf(newestMs, days);
    const page = { filter, before, limit: limit - found.length };
    found.push(...(await selectWindow(timed, page, { fromMs: beginMs, toMs: endMs })));
    if (found.length === limit || isLast) return found;
    endMs = beginMs;
  }
}

/**
 * How many keys the account has, and where calls end. A window that ends now leaves out the partitions of coming days, in each of
 * which every key would be searched. Null: those partitions have calls, because some gateway's clock is ahead.
 */
async function selectExtent(tx: Tx, { accountId }: SeveralKeys, nowMs: number) {
  const endMs = (Math.floor((nowMs + CLOCK_SLACK_MS) / DAY_MS) + 1) * DAY_MS;
  const [row] = await tx.anew<{ keys: number; isAhead: boolean }[]>`
    SELECT (SELECT count(*) FROM api_keys WHERE account_id = ${accountId}) AS keys,
           EXISTS (SELECT FROM calls WHERE day >= ${utcDay(endMs)}) AS "isAhead"`;
  return { keys: row?.keys ?? 0, endOfCallsMs: row?.isAhead === false ? endMs : null };
}

/** From this many keys, the calls of an account are first searched among the newest of all accounts. */
const MANY_KEYS = 200;
/**
 * How many calls are searched for each key of the account. If they do not fill the page, this has added a tenth to the time of
 * searching key by key.
 */
const AMONG_PER_KEY = 2;

/**
 * The page's calls among this many of the newest calls of all accounts in the window. If they fill the page, they are the whole
 * page.
 */
function selectAmongNewest(
  tx: Tx,
  accountId: string,
  page: Page,
  window: TimeRange,
  among: number,
): Promise<CallRow[]> {
  const { filter, before, limit } = page;
  return tx.anew<CallRow[]>`
    SELECT ${tx.text(CALL_SELECT)} FROM (
      SELECT * FROM (
        SELECT * FROM calls c WHERE true ${withinIds(tx, filter, before)} ${ofWindow(tx, window)} ORDER BY c.day DESC, c.usage_id DESC LIMIT ${among}
      ) AS c
      WHERE c.account_id = ${accountId} ${restricted(tx, filter, before)} ${ofOutcome(tx, filter.outcome)}
      ORDER BY c.usage_id DESC LIMIT ${limit}
    ) AS c LEFT JOIN services s ON s.id = c.service_id
    ORDER BY c.usage_id DESC`;
}

/** Windows begin at a day boundary, so that each partition is in one of them. */
function beginOf(newestMs: number, days: number): number {
  const ms = newestMs - days * DAY_MS;
  return days < 1 ? ms : Math.floor(ms / DAY_MS) * DAY_MS;
}

type Page = { readonly filter: UsageFilter; readonly before: string | null; readonly limit: number };

/** Matching calls with ids in the window, newest first. Those of several keys are searched key by key, unless they have a tag. */
async function selectWindow(timed: () => Promise<Tx>, page: Page, window: TimeRange): Promise<CallRow[]> {
  const { scope, tag } = page.filter;
  if (scope.kind !== 'key' && tag === null) {
    const ids = await selectIdsOfKeys(timed, scope, page, window);
    return ids.length === 0 ? [] : selectById(await timed(), ids);
  }
  const tx = await timed();
  const found = newest(tx, '*', isOfScope(tx, page.filter), page, window, tx`${page.limit}`);
  return tx.anew<CallRow[]>`
    SELECT ${tx.text(CALL_SELECT)} FROM (${found}) AS c LEFT JOIN services s ON s.id = c.service_id
    ORDER BY c.usage_id DESC`;
}

/** The newest of the page's calls in the window that belong to the keys in the condition. */
function newest(
  tx: Tx,
  columns: '*' | 'usage_id',
  ofKey: ReturnType<Tx>,
  { filter, before }: Page,
  window: TimeRange,
  limit: ReturnType<Tx>,
) {
  return tx`
    SELECT ${tx.text(columns)} FROM calls c
    WHERE ${ofKey} ${restricted(tx, filter, before)} ${ofOutcome(tx, filter.outcome)}
      ${ofWindow(tx, window)}
    ORDER BY c.usage_id DESC LIMIT ${limit}`;
}

const ofWindow = (tx: Tx, { fromMs, toMs }: TimeRange) => tx`
  ${fromMs === null ? tx`` : tx`AND c.day >= ${utcDay(fromMs)} AND c.usage_id >= ${lowestId(fromMs)}`}
  ${toMs === null ? tx`` : tx`AND c.day <= ${utcDay(toMs - 1)} AND c.usage_id < ${lowestId(toMs)}`}`;

/**
 * The ids of the newest calls of several keys. An index has the calls of each key in order, but no index has the calls of all. So
 * each key is asked for a few of its newest calls: more than the page can take in all, and at least two. The last one that fits the
 * page bounds it: older calls are not on it. Only a key whose few calls all fit may have more that fit, and is asked for these.
 */
async function selectIdsOfKeys(
  timed: () => Promise<Tx>,
  scope: SeveralKeys,
  page: Page,
  window: TimeRange,
): Promise<string[]> {
  const { limit } = page;
  const tx = await timed();
  const few = newest(tx, 'usage_id', tx`c.key_id = keys.key_id`, page, window, tx`(SELECT calls FROM few)`);
  const found = await tx.anew<{ id: string; keyId: string; hasMore: boolean }[]>`
    WITH keys AS MATERIALIZED (${keysOf(tx, scope)}), few AS (SELECT ${limit} / count(*) + 2 AS calls FROM keys)
    SELECT usage_id AS id, key_id AS "keyId", count(*) OVER (PARTITION BY key_id) = (SELECT calls FROM few) AS "hasMore"
    FROM (
      SELECT of_key.usage_id, keys.key_id FROM keys CROSS JOIN LATERAL (${few}) AS of_key
      ORDER BY of_key.usage_id DESC LIMIT ${limit}
    ) AS page ORDER BY usage_id DESC`;
  const ids = found.map(({ id }) => id);
  const keysWithMore = [...new Set(found.filter(({ hasMore }) => hasMore).map(({ keyId }) => keyId))];
  if (keysWithMore.length === 0) return ids;
  const again = await timed();
  const bound = ids.length < limit ? again`` : again`AND c.usage_id >= ${ids.at(-1) as string}`;
  const rest = newest(again, 'usage_id', again`c.key_id = keys.key_id ${bound}`, page, window, again`${limit}`);
  const more = await again.anew<{ id: string }[]>`
    SELECT of_key.usage_id AS id FROM unnest(${keysWithMore}::text[]) AS keys(key_id) CROSS JOIN LATERAL (${rest}) AS of_key
    ORDER BY id DESC LIMIT ${limit}`;
  // As text, ids have the same order as in Postgres.
  return [...new Set([...ids, ...more.map(({ id }) => id)])].sort().reverse().slice(0, limit);
}

/** These calls, newest first. The day in an id is the day of its partition. */
function selectById(tx: Tx, ids: readonly string[]): Promise<CallRow[]> {
  const days = ids.map(dayOfId);
  return tx.anew<CallRow[]>`
    SELECT ${tx.text(CALL_SELECT)} FROM unnest(${days}::date[], ${ids}::uuid[]) AS page(day, id)
    JOIN calls c ON c.day = page.day AND c.usage_id = page.id AND c.day = ANY(${[...new Set(days)]}::date[])
    LEFT JOIN services s ON s.id = c.service_id
    ORDER BY c.usage_id DESC`;
}

/**
 * The day of the oldest partition. It is taken from the partition's name, for which Postgres has an index: reading the bounds of a
 * thousand partitions takes 40 ms. A partition with another name is read last, together with the default partition.
 */
async function selectFirstDay(tx: Tx): Promise<string> {
  const rows = await tx<{ day: string }[]>`
    SELECT to_char(to_date(substr(relname, 7), 'YYYYMMDD'), 'YYYY-MM-DD') AS day FROM pg_class
    WHERE relispartition AND relkind = 'r' AND relname ~ '^calls_[0-9]{8}$' ORDER BY relname LIMIT 1`;
  return rows[0]?.day ?? utcDay(MAX_TIME_MS);
}

/** One call by its id. The day in the id tells which partition has it. */
export async function selectCall(sql: Sql, usageId: string): Promise<CallRow | null> {
  const rows = await sql.anew<CallRow[]>`
    SELECT ${sql.text(CALL_SELECT)}
    FROM calls c LEFT JOIN services s ON s.id = c.service_id
    WHERE c.day = ${dayOfId(usageId)} AND c.usage_id = ${usageId}`;
  return rows[0] ?? null;
}
