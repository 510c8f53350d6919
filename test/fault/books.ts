// Checks of the books when nothing is under way any more. Each check returns in words what is wrong.

import { readFileSync } from 'node:fs';
import { Reconciler } from '../../src/ledger/reconcile/reconciler.ts';
import { feeMicros } from '../../src/ledger/usage-event.ts';
import { freeField } from '../../src/platform/redis-keys.ts';
import { readBooksQueries } from '../support/books-queries.ts';
import type { Buyer, Listing } from './market.ts';
import type { Stack } from './stack.ts';

/** The platform's default share of a charge (config/settings.ts). */
const FEE_BASIS_POINTS = 1_000;

export type Row = {
  readonly usageId: string;
  readonly accountId: string;
  readonly serviceId: string;
  readonly outcome: string;
  readonly status: number;
  readonly amountMicros: number;
  readonly feeMicros: number;
  readonly freeTier: boolean;
};

export async function readRecords({ stores }: Stack, buyers: readonly Buyer[]): Promise<Row[]> {
  const ids = buyers.map(({ key }) => key.account_id);
  return stores.sql<Row[]>`
    SELECT usage_id AS "usageId", account_id AS "accountId", service_id AS "serviceId", outcome, status::int,
           amount AS "amountMicros", fee AS "feeMicros", free_tier AS "freeTier"
    FROM calls WHERE account_id = ANY(${ids}::uuid[])`;
}

/** Usage ids of all calls that ever reached the service. */
export function readSeen({ seenFile }: Stack): Set<string> {
  return new Set(readFileSync(seenFile, 'utf8').split('\n').filter(Boolean));
}

/** Each call has one record, with the listed price. */
export function checkRecords(rows: readonly Row[], listings: readonly Listing[]): string[] {
  const faults: string[] = [];
  const ids = new Set<string>();
  for (const row of rows) {
    if (ids.has(row.usageId)) faults.push(`two records of ${row.usageId}`);
    ids.add(row.usageId);
    const listing = listings.find(({ id }) => id === row.serviceId) as Listing;
    const price = row.outcome === 'completed' && !row.freeTier ? listing.priceMicros : 0;
    if (row.amountMicros !== price) faults.push(`${row.usageId}, ${row.outcome}: ${row.amountMicros}, not ${price}`);
    if (row.feeMicros !== feeMicros(row.amountMicros, FEE_BASIS_POINTS)) faults.push(`fee of ${row.usageId}`);
  }
  return faults;
}

/** wallet = credits − charges, in Postgres and in Redis; free calls used = free calls served ≤ quota. */
export async function checkBuyer(stack: Stack, buyer: Buyer, all: readonly Row[], listings: readonly Listing[]) {
  const { redis, keys, sql } = stack.stores;
  const faults: string[] = [];
  const id = buyer.key.account_id;
  const rows = all.filter(({ accountId }) => accountId === id);
  const expected = buyer.creditedMicros - rows.reduce((sum, row) => sum + row.amountMicros, 0);
  const wallet = keys.wallet(keys.shardOf(id), id);
  const live = (await redis.command('hget', [wallet, 'balance'])) as string | null;
  const [settled] = await sql<{ balance: number }[]>`
    SELECT balance FROM balances WHERE account_id = ${id} AND ledger = 'wallet'`;
  if (live !== null && Number(live) !== expected) faults.push(`wallet of ${id}: ${live} in redis, not ${expected}`);
  if (Number(settled?.balance) !== expected)
    faults.push(`wallet of ${id}: ${settled?.balance} settled, not ${expected}`);
  if (expected < 0) faults.push(`${id} is at ${expected}`);
  for (const listing of listings) {
    const served = rows.filter((row) => row.freeTier && row.outcome === 'completed' && row.serviceId === listing.id);
    const counts = [served.length, Number(await redis.command('hget', [wallet, freeField(listing.id)]))];
    const [kept] = await sql<{ used: number }[]>`
      SELECT used FROM free_usage WHERE account_id = ${id} AND service_id = ${listing.id}`;
    if (live === null) counts.pop();
    counts.push(kept?.used ?? 0);
    if (counts.some((count) => count !== counts[0] || count > listing.freeCalls)) {
      faults.push(`free calls of ${id} (served, redis, postgres): ${counts.join(', ')} of ${listing.freeCalls}`);
    }
  }
  return faults;
}

/** Checks of the whole installation: each statement returns rows only when something is wrong. */
export async function checkLedger({ stores }: Stack): Promise<string[]> {
  const { sql, redis, keys } = stores;
  const faults: string[] = [];
  const expectNone = (what: string, rows: readonly object[]): void => {
    if (rows.length > 0) faults.push(`${what}: ${JSON.stringify(rows.slice(0, 5))}`);
  };
  const queries = readBooksQueries();
  expectNone('journal rows that do not sum to zero', await sql.unsafe(queries.journal));
  expectNone('balances that are not the sum of their entries', await sql.unsafe(queries.balances));
  expectNone(
    'earnings and fees that are not the charges',
    await sql`
    SELECT charged, paid FROM (SELECT coalesce(sum(amount), 0) AS charged FROM calls) c,
      (SELECT coalesce(sum(balance), 0) AS paid FROM balances WHERE ledger IN ('earnings', 'fees')) b
    WHERE charged <> paid`,
  );
  expectNone('events that could not be stored', await sql`SELECT shard, stream_id, error FROM rejected_events`);
  // This run may repair a drift; the check of `repairs` below still finds that drift.
  const { reports } = await new Reconciler({ sql, redis, keys }).run('books');
  // A drift of money, of free calls, or holds of stored calls. A shard that was not compared proves nothing.
  expectNone(
    'drift',
    reports.filter(({ compared, driftingAccounts }) => !compared || driftingAccounts !== 0),
  );
  expectNone('charges that are not what the journal took', await sql.unsafe(queries.charges));
  expectNone('repairs', await sql`SELECT account_id, reason, change, state FROM repairs`);
  return faults;
}
