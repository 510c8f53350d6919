// Checks of the books when nothing is under way any more. Each check returns in words what is wrong.

import { readFileSync } from 'node:fs';
import { ApiError } from '../../src/errors.ts';
import { Corrector } from '../../src/ledger/reconcile/corrector.ts';
import type { Drift } from '../../src/ledger/reconcile/report.ts';
import { RedisReplaced } from '../../src/ledger/reconcile/shard-view.ts';
import { feeMicros } from '../../src/ledger/usage-event.ts';
import { uuidv7 } from '../../src/platform/ids.ts';
import { freeField } from '../../src/platform/redis-keys.ts';
import { Reconcilers } from '../../src/roles/upkeep.ts';
import { readBooksQueries } from '../support/books-queries.ts';
import { WRONG_REFUND_SUMS } from '../support/refund-sums.ts';
import { untilAnswered } from './answered.ts';
import { budgetsOf } from './budgets.ts';
import type { Told } from './callers.ts';
import { reportOf } from './fixtures/reports.mjs';
import { isSumOf } from './losses.ts';
import type { Buyer, Listing, Market } from './market.ts';
import type { Stack } from './stack.ts';
import { CEILING_MICROS, tagOf } from './wishes.ts';

/** The platform's default share of a charge (config/settings.ts). */
const FEE_BASIS_POINTS = 1_000;

export type Row = {
  readonly usageId: string;
  readonly accountId: string;
  readonly keyId: string;
  readonly serviceId: string;
  /** What followed the service's id. */
  readonly path: string;
  readonly admittedAtMs: number;
  readonly outcome: string;
  readonly status: number;
  readonly tag: string | null;
  readonly amountMicros: number;
  readonly feeMicros: number;
  readonly freeTier: boolean;
  /** What was given back of it. */
  readonly refundedMicros: number;
  /** Only for a call priced by use. */
  readonly authorizedMicros: number | null;
  readonly isClamped: boolean | null;
};

export async function readRecords({ stores }: Stack, buyers: readonly Buyer[]): Promise<Row[]> {
  const ids = buyers.map(({ key }) => key.account_id);
  return stores.sql<Row[]>`
    SELECT usage_id AS "usageId", account_id AS "accountId", key_id AS "keyId", service_id AS "serviceId", path,
           (extract(epoch FROM created_at) * 1000)::bigint AS "admittedAtMs", outcome, status::int, tag,
           amount AS "amountMicros", fee AS "feeMicros", free_tier AS "freeTier",
           authorized AS "authorizedMicros", clamped AS "isClamped",
           (SELECT coalesce(sum(r.amount), 0)::bigint FROM refunds r WHERE r.usage_id = calls.usage_id) AS "refundedMicros"
    FROM calls WHERE account_id = ANY(${ids}::uuid[])`;
}

/** Usage ids of all calls that ever reached the service. */
export function readSeen({ seenFile }: Stack): Set<string> {
  return new Set(readFileSync(seenFile, 'utf8').split('\n').filter(Boolean));
}

/** Each call has one record, with the listed price or what its service reported. */
export function checkRecords(
  rows: readonly Row[],
  { listings }: Pick<Market, 'listings'>,
  buyers: readonly Buyer[],
  told: readonly Told[],
): string[] {
  const faults: string[] = [];
  const ids = new Set<string>();
  const complete = new Set(told.flatMap((call) => (call.complete ? [call.requestId] : [])));
  for (const row of rows) {
    if (ids.has(row.usageId)) faults.push(`two records of ${row.usageId}`);
    ids.add(row.usageId);
    const listing = listings.find(({ id }) => id === row.serviceId) as Listing;
    const isPaid = row.outcome === 'completed' && !row.freeTier;
    const price = isPaid ? costOf(row, listing) : 0;
    // The service may have been cut while the gateway read on for the report, after its caller had left: then all that was held.
    const mayBeWhole = isPaid && listing.maxMicros !== null && !complete.has(row.usageId);
    if (row.amountMicros !== price && !(mayBeWhole && row.amountMicros === row.authorizedMicros))
      faults.push(`${row.usageId}, ${row.outcome}: ${row.amountMicros}, not ${price}`);
    const hasBudget = buyers.some((buyer) => budgetsOf(buyer, row.keyId).length > 0);
    faults.push(...faultsOfUse(row, listing, hasBudget));
    if (row.tag !== tagOf(row.path)) faults.push(`tag of ${row.usageId}: ${row.tag}, not ${tagOf(row.path)}`);
    if (row.feeMicros !== feeMicros(row.amountMicros, FEE_BASIS_POINTS)) faults.push(`fee of ${row.usageId}`);
  }
  return faults;
}

/** What a completed call costs that is not free. */
function costOf({ usageId, authorizedMicros }: Row, { priceMicros, maxMicros }: Listing): number {
  if (maxMicros === null) return priceMicros;
  return Math.min(reportOf(usageId).micros ?? priceMicros, authorizedMicros ?? 0);
}

/** @param hasBudget  then less may be authorised: what the budget has left, but no less than the price */
function faultsOfUse(
  { usageId, outcome, authorizedMicros, isClamped }: Row,
  { priceMicros, maxMicros }: Listing,
  hasBudget: boolean,
): string[] {
  if (maxMicros === null || authorizedMicros === null) {
    const isRight = maxMicros === authorizedMicros && isClamped === null;
    return isRight ? [] : [`${usageId}: ${authorizedMicros} authorized of ${maxMicros}`];
  }
  const isOver = Number(reportOf(usageId).micros) > authorizedMicros;
  const isLowered = hasBudget && authorizedMicros >= priceMicros && authorizedMicros < maxMicros;
  const isKnown = isLowered || [maxMicros, CEILING_MICROS].includes(authorizedMicros);
  return [
    ...(isKnown ? [] : [`${usageId}: ${authorizedMicros} authorized`]),
    ...(isClamped && !(isOver && outcome === 'completed') ? [`${usageId} is clamped, but reported no more`] : []),
  ];
}

/**
 * wallet = credits + refunds − charges, in Postgres and in Redis; free calls used = free calls served ≤ quota. In Redis the wallet may lack the
 * charges of some of the calls that a failover may have lost, and then the drift that is reported is exactly these. If the wallet was
 * repaired meanwhile, it is what Postgres has, and what it had too much may have been spent, and free calls beyond the quota.
 *
 * @param mayBeLost  stored calls that the wallet in Redis may not know
 * @param reported   the account's drift by the comparison; undefined: it agrees
 */
export async function checkBuyer(
  stack: Stack,
  buyer: Buyer,
  { all, listings, mayBeLost, reported }: BuyerEvidence,
): Promise<string[]> {
  const { redis, keys, sql } = stack.stores;
  const faults: string[] = [];
  const id = buyer.key.account_id;
  const rows = all.filter(({ accountId }) => accountId === id);
  const expected = buyer.creditedMicros - rows.reduce((sum, row) => sum + row.amountMicros - row.refundedMicros, 0);
  const wallet = keys.wallet(keys.shardOf(id), id);
  // In one step: a wallet in doubt may leave Redis at any moment, to be loaded again.
  const fields = (await redis.command('hgetall', [wallet])) as Record<string, string>;
  const { balance: live = null } = fields;
  const [settled] = await sql<{ balance: number }[]>`
    SELECT balance FROM balances WHERE account_id = ${id} AND ledger = 'wallet'`;
  const lost = rows.filter(mayBeLost);
  const drift = live === null ? 0 : Number(live) - expected;
  const amounts = lost.map(({ amountMicros }) => amountMicros);
  if (drift < 0 || !isSumOf(drift, amounts)) {
    faults.push(`wallet of ${id}: ${live} in redis, not ${expected}; calls that may be lost: ${amounts.join(', ')}`);
  }
  if (drift !== (reported?.driftMicros ?? 0)) {
    faults.push(`wallet of ${id}: off by ${drift}, but the comparison says ${reported?.driftMicros ?? 0}`);
  }
  if (Number(settled?.balance) !== expected)
    faults.push(`wallet of ${id}: ${settled?.balance} settled, not ${expected}`);
  if (expected + amounts.reduce((sum, amount) => sum + amount, 0) < 0) faults.push(`${id} is at ${expected}`);
  for (const listing of listings) {
    const served = rows.filter((row) => row.freeTier && row.outcome === 'completed' && row.serviceId === listing.id);
    const used = live === null ? served.length : Number(fields[freeField(listing.id)] ?? 0);
    const lostHere = served.filter(mayBeLost).length;
    const [kept] = await sql<{ used: number }[]>`
      SELECT used FROM free_usage WHERE account_id = ${id} AND service_id = ${listing.id}`;
    const isRight =
      served.length === (kept?.used ?? 0) &&
      served.length <= listing.freeCalls + lostHere &&
      (used <= Math.min(served.length, listing.freeCalls) || used === served.length) &&
      used >= served.length - lostHere;
    const told = reported?.freeDrifts.find(({ serviceId }) => serviceId === listing.id);
    if (
      !isRight ||
      (told === undefined ? used !== served.length : told.used !== used || told.expected !== served.length)
    ) {
      const counts = [served.length, used, kept?.used ?? 0].join(', ');
      faults.push(`free calls of ${id} (served, redis, postgres): ${counts} of ${listing.freeCalls}, ${lostHere} lost`);
    }
  }
  return faults;
}

type BuyerEvidence = {
  readonly all: readonly Row[];
  readonly listings: readonly Listing[];
  readonly mayBeLost: (row: Row) => boolean;
  readonly reported: Drift | undefined;
};

/**
 * Compares Redis with Postgres, as the writer does. This may repair what can be proven. A replica that has just begun to follow gives Redis
 * another replication id: then the comparison begins again.
 *
 * @throws when a shard was not compared
 */
export const compare = (stack: Stack): Promise<Drift[]> =>
  untilAnswered(
    () => compareOnce(stack),
    (error) => error instanceof RedisReplaced,
  );

async function compareOnce({ stores }: Stack): Promise<Drift[]> {
  const drifts: Drift[] = [];
  for (const { reconciler } of new Reconcilers(stores).parts) {
    const { reports } = await reconciler.run('books');
    const failed = reports.find(({ compared }) => !compared);
    if (failed !== undefined) throw new Error(`shard ${failed.shard} was not compared`);
    drifts.push(...reports.flatMap((report) => report.drifts));
  }
  return drifts;
}

/** Ends drifts that stay, as docs/guarantees.md tells operators to do. One that has ended by itself meanwhile is refused as a conflict. */
export async function takeOut({ stores }: Stack, drifts: readonly Drift[]): Promise<void> {
  const corrector = new Corrector(stores);
  for (const { accountId } of drifts) {
    const decision = { accountId, believe: 'postgres', reason: 'a replica took over', reference: uuidv7() } as const;
    // Once per reference, however often it is asked for.
    await untilAnswered(
      () => corrector.correct(decision, { madeBy: 'schedule', record: async () => {} }),
      (error) => error instanceof ApiError && error.code === 'unavailable',
    ).catch((error: unknown) => {
      if (!(error instanceof ApiError && error.code === 'conflict')) throw error;
    });
  }
}

/** Repairs with a larger number than `after`, with their accounts and reasons. */
export function readRepairs({ stores }: Stack, after: number) {
  return stores.sql<{ id: number; accountId: string; reason: string; state: string }[]>`
    SELECT id, account_id AS "accountId", reason, state FROM repairs WHERE id > ${after} ORDER BY id`;
}

/** Checks of the whole installation: each statement returns rows only when something is wrong. */
export async function checkLedger(stack: Stack): Promise<string[]> {
  const { sql } = stack.stores;
  const faults: string[] = [];
  const expectNone = (what: string, rows: readonly object[]): void => {
    if (rows.length > 0) faults.push(`${what}: ${JSON.stringify(rows.slice(0, 5))}`);
  };
  const queries = readBooksQueries();
  expectNone('journal rows that do not sum to zero', await sql.unsafe(queries.journal));
  expectNone('balances that are not the sum of their entries', await sql.unsafe(queries.balances));
  expectNone(
    'earnings and fees that are not the charges without what was given back',
    await sql`
    SELECT charged, refunded, paid FROM (SELECT coalesce(sum(amount), 0) AS charged FROM calls) c,
      (SELECT coalesce(sum(amount), 0) AS refunded FROM refunds) r,
      (SELECT coalesce(sum(balance), 0) AS paid FROM balances WHERE ledger IN ('earnings', 'fees')) b
    WHERE charged - refunded <> paid`,
  );
  expectNone('refunds that are not what the journal moved', await sql.unsafe(queries.refunds));
  expectNone('sums of refunds that are not theirs', await sql.unsafe(WRONG_REFUND_SUMS));
  expectNone('events that could not be stored', await sql`SELECT shard, stream_id, error FROM rejected_events`);
  // A drift of money, of free calls, or holds of stored calls.
  expectNone('drift', await compare(stack));
  expectNone('charges that are not what the journal took', await sql.unsafe(queries.charges));
  return faults;
}
