import { type PostgresSession, sqlState } from '../../platform/postgres.ts';
import type { FlushResult } from './flush.ts';
import type { StreamEntry } from './stream.ts';

/**
 * Why an event of a dropped day is put aside. Its call may have been stored, and dropped with its day: then Redis is older than
 * that, and storing it would charge it twice. Or it was never stored. Only an export can tell.
 */
export const DAY_DROPPED = 'its day was dropped from calls, so whether it was stored before cannot be told';

/** Maximum length of a stored error; the rest is cut off. Errors quote the event, and an event may have any size. */
const MAX_ERROR_LENGTH = 500;

/** Inserts from arrays. Repeating it changes nothing. (`fields` are sent as JSON text: the client would encode JSON once more.) */
const REJECT_SQL = `
INSERT INTO rejected_events (shard, stream_id, fields, error)
SELECT shard, stream_id, fields::json, error
FROM unnest($1::int[], $2::text[], $3::text[], $4::text[]) AS t (shard, stream_id, fields, error)
ON CONFLICT DO NOTHING`;

/**
 * Whether Postgres refuses the data itself, so that sending it again cannot help: a data exception, an integrity violation, a
 * program limit (an index entry that is too large), or an exception raised by a trigger.
 */
export function isRefusedData(error: unknown): boolean {
  return /^(22|23|54|P0001)/.test(sqlState(error) ?? '');
}

/**
 * Puts entries that cannot be stored as calls into `rejected_events`: a refused entry must not block the stream.
 *
 * @returns the entries that Postgres refuses even there
 */
export async function putAside(session: PostgresSession, rejected: readonly StreamEntry[]): Promise<StreamEntry[]> {
  // One by one only if necessary: a Redis that came back very old has thousands of events of dropped days.
  if (rejected.length === 0 || (await isKept(session, rejected))) return [];
  const unkept: StreamEntry[] = [];
  for (const entry of rejected) {
    if (rejected.length === 1 || !(await isKept(session, [entry]))) unkept.push(entry);
  }
  return unkept;
}

async function isKept(session: PostgresSession, entries: readonly StreamEntry[]): Promise<boolean> {
  await session.query('SAVEPOINT aside');
  try {
    await session.query(REJECT_SQL, [
      entries.map(({ shard }) => shard),
      entries.map(({ id }) => id),
      entries.map(({ fields }) => JSON.stringify(fields)),
      // Postgres cannot store a NUL, and the error may quote one. (JSON.stringify escapes it in `fields`.)
      entries.map(({ error }) => error.replaceAll('\0', '').slice(0, MAX_ERROR_LENGTH)),
    ]);
    await session.query('RELEASE SAVEPOINT aside');
    return true;
  } catch (refusal) {
    if (!isRefusedData(refusal)) throw refusal;
    await session.query('ROLLBACK TO SAVEPOINT aside');
    await session.query('RELEASE SAVEPOINT aside');
    return false;
  }
}

type ErrorLog = { error(fields: object, message: string): void };

/**
 * Logs the events of a flush that were put aside, one line each. Events of dropped days, of which there may be thousands, share one
 * line.
 */
export function reportRejected({ rejected, unkept }: FlushResult, log: ErrorLog): void {
  const isLate = ({ error }: { readonly error: string }): boolean => error === DAY_DROPPED;
  const late = rejected.filter(isLate).length;
  if (late > 0) log.error({ events: late }, 'usage events of dropped days put aside in rejected_events');
  for (const entry of rejected) {
    const line = { shard: entry.shard, stream_id: entry.id, reason: entry.error };
    if (unkept.includes(entry))
      log.error(
        { ...line, fields: entry.fields },
        'usage event refused even by rejected_events: only this log line keeps it',
      );
    else if (!isLate(entry)) log.error(line, 'usage event put aside in rejected_events');
  }
}
