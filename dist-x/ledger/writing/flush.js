import { sqlState } from '../../platform/postgres.js';
import { isBeforeHorizon, readHorizonMs } from '../retention/horizon.js';
import { exactParts } from '../rollups/exact-parts.js';
import { COPY_CALLS_SQL, copyData } from './call-rows.js';
import { CallSums, POST_SUMS_SQL, sumsParameters } from './call-sums.js';
import { COPY_ENTRIES_SQL, entryData, entrySums } from './entry-rows.js';
import { callColumns, INSERT_CALLS_SQL } from './insert-calls.js';
import { DAY_DROPPED, isRefusedData, putAside } from './rejected-events.js';
/**
 * Whether `storeEntries` may be able to store what `storeNewCalls` could not. Of a COPY that failed behind its last row only the
 * consequence is known: 25P02. `storeEntries` meets the cause itself.
 */
export function needsCare(error) {
    return isRefusedData(error) || sqlState(error) === '25P02';
}
/**
 * Stores calls inside the open transaction of `session`. All of them must be new, which is so except after a crash or a failed
 * deletion from the stream. A call that is stored already, or that Postgres refuses, fails the transaction; `storeEntries` can
 * then store the batch.
 *
 * COPY stores every row or fails. So the sums that the writer made from a batch are the sums of the rows that were really stored.
 *
 * The alternative is INSERT … ON CONFLICT DO NOTHING for every batch, with sums made in SQL. With 10 000 events per flush it takes
 * 17.2 µs of Postgres' CPU per event, and this takes 8.7: 2.0 less by reading arrays in a target list instead of FROM, 2.2 less
 * without ON CONFLICT (a look-up and a WAL record per row), 1.9 less by adding up in the writer, 2.4 less by COPY. When every event
 * has an account of its own, COPY of the entries reduced 14 µs to 11: no arrays to parse, one WAL record per page.
 */
export async function storeNewCalls(session, pages) {
    const calls = pages.reduce((sum, page) => sum + page.calls, 0);
    if (calls > 0) {
        const journalId = await nextJournalId(session);
        await session.copyIn(COPY_CALLS_SQL, copyData(pages, journalId));
        await postSums(session, journalId, pages);
    }
    const rejected = pages.flatMap((page) => page.rejected);
    return { inserted: calls, rejected, unkept: await putAside(session, rejected) };
}
async function nextJournalId(session) {
    const rows = await session.query(`SELECT nextval(pg_get_serial_sequence('journal', 'id')) AS id`);
    return rows[0]?.id;
}
/** Stores what follows from calls that were just inserted for this journal row: the row itself, its entries, and all sums. */
async function postSums(session, journalId, pages) {
    const entries = entrySums(pages);
    if (entries.size > 0)
        await session.copyIn(COPY_ENTRIES_SQL, entryData(entries, journalId));
    const [posted] = await session.query(POST_SUMS_SQL, sumsParameters(journalId, pages));
    if (posted?.entries !== entries.size)
        throw new Error(`${posted?.entries} entries were stored, not ${entries.size}`);
    if (posted.sum !== 0)
        throw new Error(`the entries of journal row ${journalId} do not sum to zero`);
}
/**
 * Stores entries inside the open transaction of `session`, each call once, whether it is stored already or not. Events that
 * Postgres refuses are found by halving the batch, under savepoints, and put aside.
 *
 * A batch in several parts locks the rows of balances and sums anew for each part. It may deadlock with another writer. Then
 * Postgres ends one of the two transactions, and its writer tries the batch again.
 */
export async function storeEntries(session, entries, feeBasisPoints) {
    const horizonMs = await readHorizonMs(session);
    const good = [];
    const rejected = [];
    for (const entry of entries) {
        const { event } = entry;
        if (event === null)
            rejected.push(entry);
        else if (isBeforeHorizon(event.usageId, horizonMs))
            rejected.push({ ...entry, error: DAY_DROPPED });
        else
            good.push({ ...entry, event });
    }
    let inserted = 0;
    for (const part of exactParts(good, ({ event }) => event)) {
        inserted += await storeCarefully(session, part, feeBasisPoints, rejected);
    }
    return { inserted, rejected, unkept: await putAside(session, rejected) };
}
async function storeCarefully(session, entries, feeBasisPoints, rejected) {
    await session.query('SAVEPOINT part');
    try {
        const inserted = await insertAndPost(session, entries, feeBasisPoints);
        await session.query('RELEASE SAVEPOINT part');
        return inserted;
    }
    catch (error) {
        // Not 25P02: its cause may pass, such as a timeout. The batch is then tried again as a whole, and no good event is put aside.
        if (!isRefusedData(error))
            throw error;
        await session.query('ROLLBACK TO SAVEPOINT part');
        await session.query('RELEASE SAVEPOINT part');
        const [first] = entries;
        if (first !== undefined && entries.length === 1) {
            rejected.push({ ...first, error: error.message });
            return 0;
        }
        const half = entries.length >> 1;
        const inserted = await storeCarefully(session, entries.slice(0, half), feeBasisPoints, rejected);
        return inserted + (await storeCarefully(session, entries.slice(half), feeBasisPoints, rejected));
    }
}
/**
 * Makes the open transaction write, so that its commit waits for the synchronous standby. What it found stored may be missing there, if
 * the commit that stored it did not wait to its end; and a transaction that wrote nothing does not wait.
 */
export async function writeForReplicas(session) {
    // A lock on a row is written to the log, and changes nothing.
    await session.query('SELECT FROM installation FOR NO KEY UPDATE');
}
/** Inserts the calls that are not stored yet, and posts the sums of exactly these. @returns their number */
async function insertAndPost(session, entries, feeBasisPoints) {
    // If an id comes several times, its first event counts.
    const events = new Map();
    for (const { event } of entries)
        if (!events.has(event.usageId))
            events.set(event.usageId, event);
    const journalId = await nextJournalId(session);
    const columns = callColumns(Array.from(events.values()), feeBasisPoints);
    const rows = await session.query(INSERT_CALLS_SQL, [journalId, ...columns]);
    if (rows.length === 0)
        return 0;
    const inserted = rows.map(({ usageId }) => {
        const event = events.get(usageId);
        if (event === undefined)
            throw new Error(`Postgres stored the call ${usageId}, which is not in the batch`);
        return event;
    });
    await postSums(session, journalId, [new CallSums(inserted, feeBasisPoints).page()]);
    return inserted.length;
}
//# sourceMappingURL=flush.js.map