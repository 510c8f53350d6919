import { type PostgresSession, sqlState } from '../../platform/postgres.ts';
import { isBeforeHorizon, readHorizonMs } from '../retention/horizon.ts';
import { exactParts } from '../rollups/exact-parts.ts';
import { lockHours } from '../rollups/key-days.ts';
import { addTagSums, CLAIM_TAGS_SQL, tagColumns } from '../rollups/tag-sums.ts';
import type { UsageEvent } from '../usage-event.ts';
import { inMessages } from './binary-copy.ts';
import { COPY_CALLS_SQL, copyData } from './call-rows.ts';
import {
  budgetParameters,
  CallSums,
  type PageSums,
  POST_BUDGETS_SQL,
  POST_SUMS_SQL,
  type Posted,
  sumsParameters,
} from './call-sums.ts';
import { COPY_ENTRIES_SQL, entryData, entrySums } from './entry-rows.ts';
import { callColumns, INSERT_CALLS_SQL } from './insert-calls.ts';
import { DAY_DROPPED, isRefusedData, putAside } from './rejected-events.ts';
import type { Page, StreamEntry } from './stream.ts';

export type FlushResult = {
  /** The journal row that names the flush. */
  readonly flushId: number;
  /** Calls that were not in Postgres before. */
  readonly inserted: number;
  readonly rejected: readonly StreamEntry[];
  /**
   * The entries of `rejected` that Postgres refused even in `rejected_events`. Only the log can keep them, so all their fields must
   * be logged.
   */
  readonly unkept: readonly StreamEntry[];
};

/**
 * Whether `storeEntries` may be able to store what `storeNewCalls` could not. If a COPY failed after its last row, only the
 * consequence is known: 25P02. `storeEntries` meets the cause itself.
 */
export function needsCare(error: unknown): boolean {
  return isRefusedData(error) || sqlState(error) === '25P02';
}

/**
 * Stores calls inside the open transaction of `session`. All of them must be new, which they are except after a crash or a failed
 * deletion from the stream. A call that is already stored, or that Postgres refuses, fails the transaction; `storeEntries` can then
 * store the batch.
 *
 * COPY stores every row or fails. So the sums that the writer computed for a batch are the sums of the rows that were really
 * stored.
 *
 * The alternative is INSERT … ON CONFLICT DO NOTHING for every batch, with sums made in SQL. With 10 000 events per flush it takes
 * 17.2 µs of Postgres' CPU per event, and this takes 8.7: 2.0 less by reading arrays in a target list instead of FROM, 2.2 less
 * without ON CONFLICT (a look-up and a WAL record per row), 1.9 less by adding up in the writer, 2.4 less by COPY. When every event
 * has an account of its own, COPY of the entries reduced 14 µs to 11: no arrays to parse, one WAL record per page.
 */
export async function storeNewCalls(session: PostgresSession, pages: readonly Page[]): Promise<FlushResult> {
  const calls = pages.reduce((sum, page) => sum + page.calls, 0);
  const flushId = calls > 0 ? await nextJournalId(session) : await insertEmptyFlush(session);
  if (calls > 0) {
    await session.copyIn(COPY_CALLS_SQL, inMessages(copyData(pages, flushId)));
    await postSums(session, flushId, pages);
  }
  const rejected = pages.flatMap((page) => page.rejected);
  return { flushId, inserted: calls, rejected, unkept: await putAside(session, rejected) };
}

/**
 * The journal row of a flush without entries. It also makes the transaction write, so that its commit waits for the synchronous
 * standby: calls that were found stored may be missing there, if the commit that stored them did not wait to its end.
 */
async function insertEmptyFlush(session: PostgresSession): Promise<number> {
  const rows = await session.query<{ id: number }>(`INSERT INTO journal (kind) VALUES ('usage') RETURNING id`);
  return rows[0]?.id as number;
}

async function nextJournalId(session: PostgresSession): Promise<number> {
  const rows = await session.query<{ id: number }>(`SELECT nextval(pg_get_serial_sequence('journal', 'id')) AS id`);
  return rows[0]?.id as number;
}

/** Stores the consequences of calls that were just inserted for this journal row: the row itself, its entries, and all sums. */
async function postSums(session: PostgresSession, journalId: number, pages: readonly PageSums[]): Promise<void> {
  const entries = entrySums(pages);
  if (entries.size > 0) await session.copyIn(COPY_ENTRIES_SQL, inMessages(entryData(entries, journalId)));
  await lockHours(session, pages);
  const [posted] = await session.query<Posted>(POST_SUMS_SQL, sumsParameters(journalId, pages));
  const budgets = budgetParameters(pages);
  if (budgets !== null) await session.query(POST_BUDGETS_SQL, budgets);
  await postTags(session, pages);
  if (posted?.entries !== entries.size) throw new Error(`${posted?.entries} entries were stored, not ${entries.size}`);
  if (posted.sum !== 0) throw new Error(`the entries of journal row ${journalId} do not sum to zero`);
}

/** Two statements, because the second must see which tags the first has given sums. Batches without tags pay for neither. */
async function postTags(session: PostgresSession, pages: readonly PageSums[]): Promise<void> {
  const columns = tagColumns(pages);
  if (columns === null) return;
  await session.query(CLAIM_TAGS_SQL, columns.slice(0, 3));
  await session.query(addTagSums(), columns);
}

/** An entry that is an event. */
type Good = StreamEntry & { readonly event: UsageEvent };

/**
 * Stores entries inside the open transaction of `session`, each call once, whether it is already stored or not. Events that
 * Postgres refuses are found by halving the batch, under savepoints, and put aside.
 *
 * A batch in several parts locks the rows of balances and sums anew for each part, so it may deadlock with another writer. Postgres
 * then ends one of the two transactions, and its writer tries the batch again.
 */
export async function storeEntries(
  session: PostgresSession,
  entries: readonly StreamEntry[],
  feeBasisPoints: number,
): Promise<FlushResult> {
  const horizonMs = await readHorizonMs(session);
  const good: Good[] = [];
  const done: Done = { flushId: null, inserted: 0, rejected: [] };
  for (const entry of entries) {
    const { event } = entry;
    if (event === null) done.rejected.push(entry);
    else if (isBeforeHorizon(event.usageId, horizonMs)) done.rejected.push({ ...entry, error: DAY_DROPPED });
    else good.push({ ...entry, event });
  }
  for (const part of exactParts(good, ({ event }) => event)) await storeCarefully(session, part, feeBasisPoints, done);
  const flushId = done.flushId ?? (await insertEmptyFlush(session));
  return { ...done, flushId, unkept: await putAside(session, done.rejected) };
}

/** What `storeEntries` has done so far. A flush in several parts is named by the journal row of one of them. */
type Done = { flushId: number | null; inserted: number; readonly rejected: StreamEntry[] };

async function storeCarefully(
  session: PostgresSession,
  entries: readonly Good[],
  feeBasisPoints: number,
  done: Done,
): Promise<void> {
  await session.query('SAVEPOINT part');
  try {
    const { journalId, inserted } = await insertAndPost(session, entries, feeBasisPoints);
    await session.query('RELEASE SAVEPOINT part');
    if (inserted > 0) done.flushId = journalId;
    done.inserted += inserted;
  } catch (error) {
    // Not 25P02: its cause may be temporary, such as a timeout. The batch is then tried again as a whole, and no valid event is put
    // aside.
    if (!isRefusedData(error)) throw error;
    await session.query('ROLLBACK TO SAVEPOINT part');
    await session.query('RELEASE SAVEPOINT part');
    const [first] = entries;
    if (first !== undefined && entries.length === 1) {
      done.rejected.push({ ...first, error: (error as Error).message });
      return;
    }
    const half = entries.length >> 1;
    await storeCarefully(session, entries.slice(0, half), feeBasisPoints, done);
    await storeCarefully(session, entries.slice(half), feeBasisPoints, done);
  }
}

/** Inserts the calls that are not stored yet, and posts the sums of exactly these. If there are none, no journal row is made. */
async function insertAndPost(session: PostgresSession, entries: readonly Good[], feeBasisPoints: number) {
  // If an id occurs several times, its first event counts.
  const events = new Map<string, UsageEvent>();
  for (const { event } of entries) if (!events.has(event.usageId)) events.set(event.usageId, event);
  const journalId = await nextJournalId(session);
  const columns = callColumns(Array.from(events.values()), feeBasisPoints);
  const rows = await session.query<{ usageId: string }>(INSERT_CALLS_SQL, [journalId, ...columns]);
  if (rows.length === 0) return { journalId, inserted: 0 };
  const inserted = rows.map(({ usageId }) => {
    const event = events.get(usageId);
    if (event === undefined) throw new Error(`Postgres stored the call ${usageId}, which is not in the batch`);
    return event;
  });
  await postSums(session, journalId, [new CallSums(inserted, feeBasisPoints).page()]);
  return { journalId, inserted: inserted.length };
}
