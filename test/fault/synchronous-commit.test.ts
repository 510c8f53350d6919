// Kills a Postgres whose configuration acknowledges commits before they are on the disk: acknowledged data must still be there.
// The writer deletes events from Redis after that acknowledgement, so anything Postgres loses would be lost for good.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { openPostgres } from '../../src/platform/postgres.ts';
import { echo, Marketplace, startService, type TestService } from '../integration/marketplace.ts';
import { startTestPostgres, type TestStore } from '../support/stores.ts';

const CALLS = 50;
const PRICE_USD = 0.001;
/** The longest delay that Postgres allows for asynchronous commits, so that all commits of the test fall into it. */
const LAZY = { synchronous_commit: 'off', wal_writer_delay: '10s' };

let store: TestStore;
let market: Marketplace;
let service: TestService;

beforeAll(async () => {
  store = await startTestPostgres({ durable: true, settings: LAZY });
  service = await startService(echo);
  market = await Marketplace.start({ DATABASE_URL: store.url });
});
afterAll(async () => {
  await market.stop();
  await service.close();
  await store.stop();
});

it('stored calls and credits survive an immediate stop of a Postgres configured with synchronous_commit=off', async () => {
  const path = await market.service({ endpoint: service.url, price: PRICE_USD });
  const buyer = await market.buyer(1);
  for (let i = 0; i < CALLS; i++) {
    const response = await market.request(path, { key: buyer });
    expect(response.status).toBe(200);
    await response.arrayBuffer();
  }
  // Postgres has acknowledged everything: no event waits in Redis any more.
  await market.settled();
  await market.credit(buyer, 2, 'the last one');

  await store.kill();
  await store.restart();
  const sql = openPostgres({ url: store.url, maxConnections: 1, applicationName: 'test' });
  const rows = await sql`
    SELECT (SELECT count(*)::int FROM calls) AS calls, (SELECT count(*)::int FROM credits) AS credits,
           (SELECT balance FROM balances WHERE account_id = ${buyer.account_id} AND ledger = 'wallet') AS balance`;
  expect([...rows]).toEqual([{ calls: CALLS, credits: 2, balance: 3_000_000 - CALLS * 1_000 }]);
  await sql.end();
});

it('a start logs a warning for a Postgres with fsync or full_page_writes off, and none for a safe one', async () => {
  const warningsOf = ({ log }: Marketplace): string[] =>
    log.lines.filter((line) => line.includes('postgres runs with'));
  expect(warningsOf(market)).toEqual([]);
  // The Postgres that all test files share has both off.
  const careless = await Marketplace.start();
  await careless.stop();
  expect(warningsOf(careless).sort()).toEqual([
    expect.stringContaining('fsync=off'),
    expect.stringContaining('full_page_writes=off'),
  ]);
});
