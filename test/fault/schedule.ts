// One schedule: load, faults, healing, and the books.

import { setTimeout as sleep } from 'node:timers/promises';
import { isRedisUnavailable } from '../../src/platform/redis.ts';
import { checkBuyer, checkLedger, checkRecords, type Row, readRecords, readSeen } from './books.ts';
import { Caller, type Told } from './callers.ts';
import { type Heal, inflict } from './faults.ts';
import { sweepDead } from './leases.ts';
import type { Buyer, Market } from './market.ts';
import { losesGateway, type Plan } from './plan.ts';
import { checkPromises, type Exception } from './promises.ts';
import type { Stack } from './stack.ts';
import { Witness } from './witness.ts';

/** Limit for recovery, far beyond every timeout, back-off and restart on the way. After it the schedule fails. */
const QUIET_WITHIN_MS = 20_000;

export type Outcome = {
  /** What is wrong, in words; empty when all is well. */
  readonly faults: readonly string[];
  readonly told: readonly Told[];
  readonly rows: readonly Row[];
  readonly exceptions: ReadonlyMap<Exception, number>;
  readonly looks: number;
  /** From the end of the last fault until nothing was under way any more. */
  readonly recoveryMs: number;
};

export async function runSchedule(stack: Stack, market: Market, plan: Plan): Promise<Outcome> {
  const buyers = await market.buyers(plan);
  const seenBefore = readSeen(stack);
  const witness = new Witness(stack, buyers, market.listings);
  const startedAt = performance.now();
  const isOver = (): boolean => performance.now() - startedAt >= plan.loadMs;
  const url = stack.links['caller-gateway'].through(stack.gatewayUrl).replace(/\/$/, '');
  const callers = plan.callers.map(({ buyer, seed }) => new Caller(url, buyers[buyer] as Buyer, market.listings, seed));
  await Promise.all([
    ...callers.map((caller) => caller.run(isOver)),
    ...plan.laterCredits.map(async ({ buyer, atMs, micros }, i) => {
      await sleep(atMs);
      const { key } = buyers[buyer] as Buyer;
      await market.creditUntilDone(buyers[buyer] as Buyer, micros, `later ${key.key_id} ${i}`);
    }),
    ...plan.faults.map(async (fault) => {
      await sleep(fault.atMs);
      const heal: Heal = await inflict(stack, fault);
      await sleep(fault.forMs);
      await heal();
    }),
  ]);
  const healedAt = performance.now();
  await becomeQuiet(stack, market);
  const recoveryMs = performance.now() - healedAt;
  await witness.stop();
  const rows = await readRecords(stack, buyers);
  const seen = readSeen(stack);
  const told = callers.flatMap((caller) => caller.told);
  const evidence = { told, rows, seen, held: witness.held, losesGateway: losesGateway(plan) };
  const { faults, exceptions } = checkPromises(evidence);
  const found = [
    ...faults,
    ...witness.faults,
    ...checkRecords(rows, market.listings),
    ...(await Promise.all(buyers.map((buyer) => checkBuyer(stack, buyer, rows, market.listings)))).flat(),
    ...(await checkLedger(stack)),
    ...(await unrecorded(stack, seen, seenBefore)),
  ];
  return { faults: found, told, rows, exceptions, looks: witness.looks, recoveryMs };
}

/** Waits until everything works again, no hold is open, and every event is in Postgres. */
async function becomeQuiet(stack: Stack, market: Market): Promise<void> {
  const deadline = performance.now() + QUIET_WITHIN_MS;
  let left = 'nothing was looked at';
  // Two quiet looks in a row: a late admission may open a hold between the reading of the holds and of the streams.
  for (let quiet = 0; quiet < 2; ) {
    if (performance.now() > deadline) throw new Error(`not quiet within ${QUIET_WITHIN_MS} ms: ${left}`);
    try {
      await Promise.all([stack.service.ensure(), stack.writer.ensure(), stack.gateway.ensure()]);
      left = await whatIsLeft(stack, market);
    } catch (error) {
      // The test's own connection to Redis comes back a little later than Redis.
      if (!isRedisUnavailable(error)) throw error;
      left = String(error);
    }
    quiet = left === '' ? quiet + 1 : 0;
    await sleep(10);
  }
}

async function whatIsLeft(stack: Stack, market: Market): Promise<string> {
  const { redis, keys, sql } = stack.stores;
  if ((await market.nudge()) === 0) return 'the gateway does not answer';
  const open = await stack.gauges(['tollgate_calls_open', 'tollgate_settlements_unconfirmed']);
  if (open !== 0) return `${open ?? 'unknown'} calls open or not confirmed`;
  await sweepDead(stack);
  const holds = (await Promise.all(keys.open.map((name) => redis.command('hvals', [name])))) as string[][];
  const held = holds.flat().filter((hold) => !hold.startsWith('x'));
  if (held.length > 0) return `held: ${JSON.stringify(held.slice(0, 3))}, workers ${JSON.stringify(stack.workers())}`;
  const waiting = (await Promise.all(keys.usage.map((name) => redis.command('xlen', [name])))) as number[];
  const events = waiting.reduce((sum, length) => sum + length, 0);
  if (events > 0) return `${events} events in the streams`;
  // These credits were confirmed once they were in Postgres. The writer carries them to wallets that could not be reached.
  const credits = await sql<object[]>`SELECT seq FROM credits WHERE applied_at IS NULL`;
  return credits.length === 0 ? '' : `${credits.length} credits that no wallet has yet`;
}

/** Calls that reached the service but have no record. */
async function unrecorded(
  { stores }: Stack,
  seen: ReadonlySet<string>,
  before: ReadonlySet<string>,
): Promise<string[]> {
  const ids = [...seen].filter((id) => !before.has(id));
  const rows = await stores.sql<{ id: string }[]>`
    SELECT id FROM unnest(${ids}::uuid[]) AS id WHERE NOT EXISTS (SELECT FROM calls WHERE usage_id = id)`;
  return rows.map(({ id }) => `served, but there is no record of ${id}`);
}
