import { type PostgresSession, sqlState } from '../../platform/postgres.ts';
import type { UsageEvent } from '../usage-event.ts';
import { COPY_CALLS_SQL, copyData } from './call-rows.ts';
import { POST_SUMS_SQL, sumsParameters } from './call-sums.ts';
import { COPY_ENTRIES_SQL, entryData, entrySums } from './entry-rows.ts';
import { FLUSH_SQL, flushParameters, REJECT_SQL } from './flush-sql.ts';
import type { Page, StreamEntry } from './stream.ts';

export type FlushResult = {
  /** Calls that were not in Postgres before. */
  readonly inserted: number;
  readonly rejected: readonly StreamEntry[];
  /** Those of `rejected` that Postgres refused even to put aside: whoever logs them whole keeps the last of them. */
  readonly unkept: readonly StreamEntry[];
};

/** Errors quote the event, and an event may be of any size. */
const MAX_ERROR_LENGTH = 500;

/**
 * Whether Postgres refuses the data itself, so that sending it again cannot help: data exception, integrity violation,
 * a limit of the program (an index entry too large), an exception raised by a trigger.
 */
export function isRefusedData(error: unknown): boolean {
  return /^(22|23|54|P0001)/.test(sqlState(error) ?? '');
}

/**
 * Stores calls none of which is there already, as all are but after a crash, inside the open transaction of `session`.
 * One that is there, or that Postgres refuses, fails the transaction: see `storeEntries`.
 */
export async function storeNewCalls(session: PostgresSession, pages: readonly Page[]): Promise<FlushResult> {
  const calls = pages.reduce((sum, page) => sum + page.calls, 0);
  if (calls > 0) await copyAndPost(session, pages, calls);
  const rejected = pages.flatMap((page) => page.rejected);
  return { inserted: calls, rejected, unkept: await putAllAside(session, rejected) };
}

/**
 * COPY stores every row or fails, and says how many: so the sums made of a batch are those of the rows that were really
 * stored. Against one INSERT … ON CONFLICT DO NOTHING RETURNING with everything derived from it in SQL (`FLUSH_SQL`),
 * Postgres' CPU for 10 000 events a flush fell from 17.2 µs an event to 8.7: 2.0 for reading arrays in a target list
 * instead of FROM, 2.2 for no ON CONFLICT (a look-up and a WAL record a row), 1.9 for sums made here, 2.4 for COPY. With an account an event,
 * entries by COPY took it from 14 to 11: no arrays to parse, one WAL record a page.
 */
async function copyAndPost(session: PostgresSession, pages: readonly Page[], calls: number): Promise<void> {
  const rows = await session.query<{ id: number }>(`SELECT nextval(pg_get_serial_sequence('journal', 'id')) AS id`);
  const journalId = rows[0]?.id as number;
  const stored = await session.copyIn(COPY_CALLS_SQL, copyData(pages, journalId));
  if (stored !== calls) throw new Error(`${stored} calls were stored instead of ${calls}`);
  const entries = entrySums(pages);
  if (entries.size > 0) {
    const written = await session.copyIn(COPY_ENTRIES_SQL, entryData(entries, journalId));
    if (written !== entries.size) throw new Error(`${written} entries were stored instead of ${entries.size}`);
  }
  const [posted] = await session.query<{ sum: number }>(POST_SUMS_SQL, sumsParameters(journalId, pages));
  if (posted?.sum !== 0) throw new Error(`the entries of journal row ${journalId} do not sum to zero`);
}

/**
 * Stores entries inside the open transaction of `session`, each call once, whether it is there already or not. The events
 * that Postgres refuses are found by halving, under savepoints, and rejected.
 */
export async function storeEntries(
  session: PostgresSession,
  entries: readonly StreamEntry[],
  feeBasisPoints: number,
): Promise<FlushResult> {
  const good = entries.filter((entry) => entry.event !== null);
  const rejected = entries.filter((entry) => entry.event === null);
  const inserted = await storeCarefully(session, good, feeBasisPoints, rejected);
  return { inserted, rejected, unkept: await putAllAside(session, rejected) };
}

/** @returns those that Postgres refuses even there */
async function putAllAside(session: PostgresSession, rejected: readonly StreamEntry[]): Promise<StreamEntry[]> {
  const unkept: StreamEntry[] = [];
  for (const entry of rejected) {
    if (!(await putAside(session, entry))) unkept.push(entry);
  }
  return unkept;
}

/** Keeps an entry in `rejected_events`. @returns false when Postgres refuses even that: it must not block the stream */
async function putAside(session: PostgresSession, { shard, id, fields, error }: StreamEntry): Promise<boolean> {
  // Postgres stores no NUL, and the error may quote one. (In `fields` it is escaped.)
  const reason = error.replaceAll('\0', '').slice(0, MAX_ERROR_LENGTH);
  await session.query('SAVEPOINT aside');
  try {
    await session.query(REJECT_SQL, [shard, id, JSON.stringify(fields), reason]);
    await session.query('RELEASE SAVEPOINT aside');
    return true;
  } catch (refusal) {
    if (!isRefusedData(refusal)) throw refusal;
    await session.query('ROLLBACK TO SAVEPOINT aside');
    await session.query('RELEASE SAVEPOINT aside');
    return false;
  }
}

async function storeCalls(session: PostgresSession, entries: readonly StreamEntry[], feeBasisPoints: number) {
  if (entries.length === 0) return 0;
  const events = entries.map((entry) => entry.event as UsageEvent);
  const rows = await session.query<{ inserted: number }>(FLUSH_SQL, flushParameters(events, feeBasisPoints));
  return rows[0]?.inserted ?? 0;
}

async function storeCarefully(
  session: PostgresSession,
  entries: readonly StreamEntry[],
  feeBasisPoints: number,
  rejected: StreamEntry[],
): Promise<number> {
  if (entries.length === 0) return 0;
  await session.query('SAVEPOINT part');
  try {
    const inserted = await storeCalls(session, entries, feeBasisPoints);
    await session.query('RELEASE SAVEPOINT part');
    return inserted;
  } catch (error) {
    if (!isRefusedData(error)) throw error;
    await session.query('ROLLBACK TO SAVEPOINT part');
    await session.query('RELEASE SAVEPOINT part');
    if (entries.length === 1) {
      rejected.push({ ...(entries[0] as StreamEntry), error: (error as Error).message });
      return 0;
    }
    const half = entries.length >> 1;
    const first = await storeCarefully(session, entries.slice(0, half), feeBasisPoints, rejected);
    return first + (await storeCarefully(session, entries.slice(half), feeBasisPoints, rejected));
  }
}
