import type { Tx } from '../platform/postgres.ts';
import { isOfKeys, MAX_KEYS, type SeveralKeys } from './key-scope.ts';
import { type DayUsage, type KeyUsage, type ListedSums, MAX_DAYS, MAX_KEYS_OF_DAY } from './listed-sums.ts';
import { ADDED_UP, keyDays, NAMED_SUMS, SUMS, type Sums, within } from './sums-sql.ts';
import type { TimeRange } from './time-range.ts';

// Reads sums of whole days, for an account that has sums of its own (`accounts.summed_from`), or for one of its keys and the keys
// below it. Each list has its own statement, on the table with the fewest rows for it. Each statement returns only the columns of
// its list, because Postgres and this process take as long to transfer a thousand rows as to add up thirty thousand.

/** The first day, in ms, for which the account has sums of its own; null: it has none. */
export async function selectSummedFrom(tx: Tx, { accountId }: SeveralKeys): Promise<number | null> {
  const rows = await tx<{ day: string | null }[]>`
    SELECT summed_from::text AS day FROM accounts WHERE id = ${accountId}`;
  const day = rows[0]?.day ?? null;
  return day === null ? null : Date.parse(day);
}

/** @param days  not before the first day with sums of the account */
export async function selectAccountSums(
  timed: () => Promise<Tx>,
  scope: SeveralKeys,
  days: TimeRange,
): Promise<ListedSums> {
  const tx = await timed();
  // Sent together, in one round trip. This needs prepared statements.
  const [byService, ofDays, byKey] = await Promise.all([
    selectByService(tx, scope, days),
    selectByDay(tx, scope, days),
    selectByKey(tx, scope, days),
  ]);
  return { byService, byKey, byDay: await withKeys(await timed(), scope, ofDays, byKey.slice(0, MAX_KEYS_OF_DAY)) };
}

/** For an account, reads its own sums; for a key and those below it, the sums by key. */
function selectByService(tx: Tx, scope: SeveralKeys, days: TimeRange): Promise<ListedSums['byService'][number][]> {
  const rows =
    scope.kind === 'account'
      ? tx`SELECT service_id, ${tx.text(SUMS)} FROM account_days WHERE account_id = ${scope.accountId} ${within(tx, 'day', days)}`
      : keyDays(tx, isOfKeys(tx, scope), days);
  return tx<ListedSums['byService'][number][]>`
    SELECT service_id AS "serviceId", coalesce((SELECT name FROM services s WHERE s.id = t.service_id), '') AS "serviceName",
           ${tx.text(NAMED_SUMS)}
    FROM (
      SELECT service_id, ${tx.text(ADDED_UP)} FROM (${rows}) AS rows GROUP BY service_id
    ) AS t
    ORDER BY t.spent DESC, t.calls DESC, t.service_id`;
}

/** The condition on `account_key_days`, whose primary key begins with the account and the day. */
const isOfDays = (tx: Tx, scope: SeveralKeys, days: TimeRange) => tx`
  account_id = ${scope.accountId} ${scope.kind === 'branch' ? tx`AND ${isOfKeys(tx, scope)}` : tx``} ${within(tx, 'day', days)}`;

type SumsOfDay = Sums & Pick<DayUsage, 'day'>;

function selectByDay(tx: Tx, scope: SeveralKeys, days: TimeRange): Promise<SumsOfDay[]> {
  const table = scope.kind === 'account' ? tx`account_days` : tx`account_key_days`;
  return tx<SumsOfDay[]>`
    SELECT to_char(day, 'YYYY-MM-DD') AS day, ${tx.text(NAMED_SUMS)}
    FROM (SELECT day, ${tx.text(ADDED_UP)} FROM ${table} WHERE ${isOfDays(tx, scope, days)} GROUP BY day) AS t
    ORDER BY t.day DESC LIMIT ${MAX_DAYS}`;
}

function selectByKey(tx: Tx, scope: SeveralKeys, days: TimeRange): Promise<KeyUsage[]> {
  return tx<KeyUsage[]>`
    SELECT t.key_id AS "keyId", k.label, k.ancestors[cardinality(k.ancestors)] AS "parentKeyId", ${tx.text(NAMED_SUMS)}
    FROM (
      SELECT key_id, ${tx.text(ADDED_UP)} FROM account_key_days WHERE ${isOfDays(tx, scope, days)}
      GROUP BY key_id ORDER BY spent DESC, calls DESC, key_id LIMIT ${MAX_KEYS}
    ) AS t LEFT JOIN api_keys k ON k.key_id = t.key_id
    ORDER BY t.spent DESC, t.calls DESC, t.key_id`;
}

/** The days with sums of these keys, looked up one by one in the primary key. */
async function withKeys(
  tx: Tx,
  { accountId }: SeveralKeys,
  days: readonly SumsOfDay[],
  keys: readonly KeyUsage[],
): Promise<DayUsage[]> {
  const rows = await tx<(Sums & { day: string; keyId: string })[]>`
    SELECT to_char(day, 'YYYY-MM-DD') AS day, key_id AS "keyId", ${tx.text(NAMED_SUMS)}
    FROM (
      SELECT day, key_id, ${tx.text(SUMS)} FROM account_key_days
      WHERE account_id = ${accountId} AND day = ANY(${days.map(({ day }) => day)}::date[]) AND key_id = ANY(${keys.map(({ keyId }) => keyId)}::text[])
    ) AS t ORDER BY t.spent DESC, t.calls DESC, t.key_id`;
  const found = new Map(days.map(({ day }) => [day, [] as (Sums & { keyId: string })[]]));
  for (const row of rows) found.get(row.day)?.push(row);
  return days.map((sums) => ({ ...sums, byKey: found.get(sums.day) ?? [] }));
}
