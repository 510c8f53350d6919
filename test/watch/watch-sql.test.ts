import { expect, it } from 'vitest';
import { closeListingsOf } from '../../src/catalog/sql.ts';
import { writeReachable } from '../../src/watch/watch-sql.ts';
import { addAccount, addService } from '../support/accounts.ts';
import { sql, useDatabase } from '../support/use-database.ts';
import { until } from '../support/wait.ts';

useDatabase();

const isSomebodyWaiting = async (): Promise<boolean> => {
  const [row] = await sql`SELECT count(*)::int AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock'`;
  return row?.n > 0;
};
const endpoints = () => sql`SELECT endpoint, reachable FROM service_watch WHERE endpoint IS NOT NULL`;

it('what was found about an endpoint does not outlive the closing of its account, whichever comes first', async () => {
  const provider = await addAccount(sql, 'provider');
  const id = await addService(sql, provider.accountId);
  let writing: Promise<void> | undefined;
  await sql.begin(async (tx) => {
    await closeListingsOf(tx, provider.accountId);
    writing = writeReachable(sql, id, 'http://localhost/', true);
    await until(isSomebodyWaiting);
  });
  await writing;
  expect(await endpoints()).toEqual([]);

  const other = await addAccount(sql, 'provider');
  const second = await addService(sql, other.accountId);
  let closing: Promise<unknown> | undefined;
  await sql.begin(async (tx) => {
    await writeReachable(tx as unknown as typeof sql, second, 'http://localhost/', true);
    closing = sql.begin((closer) => closeListingsOf(closer, other.accountId));
    await until(isSomebodyWaiting);
  });
  await closing;
  expect(await endpoints()).toEqual([]);
});
