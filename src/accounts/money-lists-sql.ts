// The lists of money that operators moved. Each is ordered by time and journal row, newest first, and each filter has an index in
// this order. Tested by test/routes/money-by-operators.test.ts.
import type { Sql } from '../platform/postgres.ts';
import type { Credit } from './credits.ts';
import { microsOf, type Position, timeOf } from './cursor.ts';
import type { Payout } from './payouts.ts';
import type { TimeRange } from './time-range.ts';

export type MovementFilter = TimeRange & { readonly accountId: string | null; readonly reference: string | null };

/** A row of a list, with its position there. */
export type Listed<Row> = Row & { readonly position: Position };

export type TakenDebit = {
  readonly accountId: string;
  readonly amountMicros: number;
  readonly reference: string;
  readonly reason: string;
  readonly createdAt: Date;
};

type Raw = { readonly micros: number; readonly journalId: number };

/** Runs the query of one list. @param time the column of `m` that the list is ordered by */
async function select<Row extends object>(
  sql: Sql,
  from: ReturnType<Sql>,
  columns: ReturnType<Sql>,
  time: ReturnType<Sql>,
  { accountId, reference, fromMs, toMs }: MovementFilter,
  before: Position | null,
  limit: number,
): Promise<Listed<Row>[]> {
  const rows = await sql<(Row & Raw)[]>`
    SELECT m.account_id AS "accountId", m.amount AS "amountMicros", m.reference, ${columns} ${time} AS "createdAt",
           ${microsOf(sql, time)} AS micros, m.journal_id AS "journalId"
    FROM ${from} WHERE true
      ${accountId === null ? sql`` : sql`AND m.account_id = ${accountId}`}
      ${reference === null ? sql`` : sql`AND m.reference = ${reference}`}
      ${fromMs === null ? sql`` : sql`AND ${time} >= ${new Date(fromMs)}`}
      ${toMs === null ? sql`` : sql`AND ${time} < ${new Date(toMs)}`}
      ${before === null ? sql`` : sql`AND (${time}, m.journal_id) < (${timeOf(sql, before.micros)}, ${before.rest}::bigint)`}
    ORDER BY ${time} DESC, m.journal_id DESC LIMIT ${limit}`;
  return rows.map(({ micros, journalId, ...row }) => ({
    ...(row as unknown as Row),
    position: { micros, rest: String(journalId) },
  }));
}

export const selectCredits = (sql: Sql, filter: MovementFilter, before: Position | null, limit: number) =>
  select<Credit>(
    sql,
    sql`(SELECT * FROM credits WHERE reference IS NOT NULL) m`,
    sql`m.seq,`,
    sql`m.created_at`,
    filter,
    before,
    limit,
  );

export const selectPayouts = (sql: Sql, filter: MovementFilter, before: Position | null, limit: number) =>
  select<Payout>(sql, sql`payouts m`, sql``, sql`m.created_at`, filter, before, limit);

/** The debits that took money, ordered by the time at which they took it. */
export const selectDebits = (sql: Sql, filter: MovementFilter, before: Position | null, limit: number) => {
  const taken = sql`(SELECT * FROM debits WHERE state = 'taken') m`;
  return select<TakenDebit>(sql, taken, sql`m.reason,`, sql`m.ended_at`, filter, before, limit);
};
