import { OTHER_TAG, summedAs } from '../ledger/rollups/tag-sums.ts';
import { COUNTED_SQL } from '../ledger/usage-event.ts';
import { dayOfId, timeOfId } from '../platform/ids.ts';
import type { Sql, Tx } from '../platform/postgres.ts';
import { CALL_SELECT, type CallRow } from './call-fields.ts';
import { isOfKeys, type KeyScope, keysOf, MAX_KEYS, type SeveralKeys } from './key-scope.ts';
import { clampTime, MAX_TIME_MS, type TimeRange, utcDay } from './time-range.ts';

/** What a list of calls may be asked for. `refunded`: for any reason, calls whose gateway died included. */
export const OUTCOMES = ['completed', 'refunded'] as const;

/** Which calls are meant. */
export type UsageFilter = TimeRange & {
  readonly scope: KeyScope;
  readonly serviceId: string | null;
  /** Of the list only: sums are of all outcomes. */
  readonly outcome: (typeof OUTCOMES)[number] | null;
  /** Of sums only where they are of a whole account (usage-tags.ts). */
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

/** Whether a call can have this id. False when its time is later than `MAX_TIME_MS`: no list reaches its day. */
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
 * The calls with this tag; of the tag `other` those whose sums it has: counted calls with a tag that has no sums in their month, and all
 * with this tag itself.
 */
const isTagged = (sql: Sql | Tx, tag: string) =>
  tag === OTHER_TAG
    ? sql`(c.tag = ${tag} OR c.tag IS NOT NULL AND ${sql.text(`${SUMMED_AS} = '${OTHER_TAG}' AND ${COUNTED_SQL}`)})`
    : sql`c.tag = ${tag}`;

/** All of that but the keys; not null `before`: only calls before this one. */
function restricted(sql: Sql | Tx, filter: UsageFilter, before: string | null) {
  const { fromMs, toMs, serviceId, tag } = filter;
  return sql`
    ${withinIds(sql, filter, before)}
    ${fromMs === null ? sql`` : sql`AND c.created_at >= ${new Date(fromMs)}`}
    ${toMs === null ? sql`` : sql`AND c.created_at < ${new Date(toMs)}`}
    ${serviceId === null ? sql`` : sql`AND c.service_id = ${serviceId}`}
    ${tag === null ? sql`` : sql`AND ${isTagged(sql, tag)}`}`;
}

/** The ids that calls of the range may have, before this one if it is not null. */
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
 * How far back the first queries for a page of calls reach, in days, and how much further each of the next. So the calls of an active
 * key are found in the newest partitions. No query reaches more partitions than `WINDOW_DAYS`: 64 take Postgres 3 to 6 ms to plan and
 * 260 locks, and a thousand took 100 to 300 ms and 4 400 locks.
 */
const FIRST_REACHES_DAYS = [2, 16, 64];
const WINDOW_DAYS = 64;
/** Several keys are looked for in the newest partition first: each of them takes longer than one key in several partitions. */
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
  // The index of tags leads to the calls of one tag. Those of the tag `other` are looked for among all that have a tag.
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
    // Behind the first partition there are at most calls in the default partition.
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
 * How many keys the account has, and where calls end: the partitions of the days to come are left out of a window that ends now, in each
 * of which each of several keys would be looked for. Null: there are calls in them, so some gateway's clock is ahead.
 */
async function selectExtent(tx: Tx, { accountId }: SeveralKeys, nowMs: number) {
  const endMs = (Math.floor((nowMs + CLOCK_SLACK_MS) / DAY_MS) + 1) * DAY_MS;
  const [row] = await tx.anew<{ keys: number; isAhead: boolean }[]>`
    SELECT (SELECT count(*) FROM api_keys WHERE account_id = ${accountId}) AS keys,
           EXISTS (SELECT FROM calls WHERE day >= ${utcDay(endMs)}) AS "isAhead"`;
  return { keys: row?.keys ?? 0, endOfCallsMs: row?.isAhead === false ? endMs : null };
}

/** From how many keys on the calls of an account are first looked for among the newest of all accounts. */
const MANY_KEYS = 200;
/**
 * How many calls are looked through for each of its keys. If they do not fill the page, this has added a tenth to the time that it takes to
 * look for calls key by key; an account that makes a twentieth of all calls has its page of 100 in the 2 000 of a thousand keys.
 */
const AMONG_PER_KEY = 2;

/** The page's calls among so many of the newest calls of all accounts in the window; they are all of the page if they fill it. */
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

/** Windows of days begin with a day: each partition is in one of them. */
function beginOf(newestMs: number, days: number): number {
  const ms = newestMs - days * DAY_MS;
  return days < 1 ? ms : Math.floor(ms / DAY_MS) * DAY_MS;
}

type Page = { readonly filter: UsageFilter; readonly before: string | null; readonly limit: number };

/** Matching calls whose ids are of the window, newest first. Those of several keys are found key by key, unless they have a tag. */
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

/** The newest of the page's calls in the window, and of the keys that the condition names. */
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
 * The ids of the newest calls of several keys. An index has the calls of each key in order, but none those of all. So each key is asked
 * for its few newest calls: for more of them than the page can take, but for two at least. The last that fits the page bounds it: older calls
 * are not on it. Only a key all of whose few calls fit may have more that do, and is asked for these.
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

/** These calls, newest first. The day in an id is that of its partition. */
function selectById(tx: Tx, ids: readonly string[]): Promise<CallRow[]> {
  const days = ids.map(dayOfId);
  return tx.anew<CallRow[]>`
    SELECT ${tx.text(CALL_SELECT)} FROM unnest(${days}::date[], ${ids}::uuid[]) AS page(day, id)
    JOIN calls c ON c.day = page.day AND c.usage_id = page.id AND c.day = ANY(${[...new Set(days)]}::date[])
    LEFT JOIN services s ON s.id = c.service_id
    ORDER BY c.usage_id DESC`;
}

/**
 * The day of the oldest partition. By its name, which an index of Postgres has: reading the bounds of a thousand takes 40 ms. A
 * partition with another name is read with what is left behind all others.
 */
async function selectFirstDay(tx: Tx): Promise<string> {
  const rows = await tx<{ day: string }[]>`
    SELECT to_char(to_date(substr(relname, 7), 'YYYYMMDD'), 'YYYY-MM-DD') AS day FROM pg_class
    WHERE relispartition AND relkind = 'r' AND relname ~ '^calls_[0-9]{8}$' ORDER BY relname LIMIT 1`;
  return rows[0]?.day ?? utcDay(MAX_TIME_MS);
}

/** One call by its id. The day in the id tells in which partition the call is. */
export async function selectCall(sql: Sql, usageId: string): Promise<CallRow | null> {
  const rows = await sql.anew<CallRow[]>`
    SELECT ${sql.text(CALL_SELECT)}
    FROM calls c LEFT JOIN services s ON s.id = c.service_id
    WHERE c.day = ${dayOfId(usageId)} AND c.usage_id = ${usageId}`;
  return rows[0] ?? null;
}
