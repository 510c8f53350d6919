// The end of a history for one account: Postgres is the sum of what happened, and Redis is the same to the micro-dollar.

import type { Drift } from '../../../src/ledger/reconcile/report.ts';
import { freeField } from '../../../src/platform/redis-keys.ts';
import { untilAnswered } from '../answered.ts';
import type { Row } from '../books.ts';
import type { Listing } from '../market.ts';
import type { Stack } from '../stack.ts';

export type WalletEvidence = {
  readonly rows: readonly Row[];
  readonly listings: readonly Listing[];
  /** Sum of the account's credits and debits in Postgres. */
  readonly movedMicros: number;
  /** What the comparison reports, where that is allowed. */
  readonly reported: Pick<Drift, 'driftMicros' | 'freeDrifts'> | null;
  /** At most as much may have been spent that was not there, for a while. */
  readonly overspentMicros: number;
  /** Whether this call may have been forgotten for a while, so that there was a free call too many. */
  readonly mayBeForgotten: (row: Row) => boolean;
};

export async function checkWallet(stack: Stack, accountId: string, evidence: WalletEvidence): Promise<string[]> {
  const { redis, keys, sql } = stack.stores;
  const faults: string[] = [];
  const rows = evidence.rows.filter((row) => row.accountId === accountId);
  const expected = evidence.movedMicros - rows.reduce((sum, row) => sum + row.amountMicros, 0);
  const wallet = keys.wallet(keys.shardOf(accountId), accountId);
  // In one step: a wallet in doubt may leave Redis at any moment, to be loaded again.
  const fields = (await untilAnswered(() => redis.command('hgetall', [wallet]))) as Record<string, string>;
  const { balance: inRedis = null } = fields;
  const [settled] = await sql<{ balance: string }[]>`
    SELECT balance::text FROM balances WHERE account_id = ${accountId} AND ledger = 'wallet'`;
  const wrong = (what: string): void => void faults.push(`wallet of ${accountId}: ${what}`);
  if (Number(settled?.balance) !== expected) wrong(`${settled?.balance} in postgres, not ${expected}`);
  if (inRedis !== null && Number(inRedis) !== expected + (evidence.reported?.driftMicros ?? 0))
    wrong(`${inRedis} in redis, not ${expected}`);
  if (-expected > evidence.overspentMicros)
    wrong(`it is at ${expected}, but had at most ${evidence.overspentMicros} too much`);
  for (const { id, freeCalls } of evidence.listings) {
    const served = rows.filter((row) => row.freeTier && row.outcome === 'completed' && row.serviceId === id);
    const [kept] = await sql<{ used: number }[]>`
      SELECT used FROM free_usage WHERE account_id = ${accountId} AND service_id = ${id}`;
    const inPostgres = kept?.used ?? 0;
    const used = inRedis === null ? inPostgres : Number(fields[freeField(id)] ?? 0);
    const drift = evidence.reported?.freeDrifts.find(({ serviceId }) => serviceId === id);
    const tooMany = drift === undefined ? 0 : drift.used - drift.expected;
    const atMost = freeCalls + served.filter(evidence.mayBeForgotten).length;
    if (served.length !== inPostgres || served.length !== used - tooMany || served.length > atMost)
      wrong(
        `free calls of ${id}: ${served.length} served, ${used} in redis, ${inPostgres} in postgres, at most ${atMost}`,
      );
  }
  return faults;
}
