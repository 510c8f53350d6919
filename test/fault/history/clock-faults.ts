import { setTimeout as sleep } from 'node:timers/promises';
import { RetentionJob } from '../../../src/ledger/retention/retention-job.ts';
import { isPostgresUnavailable } from '../../../src/platform/postgres.ts';
import { QUIET } from '../../support/store.ts';
import { until } from '../../support/wait.ts';
import { AHEAD_MS } from '../clocks/clocks.ts';
import type { Stack } from '../stack.ts';
import type { ClockFault } from './plan.ts';

/** Lets clocks jump ahead, and back. */
export async function sufferClocks(stack: Stack, faults: readonly ClockFault[]): Promise<void> {
  await Promise.all(
    faults.map(async ({ whose, atMs, forMs }) => {
      await sleep(atMs);
      for (const each of whose) stack.clocks?.set(each, AHEAD_MS);
      await sleep(forMs);
      if (whose.includes('writer') && whose.includes('postgres')) await dropOldDays(stack);
      for (const each of whose) stack.clocks?.set(each, 0);
    }),
  );
}

/** What a writer does every ten minutes, by the wrong clock. */
async function dropOldDays(stack: Stack): Promise<void> {
  const job = new RetentionJob({
    databaseUrl: stack.directEnv.DATABASE_URL as string,
    installation: stack.stores.installation,
    retentionDays: 30,
    exportDir: null,
    now: () => Date.now() + AHEAD_MS,
    log: QUIET,
  });
  try {
    await until(() => runOnce(job));
  } finally {
    await job.stop();
  }
}

/** @returns whether it is done: Postgres may be away, or a flush may have the locks */
async function runOnce(job: RetentionJob): Promise<boolean> {
  try {
    return (await job.runOnce()) === 'done';
  } catch (error) {
    if (!isPostgresUnavailable(error)) throw error;
    return false;
  }
}
