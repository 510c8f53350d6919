import { type PostgresSession, sqlState } from '../platform/postgres.ts';
import { FLUSH_SQL, flushParameters, REJECT_SQL } from './flush-sql.ts';
import type { StreamEntry } from './stream.ts';
import type { UsageEvent } from './usage-event.ts';

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
 * Stores entries inside the open transaction of `session`, each call once. Entries that are no events are kept in
 * `rejected_events`.
 *
 * @param careful find the events that Postgres refuses (by halving, under savepoints) and reject them too. Without it one
 *   of them fails the transaction: the usual batch then costs no savepoint.
 */
export async function storeEntries(
  session: PostgresSession,
  entries: readonly StreamEntry[],
  feeBasisPoints: number,
  careful: boolean,
): Promise<FlushResult> {
  const good = entries.filter((entry) => entry.event !== null);
  const rejected = entries.filter((entry) => entry.event === null);
  const inserted = careful
    ? await storeCarefully(session, good, feeBasisPoints, rejected)
    : await storeCalls(session, good, feeBasisPoints);
  const unkept: StreamEntry[] = [];
  for (const entry of rejected) {
    if (!(await putAside(session, entry))) unkept.push(entry);
  }
  return { inserted, rejected, unkept };
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
