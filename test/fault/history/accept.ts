// What an operator does who goes on with an older Postgres, as in the model (test/model/faults.ts): no program does it yet.

import { type Judged, judgeShards } from '../../../src/ledger/history/histories-sql.ts';
import { markText, seeShards } from '../../../src/ledger/history/marks.ts';
import { isRedisUnavailable } from '../../../src/platform/redis.ts';
import { partsOf } from '../../../src/roles/upkeep.ts';
import { until } from '../../support/wait.ts';
import type { Stack } from '../stack.ts';

/** Whether Redis was trimmed after a flush that Postgres lacks. */
export async function isOlder(stack: Stack): Promise<boolean> {
  return (await judgeAll(stack)).some(({ verdict }) => verdict === 'postgres is older');
}

/** Each shard that is ahead gets a mark that this Postgres has, and its data are in doubt. */
export async function acceptOlder(stack: Stack): Promise<void> {
  const { sql, redis, keys } = stack.stores;
  for (const { shard, verdict } of await judgeAll(stack)) {
    if (verdict !== 'postgres is older') continue;
    const [row] = await sql<{ flushId: number; token: string }[]>`
      WITH mark AS (INSERT INTO journal (kind) VALUES ('usage') RETURNING id, token),
        doubted AS (UPDATE shard_histories SET doubt = doubt + 1, flush_id = (SELECT id FROM mark) WHERE shard = ${shard})
      SELECT id AS "flushId", token FROM mark`;
    await redis.command('set', [keys.mark[shard] as string, markText(row ?? null)]);
  }
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
