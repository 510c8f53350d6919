import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { selectStatement } from '../../../src/accounts/statement-sql.ts';
import { buildSources } from '../../support/build.ts';
import { ledger, useLedger } from '../use-ledger.ts';
import { dayTables, eventsOf, jobOptions, newExportDir, newJob, store } from './support.ts';

useLedger();

let build: string;
beforeAll(() => {
  build = buildSources();
});

/** Makes a round in a process that dies at this step. @returns the signal that ended it */
async function dieAt(step: 'closed' | 'exported', lastDay: string, exportDir: string): Promise<unknown> {
  const { now, log, ...options } = await jobOptions(lastDay, { exportDir });
  const settings = JSON.stringify({ ...options, now: now?.(), dieAt: step });
  const file = path.resolve('test/ledger/fixtures/retention-process.mjs');
  const child = spawn(process.execPath, [file, build, settings], { stdio: ['ignore', 'ignore', 'inherit'] });
  const [, signal] = await once(child, 'exit');
  return signal;
}

const statementOf = (accountId: string) =>
  selectStatement(ledger.sql, { accountId, ledger: 'wallet', fromMs: null, toMs: null, before: null, limit: 100 });

it.each([
  ['closed', '2011-01-01', '2011-01-02'],
  ['exported', '2011-02-01', '2011-02-02'],
] as const)(
  'a process killed when a day is %s loses no call and no money, and the next process continues',
  async (step, first, last) => {
    const days = [first, last];
    const accountId = await ledger.account(1_000_000);
    const events = days.flatMap((day) => eventsOf(day, { accountId }));
    await store(days, events);
    const [statement, books] = [await statementOf(accountId), await ledger.sql`SELECT * FROM balances ORDER BY 1, 2`];
    const exportDir = newExportDir();
    expect(await dieAt(step, last, exportDir)).toBe('SIGKILL');

    const closed = `calls_closed_${first.replaceAll('-', '')}`;
    expect(await dayTables()).toContain(closed);
    const [left] = await ledger.sql.unsafe<{ n: number }>(`SELECT count(*)::int AS n FROM ${closed}`);
    expect(left?.n).toBe(9);
    // Nor does what comes late to the day that is half gone.
    await ledger.append(...events.slice(0, 3));
    const writer = ledger.startWriter();
    await ledger.drained();
    expect(writer.stats()).toMatchObject({ storedCalls: 0, rejectedEvents: 3 });

    expect(await (await newJob(last, { exportDir })).runOnce()).toBe('done');
    expect(await dayTables()).toEqual([]);
    expect(readdirSync(exportDir)).toHaveLength(4);
    const manifests = days.map((day) => JSON.parse(readFileSync(path.join(exportDir, `calls-${day}.json`), 'utf8')));
    expect(manifests.map(({ calls }) => calls)).toEqual([9, 9]);
    expect(await statementOf(accountId)).toEqual(statement);
    expect(await ledger.sql`SELECT * FROM balances ORDER BY 1, 2`).toEqual(books);
  },
);
