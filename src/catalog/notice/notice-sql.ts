import type { Tx } from '../../platform/postgres.ts';
import type { NextTerms, Terms } from '../listing.ts';
import type { StoredOperations } from '../operations/operation.ts';
import { mayCostMore } from './may-cost-more.ts';

type Fragment = ReturnType<Tx>;

/** The columns of `services` with announced terms. All are null if nothing is announced. */
export type NextRow = {
  readonly next_from_ms: number | null;
  /** Whether the announced terms count already, by the clock of Postgres. */
  readonly next_counts: boolean | null;
  readonly next_price: number | null;
  readonly next_max_price: number | null;
  readonly next_free_calls: number | null;
  readonly next_only_operations: boolean | null;
  readonly next_operation_terms: string | null;
};

export const nextColumns = (sql: Tx) => sql`
  (extract(epoch FROM next_from) * 1000)::bigint AS next_from_ms, next_from <= clock_timestamp() AS next_counts,
  next_price, next_max_price, next_free_calls, next_only_operations, next_operation_terms`;

export function nextOf(row: NextRow): NextTerms | null {
  if (row.next_from_ms === null) return null;
  return {
    fromMs: row.next_from_ms,
    priceMicros: row.next_price as number,
    maxPriceMicros: row.next_max_price,
    freeCalls: row.next_free_calls as number,
    onlyOperations: row.next_only_operations as boolean,
    operationTerms: row.next_operation_terms,
  };
}

/** What a provider changes of the terms; undefined: unchanged since the provider last wrote it. */
export type TermsChange = { readonly [name in 'priceMicros' | 'freeCalls']: number | undefined } & {
  readonly maxPriceMicros: number | null | undefined;
  readonly onlyOperations: boolean | undefined;
  readonly operations: StoredOperations | null | undefined;
};

/**
 * Locks the listing, and decides when changed terms count: at once if no call can cost more, otherwise after the notice. There is
 * one announcement at a time, which a further change replaces. Its time stays the same if no call can cost more than already
 * announced; otherwise it begins again. A change after which nothing can cost more than today ends the announcement.
 *
 * @returns `column = value, …,` for an UPDATE of this row in the same transaction; wrapped in an object, because awaiting a query
 * would run it
 */
export async function termsAssignments(
  tx: Tx,
  id: string,
  change: TermsChange,
  noticeSeconds: number,
): Promise<{ readonly set: Fragment }> {
  // A separate statement: one that waits for the lock would still decide by the time at which it began to wait.
  await tx`SELECT FROM services WHERE id = ${id} FOR UPDATE`;
  const rows = await tx<(NextRow & OwnRow)[]>`
    SELECT price, max_price, free_calls, only_operations, operation_terms, ${nextColumns(tx)} FROM services WHERE id = ${id}`;
  const [row] = rows;
  // The UPDATE will not find a row either.
  if (row === undefined) return { set: tx`` };
  const own: Terms = {
    priceMicros: row.price,
    maxPriceMicros: row.max_price,
    freeCalls: row.free_calls,
    onlyOperations: row.only_operations,
    operationTerms: row.operation_terms,
  };
  const next = nextOf(row);
  const now = next !== null && row.next_counts ? next : own;
  const wanted = changed(next ?? own, change);
  const written = { ...(next === null ? ownTerms(tx) : nextTerms(tx)), ...changedTerms(tx, change) };
  if (noticeSeconds === 0 || !mayCostMore(now, wanted)) {
    return { set: tx`${setOwn(tx, written)}, ${setNext(tx, noTerms(tx))}, next_from = NULL,` };
  }
  const isAnnounced = next !== null && !row.next_counts;
  const keepsTime = isAnnounced && !mayCostMore(next, wanted);
  const from = keepsTime ? tx`next_from` : timeFrom(tx, noticeSeconds);
  const present = now === next ? nextTerms(tx) : ownTerms(tx);
  return { set: tx`${setOwn(tx, present)}, ${setNext(tx, written)}, next_from = ${from},` };
}

type OwnRow = {
  readonly price: number;
  readonly max_price: number | null;
  readonly free_calls: number;
  readonly only_operations: boolean;
  readonly operation_terms: string | null;
};

/** Whole milliseconds, rounded up, so that every process reads the same time, and an announced time never moves earlier. */
const timeFrom = (tx: Tx, noticeSeconds: number): Fragment => tx`
  greatest(date_trunc('milliseconds', clock_timestamp()) + ${noticeSeconds} * interval '1 second' + interval '1 millisecond',
           next_from)`;

function changed(terms: Terms, { operations, ...change }: TermsChange): Terms {
  return {
    priceMicros: change.priceMicros ?? terms.priceMicros,
    maxPriceMicros: change.maxPriceMicros === undefined ? terms.maxPriceMicros : change.maxPriceMicros,
    freeCalls: change.freeCalls ?? terms.freeCalls,
    onlyOperations: change.onlyOperations ?? terms.onlyOperations,
    operationTerms: operations === undefined ? terms.operationTerms : (operations?.terms ?? null),
  };
}

/** The columns of one set of terms, or the values for them. */
type Columns = {
  readonly price: Fragment;
  readonly maxPrice: Fragment;
  readonly freeCalls: Fragment;
  readonly onlyOperations: Fragment;
  readonly operations: Fragment;
  readonly terms: Fragment;
};

const ownTerms = (tx: Tx): Columns => ({
  price: tx`price`,
  maxPrice: tx`max_price`,
  freeCalls: tx`free_calls`,
  onlyOperations: tx`only_operations`,
  operations: tx`operations`,
  terms: tx`operation_terms`,
});

const nextTerms = (tx: Tx): Columns => ({
  price: tx`next_price`,
  maxPrice: tx`next_max_price`,
  freeCalls: tx`next_free_calls`,
  onlyOperations: tx`next_only_operations`,
  operations: tx`next_operations`,
  terms: tx`next_operation_terms`,
});

const noTerms = (tx: Tx): Columns => ({
  price: tx`NULL`,
  maxPrice: tx`NULL`,
  freeCalls: tx`NULL`,
  onlyOperations: tx`NULL`,
  operations: tx`NULL`,
  terms: tx`NULL`,
});

function changedTerms(tx: Tx, change: TermsChange): Partial<Columns> {
  const { priceMicros, maxPriceMicros, freeCalls, onlyOperations, operations } = change;
  return {
    ...(priceMicros === undefined ? {} : { price: tx`${priceMicros}::bigint` }),
    ...(maxPriceMicros === undefined ? {} : { maxPrice: tx`${maxPriceMicros}::bigint` }),
    ...(freeCalls === undefined ? {} : { freeCalls: tx`${freeCalls}::int` }),
    ...(onlyOperations === undefined ? {} : { onlyOperations: tx`${onlyOperations}::boolean` }),
    ...(operations === undefined
      ? {}
      : {
          operations: tx`${operations?.json ?? null}::text::json`,
          terms: tx`${operations?.terms ?? null}::text`,
        }),
  };
}

const setOwn = (tx: Tx, to: Columns): Fragment => tx`
  price = ${to.price}, max_price = ${to.maxPrice}, free_calls = ${to.freeCalls}, only_operations = ${to.onlyOperations},
  operations = ${to.operations}, operation_terms = ${to.terms}`;

const setNext = (tx: Tx, to: Columns): Fragment => tx`
  next_price = ${to.price}, next_max_price = ${to.maxPrice}, next_free_calls = ${to.freeCalls},
  next_only_operations = ${to.onlyOperations}, next_operations = ${to.operations}, next_operation_terms = ${to.terms}`;
