// What an operator does who goes on with an older Postgres (`main.js accept-postgres`), without its questions.

import { acceptShard } from '../../../src/ledger/history/accept.ts';
import { type Judged, judgeShards } from '../../../src/ledger/history/histories-sql.ts';
import type { Mark } from '../../../src/ledger/history/judge.ts';
import { seeShards } from '../../../src/ledger/history/marks.ts';
import { isRedisUnavailable } from '../../../src/platform/redis.ts';
import { partsOf } from '../../../src/roles/upkeep.ts';
import { until } from '../../support/wait.ts';
import type { Stack } from '../stack.ts';

/** Whether Redis was trimmed after a flush that Postgres lacks. */
export async function isOlder(stack: Stack): Promise<boolean> {
  return (await judgeAll(stack)).some(({ verdict }) => verdict === 'postgres is older');
}

/** Writers and gateways run meanwhile, so the mark of a shard may be another by the time it is accepted: then it is looked at again. */
export async function acceptOlder(stack: Stack): Promise<void> {
  await until(async () => {
    const older = (await judgeAll(stack)).filter(({ verdict }) => verdict === 'postgres is older');
    for (const { shard, seen } of older)
      await acceptShard(stack.stores, { shard, mark: seen.mark as Mark, record: async () => {} });
    return older.length === 0;
  });
}

async function judgeAll({ stores }: Stack): Promise<(Judged & { readonly shard: number })[]> {
  // The test's own connection comes back a little later than Redis.
  const sights = await until(async () => {
    try {
      return await Promise.all(partsOf(stores).map((part) => seeShards(part.redis, stores.keys, part.shards)));
    } catch (error) {
      if (!isRedisUnavailable(error)) throw error;
      return null;
    }
  });
  const seen = new Map(sights.flatMap((sight) => [...sight.seen]));
  const judged = await stores.sql.begin((tx) => judgeShards(tx.unsafe, seen));
  return Array.from(judged, ([shard, its]) => ({ ...its, shard }));
}
