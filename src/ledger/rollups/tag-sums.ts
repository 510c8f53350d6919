import type { UsageEvent } from '../usage-event.ts';
import { arrayLiterals, quoted } from '../writing/array-literal.ts';
import { DAY_SUMS, mergedRow, type SumTable, sentRows } from './sum-tables.ts';

/**
 * Sums of calls by tag and UTC day. Only the first `MAX_TAGS` tags of an account in a month (UTC) have sums, in the order in which
 * the writer stores calls. The calls of all later tags are summed up as `OTHER_TAG`. `tag_months` lists the tags that have sums.
 *
 * A call belongs to the month in which it began, however late it is stored. The writer decides in the transaction that stores the
 * call, under the flush lock of its shard. All calls of an account belong to one shard, so no other flush decides for it meanwhile.
 *
 * Tested by test/ledger/rollups/tags.test.ts.
 */

/**
 * Maximum tags with sums. It bounds the rows of an account in a month to 31 times this number, plus one for each day, whatever its
 * callers send.
 */
export const MAX_TAGS = 1_000;

/**
 * The name for the sums of all tags without their own sums in a month. A caller may use it as a tag; these calls are then included.
 */
export const OTHER_TAG = 'other';

export const TAG_DAYS: SumTable = {
  name: 'tag_days',
  keys: 3,
  columns: ['account_id', 'day', 'tag', ...DAY_SUMS],
};

/** The sums of the calls of an account with one tag on one day. `day` counts whole days since 1970. */
export class TagDay {
  readonly accountId: string;
  readonly day: number;
  readonly tag: string;
  calls = 0;
  freeCalls = 0;
  spent = 0;
  latencySumUs = 0;
  latencyCount = 0;

  constructor(accountId: string, day: number, tag: string) {
    this.accountId = accountId;
    this.day = day;
    this.tag = tag;
  }

  add({ latencyUs }: Pick<UsageEvent, 'latencyUs'>, free: number, amount: number): void {
    this.calls++;
    this.freeCalls += free;
    this.spent += amount;
    this.latencySumUs += latencyUs;
    if (latencyUs > 0) this.latencyCount++;
  }
}

/**
 * One array literal for each column of `tag_days`, in the order in which the tags first occurred; null: no call has a tag.
 *
 * @param pages of a batch; those of a shard in the order of its stream. Several pages may have the same row
 */
export function tagColumns(pages: readonly { readonly tags: readonly TagDay[] }[]): string[] | null {
  const rows = pages.flatMap(({ tags }) => tags);
  if (rows.length === 0) return null;
  return arrayLiterals(rows, TAG_DAYS.columns.length, (row, add) => {
    add(0, row.accountId);
    add(1, row.day);
    add(2, quoted(row.tag));
    add(3, row.calls);
    add(4, row.freeCalls);
    add(5, row.spent);
    add(6, row.latencySumUs);
    add(7, row.latencyCount);
  });
}

/** The first day of the month of a day, as SQL. */
const monthOf = (day: string): string => `date_trunc('month', (${day})::timestamp)::date`;

/** Gives new tags sums of their own, until the account has MAX_TAGS in that month. The parameters are the first three of `tagColumns`. */
export const CLAIM_TAGS_SQL = `
WITH new AS (
  SELECT account_id, month, tag, row_number() OVER (PARTITION BY account_id, month ORDER BY min(position)) AS number
  FROM (
    SELECT account_id, ${monthOf(`'epoch'::date + day::int`)} AS month, tag, position
    FROM unnest($1::uuid[], $2::bigint[], $3::text[]) WITH ORDINALITY AS t (account_id, day, tag, position)
  ) AS sent
  WHERE tag <> '${OTHER_TAG}' AND NOT EXISTS (
    SELECT FROM tag_months m WHERE m.account_id = sent.account_id AND m.month = sent.month AND m.tag = sent.tag)
  GROUP BY account_id, month, tag
), room AS (
  SELECT account_id, month,
         (SELECT ${MAX_TAGS} - count(*) FROM tag_months m WHERE m.account_id = d.account_id AND m.month = d.month) AS tags
  FROM (SELECT DISTINCT account_id, month FROM new) AS d
)
INSERT INTO tag_months (account_id, month, tag)
SELECT account_id, month, tag FROM new JOIN room USING (account_id, month) WHERE number <= room.tags
ORDER BY account_id, month, tag`;

/** The name under which the call or the sums `of` count, as SQL. @param day  on which the calls began, in UTC */
export const summedAs = (of: string, day: string): string => `
  CASE WHEN EXISTS (
    SELECT FROM tag_months m WHERE m.account_id = ${of}.account_id AND m.month = ${monthOf(day)} AND m.tag = ${of}.tag
  ) THEN ${of}.tag ELSE '${OTHER_TAG}' END`;

const SUMMED = DAY_SUMS.map((name) => `sum(${name})::bigint AS ${name}`).join(', ');

/**
 * Adds sums by tag, given as parameters made by `tagColumns`. The rows are locked in the order of their keys.
 *
 * @param prefix of the table's name, for a table with the same columns
 */
export const addTagSums = (prefix = ''): string => `
INSERT INTO ${prefix}tag_days AS s (${TAG_DAYS.columns.join(', ')})
SELECT account_id, day, name, ${SUMMED}
FROM (SELECT sent.*, ${summedAs('sent', 'sent.day')} AS name FROM (${sentRows(TAG_DAYS, 1)}) AS sent) AS named
GROUP BY account_id, day, name ORDER BY account_id, day, name
ON CONFLICT (account_id, day, tag) DO UPDATE SET ${mergedRow(TAG_DAYS)}`;
