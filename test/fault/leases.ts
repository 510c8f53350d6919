// Makes time pass for gateways that are dead or asleep: sets their leases back, and runs the sweep of src/ledger. The usual
// script then decides about the holds. Leases of living gateways are left alone.

import { readRedisTime } from '../../src/ledger/redis-run.ts';
import { Sweeper } from '../../src/ledger/sweep/sweeper.ts';
import { partsOf } from '../../src/roles/upkeep.ts';
import { QUIET } from '../support/store.ts';
import { LEASE_SECONDS, type Stack } from './stack.ts';

/** A gateway without calls renews its leases every three to six seconds: a call may have renewed them just before the timer. */
const NOT_RENEWED_MS = 7_000;

export async function sweepDead(stack: Stack): Promise<void> {
  const ended = new Set(stack.ended().map(({ instance }) => instance));
  await setLeases(stack, (gateway) => ended.has(gateway), '0');
  if (stack.cluster !== null) await expireFormer(stack);
  await sweep(stack);
}

/**
 * Ends the leases that living gateways no longer renew, of connections to a deposed master. A replica that took over may still have
 * such holds, because it never got their end. Nothing else is open when this is called.
 */
async function expireFormer({ stores }: Stack): Promise<void> {
  const { redis, keys } = stores;
  for (const [shard, lease] of keys.lease.entries()) {
    const entries = (await redis.command('hvals', [keys.open[shard] as string])) as string[];
    for (const instance of ownersOf(entries.filter((entry) => !entry.startsWith('x')))) {
      const nowMs = await readRedisTime(redis.shard(shard));
      const at = Number(await redis.command('hget', [lease, instance]));
      if (nowMs - at > NOT_RENEWED_MS) await redis.command('hset', [lease, instance, '0']);
    }
  }
}

/**
 * Sweeps the holds that no gateway will end. Call this when no gateway has an open call, on connections to Redis made after the last call:
 * then every hold belongs to a connection that has ended.
 */
export async function sweepAll(stack: Stack): Promise<void> {
  const { redis, keys } = stack.stores;
  for (const [shard, lease] of keys.lease.entries()) {
    const entries = (await redis.command('hvals', [keys.open[shard] as string])) as string[];
    for (const owner of ownersOf(entries.filter((entry) => !entry.startsWith('x')))) {
      await redis.command('hset', [lease, owner, '0']);
    }
  }
  await sweep(stack);
}

/** Lets the leases of a sleeping gateway run out, and sweeps. */
export async function expire(stack: Stack, instance: string): Promise<void> {
  await setLeases(stack, (gateway) => gateway === instance, '0');
  await sweep(stack);
}

/**
 * Renews a gateway's lease, as its first trip after a long sleep would. The gateway does not do it in this test, because by its
 * own clock it slept for less than a lease.
 */
export async function renew(stack: Stack, instance: string): Promise<void> {
  await setLeases(stack, (gateway) => gateway === instance, String(await readRedisTime(stack.stores.redis.shard(0))));
}

/** Sets all leases of the gateways for which `isMeant` is true. A gateway has a lease per connection (`HoldOwners`). */
async function setLeases({ stores }: Stack, isMeant: (gateway: string) => boolean, at: string): Promise<void> {
  const { redis, keys } = stores;
  for (const [shard, lease] of keys.lease.entries()) {
    const leases = Object.keys((await redis.command('hgetall', [lease])) as Record<string, string>);
    const holds = (await redis.command('hvals', [keys.open[shard] as string])) as string[];
    const known = new Set([...leases, ...ownersOf(holds)]);
    for (const instance of known) {
      if (isMeant(instance.split('.', 1)[0] as string)) await redis.command('hset', [lease, instance, at]);
    }
  }
}

const ownersOf = (holds: readonly string[]): string[] =>
  holds.map((hold) => hold.replace(/^v1\t/, '').split('\t', 4)[3] as string);

async function sweep({ stores }: Stack): Promise<void> {
  for (const { redis, shards } of partsOf(stores)) {
    await new Sweeper({
      redis,
      shards,
      keys: stores.keys,
      leaseSeconds: LEASE_SECONDS,
      isReconciled: () => true,
      log: QUIET,
    }).sweepOnce();
  }
}
