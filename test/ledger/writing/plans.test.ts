import { afterAll, beforeAll, expect, it } from 'vitest';
import { Reconciler } from '../../../src/ledger/reconcile/reconciler.ts';
import { Hydrator } from '../../../src/ledger/wallets/hydrate.ts';
import { uuidv7 } from '../../../src/platform/ids.ts';
import { openPostgres, PostgresSession } from '../../../src/platform/postgres.ts';
import { QUIET } from '../../support/store.ts';
import { until } from '../../support/wait.ts';
import { Ledger, newEvent } from '../support.ts';

let ledger: Ledger;
beforeAll(async () => {
  ledger = await Ledger.open();
});
afterAll(() => ledger.close());

/** From the sixth execution on, Postgres prefers a generic plan and keeps it for the life of the connection. */
const TIMES = 8;
const TABLES = ['accounts', 'balances', 'credits', 'entries', 'free_usage', 'tag_days', 'tag_months'];

it('no cached plan reads a whole table, even if it was made while the tables were small', async () => {
  const { redis, keys } = ledger.store;
  const serviceId = uuidv7();
  const setUp = new PostgresSession({ url: ledger.databaseUrl, applicationName: 'test' });
  await setUp.query('SET enable_seqscan = off');
  const rounds = Array.from({ length: TIMES }, () => Array.from({ length: 5 }, () => uuidv7()));
  for (const id of rounds.flat()) {
    await setUp.query('INSERT INTO accounts (id, owner_id) VALUES ($1, $2)', [id, 'buyer']);
    await setUp.query('INSERT INTO balances VALUES ($1, $2, 1000000)', [id, 'wallet']);
    await setUp.query('INSERT INTO free_usage VALUES ($1, $2, 1)', [id, serviceId]);
    await setUp.query('INSERT INTO tag_months VALUES ($1, $2, $3)', [id, '2026-11-01', 'a']);
    await setUp.query('INSERT INTO tag_days VALUES ($1, $2, $3, 1, 0, 1, 1, 1)', [id, '2026-11-20', 'a']);
  }
  // With these statistics, reading a whole table is cheapest.
  await setUp.query(`ANALYZE ${TABLES.join(', ')}`);
  setUp.close();

  const sql = openPostgres({ url: ledger.databaseUrl, maxConnections: 1, applicationName: 'test' });
  const hydrator = new Hydrator({ databaseUrl: ledger.databaseUrl, sql, redis, keys, log: QUIET });
  const reconciler = new Reconciler({ sql, redis, keys });
  const writer = ledger.startWriter();
  for (const accountIds of rounds) {
    for (const id of accountIds) await hydrator.loadWallet(id);
    const tagged = ['a', 'b'].map((tag) => ({ serviceId, tag, admittedAtMs: Date.UTC(2026, 10, 20) }));
    await ledger.append(...accountIds.flatMap((accountId) => tagged.map((given) => newEvent({ accountId, ...given }))));
    await ledger.drained();
    await reconciler.run('test');
  }
  // A connection reports its statistics when it ends.
  await writer.stop();
  hydrator.close();
  await sql.end();

  type Row = { table: string; looked: boolean; rows: number };
  const read = () => ledger.sql<Row[]>`
    SELECT relname AS table, idx_scan > 0 AS looked, seq_tup_read AS rows
    FROM pg_stat_user_tables WHERE relname = ANY(${TABLES}::text[]) ORDER BY 1`;
  await until(async () => (await read()).every(({ looked }) => looked));
  expect(await read()).toEqual(TABLES.map((table) => ({ table, looked: true, rows: 0 })));
});
