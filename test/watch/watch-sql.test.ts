import { expect, it } from 'vitest';
import { closeListingsOf } from '../../src/catalog/sql.ts';
import { selectFound, selectUptimes, writeChecks, writeReachable } from '../../src/watch/watch-sql.ts';
import { addAccount, addService } from '../support/accounts.ts';
import { sql, useDatabase } from '../support/use-database.ts';
import { until } from '../support/wait.ts';

useDatabase();

const isSomebodyWaiting = async (): Promise<boolean> => {
  const [row] = await sql`SELECT count(*)::int AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock'`;
  return row?.n > 0;
};
const endpoints = () => sql`SELECT endpoint, reachable FROM service_watch WHERE endpoint IS NOT NULL`;

it('what was found about an endpoint is deleted when its account is closed, in either order of the two events', async () => {
  const provider = await addAccount(sql, 'provider');
  const id = await addService(sql, provider.accountId);
  let writing: Promise<void> | undefined;
  await sql.begin(async (tx) => {
    await closeListingsOf(tx, provider.accountId);
    writing = writeReachable(sql, id, 'http://localhost/', { status: 200, failure: null });
    await until(isSomebodyWaiting);
  });
  await writing;
  expect(await endpoints()).toEqual([]);

  const other = await addAccount(sql, 'provider');
  const second = await addService(sql, other.accountId);
  let closing: Promise<unknown> | undefined;
  await sql.begin(async (tx) => {
    await writeReachable(tx as unknown as typeof sql, second, 'http://localhost/', { status: 200, failure: null });
    closing = sql.begin((closer) => closeListingsOf(closer, other.accountId));
    await until(isSomebodyWaiting);
  });
  await closing;
  expect(await endpoints()).toEqual([]);
});

it('the first answer from a URL is shown to the provider and not counted in uptime; later ones count until the URL changes', async () => {
  const provider = await addAccount(sql, 'provider');
  const id = await addService(sql, provider.accountId);
  await sql`UPDATE services SET health_path = '/health' WHERE id = ${id}`;
  const [{ endpoint }] = (await sql`SELECT endpoint FROM services WHERE id = ${id}`) as unknown as [
    { endpoint: string },
  ];
  await sql`INSERT INTO service_watch (service_id) VALUES (${id})`;
  const check = (healthPath: string, status: number) =>
    writeChecks(sql, [{ id, endpoint, healthPath, status, failure: null }]);
  const uptime = async () => (await selectUptimes(sql)).get(id);
  const health = async () => (await selectFound(sql, [id])).get(id)?.health;

  expect(await health()).toBeUndefined();
  await check('/health', 404);
  expect(await health()).toMatchObject({ up: false, status: 404 });
  expect(await uptime()).toBeUndefined();
  await check('/health', 200);
  expect(await health()).toMatchObject({ up: true, status: 200, reason: undefined });
  expect(await uptime()).toEqual({ last_24_hours: 100, last_30_days: 100 });
  await check('/health', 503);
  expect(await uptime()).toEqual({ last_24_hours: 50, last_30_days: 50 });
  await sql`UPDATE services SET health_path = '/other' WHERE id = ${id}`;
  expect(await health()).toBeUndefined();
  await check('/other', 500);
  expect(await uptime()).toEqual({ last_24_hours: 50, last_30_days: 50 });
  await check('/other', 500);
  expect((await uptime())?.last_30_days).toBe(33.33);
});
