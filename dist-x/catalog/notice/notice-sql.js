import { mayCostMore } from './may-cost-more.js';
export const nextColumns = (sql) => sql `
  (extract(epoch FROM next_from) * 1000)::bigint AS next_from_ms, next_from <= clock_timestamp() AS next_counts,
  next_price, next_free_calls, next_only_operations, next_operation_terms`;
export function nextOf(row) {
    if (row.next_from_ms === null)
        return null;
    return {
        fromMs: row.next_from_ms,
        priceMicros: row.next_price,
        freeCalls: row.next_free_calls,
        onlyOperations: row.next_only_operations,
        operationTerms: row.next_operation_terms,
    };
}
/**
 * Locks the listing, and decides when changed terms count: at once if no call can cost more, otherwise after the notice. There is one
 * announcement at a time. A further change replaces it; the time stays the same if no call can cost more than announced already, and
 * begins again otherwise. A change after which nothing can cost more than today ends the announcement.
 *
 * @returns `column = value, …,` for an UPDATE of this row in the same transaction; in an object, as a promise of a query would run it
 */
export async function termsAssignments(tx, id, change, noticeSeconds) {
    // A statement of its own: one that waits for the lock would still decide by the time at which it began to wait.
    await tx `SELECT FROM services WHERE id = ${id} FOR UPDATE`;
    const rows = await tx `
    SELECT price, free_calls, only_operations, operation_terms, ${nextColumns(tx)} FROM services WHERE id = ${id}`;
    const [row] = rows;
    // The UPDATE finds no row either.
    if (row === undefined)
        return { set: tx `` };
    const own = {
        priceMicros: row.price,
        freeCalls: row.free_calls,
        onlyOperations: row.only_operations,
        operationTerms: row.operation_terms,
    };
    const next = nextOf(row);
    const now = next !== null && row.next_counts ? next : own;
    const wanted = changed(next ?? own, change);
    const written = { ...(next === null ? ownTerms(tx) : nextTerms(tx)), ...changedTerms(tx, change) };
    if (noticeSeconds === 0 || !mayCostMore(now, wanted)) {
        return { set: tx `${setOwn(tx, written)}, ${setNext(tx, noTerms(tx))}, next_from = NULL,` };
    }
    const isAnnounced = next !== null && !row.next_counts;
    const keepsTime = isAnnounced && !mayCostMore(next, wanted);
    const from = keepsTime ? tx `next_from` : timeFrom(tx, noticeSeconds);
    const present = now === next ? nextTerms(tx) : ownTerms(tx);
    return { set: tx `${setOwn(tx, present)}, ${setNext(tx, written)}, next_from = ${from},` };
}
/** Whole milliseconds, rounded up, so that every process reads the same time. An announced time never comes nearer. */
const timeFrom = (tx, noticeSeconds) => tx `
  greatest(date_trunc('milliseconds', clock_timestamp()) + ${noticeSeconds} * interval '1 second' + interval '1 millisecond',
           next_from)`;
function changed(terms, { operations, ...change }) {
    return {
        priceMicros: change.priceMicros ?? terms.priceMicros,
        freeCalls: change.freeCalls ?? terms.freeCalls,
        onlyOperations: change.onlyOperations ?? terms.onlyOperations,
        operationTerms: operations === undefined ? terms.operationTerms : (operations?.terms ?? null),
    };
}
const ownTerms = (tx) => ({
    price: tx `price`,
    freeCalls: tx `free_calls`,
    onlyOperations: tx `only_operations`,
    operations: tx `operations`,
    terms: tx `operation_terms`,
    maxPrice: tx `max_operation_price`,
});
const nextTerms = (tx) => ({
    price: tx `next_price`,
    freeCalls: tx `next_free_calls`,
    onlyOperations: tx `next_only_operations`,
    operations: tx `next_operations`,
    terms: tx `next_operation_terms`,
    maxPrice: tx `next_max_operation_price`,
});
const noTerms = (tx) => ({
    price: tx `NULL`,
    freeCalls: tx `NULL`,
    onlyOperations: tx `NULL`,
    operations: tx `NULL`,
    terms: tx `NULL`,
    maxPrice: tx `NULL`,
});
function changedTerms(tx, change) {
    const { priceMicros, freeCalls, onlyOperations, operations } = change;
    return {
        ...(priceMicros === undefined ? {} : { price: tx `${priceMicros}::bigint` }),
        ...(freeCalls === undefined ? {} : { freeCalls: tx `${freeCalls}::int` }),
        ...(onlyOperations === undefined ? {} : { onlyOperations: tx `${onlyOperations}::boolean` }),
        ...(operations === undefined
            ? {}
            : {
                operations: tx `${operations?.json ?? null}::text::json`,
                terms: tx `${operations?.terms ?? null}::text`,
                maxPrice: tx `${operations?.maxPriceMicros ?? null}::bigint`,
            }),
    };
}
const setOwn = (tx, to) => tx `
  price = ${to.price}, free_calls = ${to.freeCalls}, only_operations = ${to.onlyOperations}, operations = ${to.operations},
  operation_terms = ${to.terms}, max_operation_price = ${to.maxPrice}`;
const setNext = (tx, to) => tx `
  next_price = ${to.price}, next_free_calls = ${to.freeCalls}, next_only_operations = ${to.onlyOperations},
  next_operations = ${to.operations}, next_operation_terms = ${to.terms}, next_max_operation_price = ${to.maxPrice}`;
//# sourceMappingURL=notice-sql.js.map