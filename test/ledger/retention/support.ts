import { mkdtempSync } from 'node:fs';
import path from 'node:path';
import { RetentionJob, type RetentionJobOptions } from '../../../src/ledger/retention/retention-job.ts';
import type { UsageEvent } from '../../../src/ledger/usage-event.ts';
import { uuidv7 } from '../../../src/platform/ids.ts';
import { QUIET } from '../../support/store.ts';
import { scratchDir } from '../../support/stores.ts';
import { newEvent } from '../support.ts';
import { ledger } from '../use-ledger.ts';

const DAY_MS = 86_400_000;
const RETENTION_DAYS = 400;

export const newExportDir = (): string => mkdtempSync(path.join(scratchDir(), 'export-'));

/** A call of this day, at noon and then some. */
export function eventOf(day: string, given: Partial<UsageEvent> = {}, afterNoonMs = 0): UsageEvent {
  const atMs = Date.parse(`${day}T12:00:00Z`) + afterNoonMs;
  return newEvent({ usageId: uuidv7(atMs), admittedAtMs: atMs, ...given });
}

/** Different calls: charged, free and refunded. */
export const eventsOf = (day: string, given: Partial<UsageEvent> = {}): UsageEvent[] =>
  Array.from({ length: 9 }, (_, i) =>
    eventOf(
      day,
      {
        ...given,
        heldMicros: i % 4 === 0 ? 0 : 1_000 + i,
        freeTier: i % 4 === 0,
        outcome: i % 5 === 1 ? 'refunded:upstream_5xx' : 'completed',
        path: `/räksmörgås "${i}"\\`,
      },
      i * 1_000,
    ),
  );

/** The options of a job for which the last day that is due is `lastDay`, and which keeps no day for its calls. */
export async function jobOptions(
  lastDay: string,
  given: Partial<RetentionJobOptions> = {},
): Promise<RetentionJobOptions> {
  const [row] = await ledger.sql<{ id: string }[]>`SELECT id FROM installation`;
  return {
    databaseUrl: ledger.databaseUrl,
    installation: row?.id as string,
    retentionDays: RETENTION_DAYS,
    exportDir: null,
    keptDays: 0,
    now: () => Date.parse(lastDay) + (RETENTION_DAYS + 1) * DAY_MS + 1,
    log: QUIET,
    ...given,
  };
}

export async function newJob(lastDay: string, given: Partial<RetentionJobOptions> = {}): Promise<RetentionJob> {
  return new RetentionJob(await jobOptions(lastDay, given));
}

/** Makes the partitions of these days, and stores these calls. */
export async function store(days: readonly string[], events: readonly UsageEvent[]): Promise<void> {
  for (const day of days) await ledger.partition(day);
  await ledger.append(...events);
  const writer = ledger.startWriter();
  await ledger.drained();
  await writer.stop();
}

/** The tables that have, or had, calls of one day. */
export async function dayTables(): Promise<string[]> {
  const rows = await ledger.sql<{ name: string }[]>`
    SELECT relname AS name FROM pg_class
    WHERE relkind = 'r' AND relname ~ '^calls_(closed_)?2[0-9]{3}' AND relname < 'calls_202'
       OR relkind = 'r' AND relname LIKE 'calls_closed_%' ORDER BY 1`;
  return rows.map(({ name }) => name);
}
