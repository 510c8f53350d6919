import { type PostgresSession, sqlState } from '../../platform/postgres.ts';
import { PARTITION_LOCK } from '../locks.ts';

const DAY_MS = 86_400_000;
/** Today's and those of the next week: a writer that cannot make any for days still has where to put calls. */
const DAYS_AHEAD = 7;
/** Rows of that day lie in `calls_default` already. */
const CHECK_VIOLATION = '23514';

type PartitionLog = { warn(fields: object, message: string): void };

const isoDay = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/**
 * Makes the partitions of `calls` for today and the days ahead. A day whose calls are in the default partition already
 * stays there (it is logged): they are complete and found, only harder to detach.
 */
export async function makePartitions(session: PostgresSession, nowMs: number, log: PartitionLog): Promise<void> {
  const missing = await missingDays(session, nowMs);
  for (const dayMs of missing) {
    try {
      await makePartition(session, dayMs);
    } catch (error) {
      if (sqlState(error) !== CHECK_VIOLATION) throw error;
      log.warn({ day: isoDay(dayMs) }, 'calls of this day are in the default partition: it gets none of its own');
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
    // IF NOT EXISTS alone lets two makers collide in the catalog.
    await session.query('SELECT pg_advisory_xact_lock($1::int, 0)', [PARTITION_LOCK]);
    await session.query(
      `CREATE TABLE IF NOT EXISTS ${partitionName(dayMs)} PARTITION OF calls
       FOR VALUES FROM ('${isoDay(dayMs)}') TO ('${isoDay(dayMs + DAY_MS)}')`,
    );
  });
}
