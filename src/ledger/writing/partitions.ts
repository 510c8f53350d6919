import { type PostgresSession, sqlState } from '../../platform/postgres.ts';
import { PARTITION_LOCK } from '../locks.ts';

const DAY_MS = 86_400_000;
/** Partitions are made this many days ahead, so that calls have one even if the writer fails to make partitions for days. */
const DAYS_AHEAD = 7;
/** SQLSTATE of creating a day's partition when `calls_default` already has rows of that day. */
const CHECK_VIOLATION = '23514';

type PartitionLog = { warn(fields: object, message: string): void };

const isoDay = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/**
 * Makes the partitions of `calls` for today and the `DAYS_AHEAD` days after it. A day that already has calls in the default
 * partition gets no partition (this is logged): all its calls can still be found, but they cannot be detached as one partition.
 */
export async function makePartitions(session: PostgresSession, nowMs: number, log: PartitionLog): Promise<void> {
  const missing = await missingDays(session, nowMs);
  for (const dayMs of missing) {
    try {
      await makePartition(session, dayMs);
    } catch (error) {
      if (sqlState(error) !== CHECK_VIOLATION) throw error;
      log.warn(
        { day: isoDay(dayMs) },
        'this day gets no partition of its own: its calls are already in the default partition',
      );
    }
  }
}

const partitionName = (dayMs: number): string => `calls_${isoDay(dayMs).replaceAll('-', '')}`;

async function missingDays(session: PostgresSession, nowMs: number): Promise<number[]> {
  const today = Math.floor(nowMs / DAY_MS) * DAY_MS;
  const days = Array.from({ length: DAYS_AHEAD + 1 }, (_, ahead) => today + ahead * DAY_MS);
  const names = `{${days.map(partitionName).join(',')}}`;
  const found = await session.query<{ name: string }>(
    'SELECT name FROM unnest($1::text[]) AS name WHERE to_regclass(name) IS NOT NULL',
    [names],
  );
  const there = new Set(found.map((row) => row.name));
  return days.filter((day) => !there.has(partitionName(day)));
}

async function makePartition(session: PostgresSession, dayMs: number): Promise<void> {
  await session.transaction(async () => {
    // With IF NOT EXISTS alone, two processes that create the same partition can collide in the catalog.
    await session.query('SELECT pg_advisory_xact_lock($1::int, 0)', [PARTITION_LOCK]);
    await session.query(
      `CREATE TABLE IF NOT EXISTS ${partitionName(dayMs)} PARTITION OF calls
       FOR VALUES FROM ('${isoDay(dayMs)}') TO ('${isoDay(dayMs + DAY_MS)}')`,
    );
  });
}
