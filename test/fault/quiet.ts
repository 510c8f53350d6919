// The end of a schedule: what it waits for before the books are checked.

import { setTimeout as sleep } from 'node:timers/promises';
import { isRedisUnavailable } from '../../src/platform/redis.ts';
import type { Buyer, Market } from './market.ts';
import type { Stack } from './stack.ts';

/** Limit for recovery, far beyond every timeout, back-off and restart on the way. After it the schedule fails. */
const QUIET_WITHIN_MS = 60_000;

type Options = {
  /** Those who must be served again. */
  readonly buyers: readonly Buyer[];
  /** Ends the holds of the dead, as the writer would later. */
  readonly sweep: () => Promise<void>;
};

/** Waits until everything works again, no hold is open, and every event is in Postgres. */
export async function becomeQuiet(stack: Stack, market: Market, options: Options): Promise<void> {
  const deadline = performance.now() + QUIET_WITHIN_MS;
  let left = 'nothing was looked at';
  const unserved = new Set(options.buyers);
  // Two quiet looks in a row: a late admission may open a hold between the reading of the holds and of the streams.
  for (let quiet = 0; quiet < 2; ) {
    if (performance.now() > deadline) throw new Error(`not quiet within ${QUIET_WITHIN_MS} ms: ${left}`);
    try {
      await Promise.all([stack.service, stack.gateway, ...stack.writers].map((program) => program.ensure()));
      left = (await whoIsLeft(market, unserved)) || (await whatIsLeft(stack, market, options));
    } catch (error) {
      // The test's own connection to Redis comes back a little later than Redis.
      if (!isRedisUnavailable(error)) throw error;
      left = String(error);
    }
    quiet = left === '' ? quiet + 1 : 0;
    await sleep(10);
  }
}

/** Calls for buyers until each was served. The calls themselves leave settlements under way, so nobody is served twice. */
async function whoIsLeft(market: Market, unserved: Set<Buyer>): Promise<string> {
  for (const buyer of unserved) if (await market.serves(buyer)) unserved.delete(buyer);
  return unserved.size === 0 ? '' : `${unserved.size} buyers are not served yet`;
}

async function whatIsLeft(stack: Stack, market: Market, { sweep }: Options): Promise<string> {
  const { redis, keys, sql } = stack.stores;
  if ((await market.nudge()) === 0) return 'the gateway does not answer';
  const open = await stack.gauges(['tollgate_calls_open', 'tollgate_settlements_unconfirmed']);
  if (open !== 0) return `${open ?? 'unknown'} calls open or not confirmed`;
  await sweep();
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
