// A primary with a standby that streams from it. A standby answers queries, gives locks and lags behind, so no session may use one.

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { isPostgresUnavailable, openPostgres, PostgresSession, type Sql } from '../../src/platform/postgres.ts';
import { hidingPooler } from '../support/hiding-pooler.ts';
import { SYNCHRONOUS, startTestPostgres, startTestStandby, type TestPostgres } from '../support/stores.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/wait.ts';

const INSTALLATION = '11111111-1111-4111-8111-111111111111';
let primary: TestPostgres;
let standby: TestPostgres;
let admin: Sql;
const opened: { end(): Promise<void> }[] = [];

beforeAll(async () => {
  primary = await startTestPostgres({ settings: SYNCHRONOUS });
  standby = await startTestStandby(primary);
  admin = openPostgres({ url: primary.url, maxConnections: 2, applicationName: 'admin' });
  await admin`CREATE TABLE stored (id int PRIMARY KEY)`;
  await admin`CREATE TABLE installation AS SELECT ${INSTALLATION}::uuid AS id`;
});
afterEach(() => Promise.all(opened.splice(0).map((pool) => pool.end())));
afterAll(async () => {
  await admin.end();
  await standby.stop();
  await primary.stop();
});

function open(url: string): Sql {
  const pool = openPostgres({ url, maxConnections: 2, applicationName: 'victim', installation: INSTALLATION });
  opened.push(pool);
  return pool;
}
const hosts = (...ports: number[]): string => {
  const { host } = new URL(primary.url);
  return primary.url.replace(host, ports.map((port) => `127.0.0.1:${port}`).join(','));
};
const portOf = async (sql: Sql): Promise<number> =>
  Number((await sql`SELECT current_setting('port') AS port`)[0]?.port);

describe('a standby', () => {
  it('is skipped for the next host of the URL, in any order of the hosts', async () => {
    for (const url of [hosts(standby.port, primary.port), hosts(primary.port, standby.port)]) {
      expect(await portOf(open(url))).toBe(primary.port);
    }
  });

  it('is not kept if it was chosen while the primary restarted', async () => {
    const sql = open(hosts(primary.port, standby.port));
    expect(await portOf(sql)).toBe(primary.port);
    await primary.stop();
    // Only the standby answers.
    await expect(sql`SELECT 1`).rejects.toThrow(/is a standby|closed|terminat|CONNECTION/);
    await expect(sql`SELECT 1`).rejects.toSatisfy(isPostgresUnavailable);
    await primary.restart();
    await until(async () => (await portOf(sql).catch(() => 0)) === primary.port);
  });

  it('is refused if the URL leads only to a standby, and dialled once a second', async () => {
    const proxy = await TcpProxy.open(standby.port);
    const sql = open(proxy.through(primary.url));
    const startedAt = performance.now();
    for (let i = 0; i < 20; i++) {
      const error = await sql`SELECT 1`.catch((reason: unknown) => reason);
      expect(isPostgresUnavailable(error)).toBe(true);
      expect(String(error)).toContain('is a standby');
    }
    expect(proxy.accepted).toBeLessThanOrEqual(1 + Math.floor((performance.now() - startedAt) / 1_000));
    const startedAgainAt = performance.now();
    await expect(open(hosts(standby.port, standby.port))`SELECT 1`).rejects.toThrow('is a standby');
    expect(performance.now() - startedAgainAt).toBeLessThan(1_000);
    // The name moves to the primary.
    proxy.leadTo(primary.port);
    await until(async () => (await portOf(sql).catch(() => 0)) === primary.port);
    await sql.end();
    await proxy.close();
  });

  it('that a pooler has put behind a session is detected by the next transaction, and the session ends', async () => {
    const pooler = await hidingPooler(standby.port);
    const session = new PostgresSession({ url: hosts(pooler.port), applicationName: 'victim' });
    expect(await session.query('SELECT pg_is_in_recovery() AS yes')).toMatchObject([{ yes: true }]);
    // A single statement that writes fails there.
    await expect(session.query('DELETE FROM stored')).rejects.toSatisfy(isPostgresUnavailable);
    let isBegun = false;
    const begun = session.transaction(async () => {
      isBegun = true;
    });
    await expect(begun).rejects.toSatisfy(isPostgresUnavailable);
    expect(isBegun).toBe(false);
    expect(session.open).toBe(false);
    await pooler.close();
  });
});

describe('a commit whose wait for the synchronous standby is cancelled', () => {
  it('counts as failed and ends the session; the next commit, which waits, succeeds as usual', async () => {
    const session = new PostgresSession({ url: primary.url, applicationName: 'waits' });
    const store = (id: number) => session.transaction(() => session.query('INSERT INTO stored VALUES ($1)', [id]));
    await store(1);
    await standby.stop();
    const storing = store(2).then(
      () => null,
      (error: unknown) => error,
    );
    await until(async () => (await waiting()).length === 1);
    await admin`SELECT pg_cancel_backend(${(await waiting())[0]?.pid as number})`;
    const error = await storing;
    expect(isPostgresUnavailable(error)).toBe(true);
    expect(String(error)).toContain('committed with a warning');
    expect(session.open).toBe(false);
    // It is there, on this server only.
    expect([...(await admin`SELECT id FROM stored ORDER BY id`)]).toEqual([{ id: 1 }, { id: 2 }]);
    await standby.restart();
    await open(primary.url).begin((tx) => tx`INSERT INTO stored VALUES (3)`);
  });

  const waiting = () =>
    admin<{ pid: number }[]>`
      SELECT pid FROM pg_stat_activity WHERE application_name = 'waits' AND wait_event = 'SyncRep'`;
});
