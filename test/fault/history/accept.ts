// What an operator does who goes on with an older Postgres: `main.js accept-postgres`, as often as it has to be run.

import { judgeShards } from '../../../src/ledger/history/histories-sql.ts';
import { seeShards } from '../../../src/ledger/history/marks.ts';
import { partsOf } from '../../../src/roles/upkeep.ts';
import { until } from '../../support/wait.ts';
import { untilAnswered } from '../answered.ts';
import type { Stack } from '../stack.ts';

/** A run takes a second or two, most of it the start of the program. */
const ACCEPTED_WITHIN_MS = 30_000;
/** What the program says when the mark of a shard became another meanwhile. */
const AGAIN = 'run this again';

/** Whether Redis was trimmed after a flush that Postgres lacks. */
async function isOlder({ stores }: Stack): Promise<boolean> {
  const sights = await untilAnswered(() =>
    Promise.all(partsOf(stores).map((part) => seeShards(part.redis, stores.keys, part.shards))),
  );
  const seen = new Map(sights.flatMap((sight) => [...sight.seen]));
  const judged = await stores.sql.begin((tx) => judgeShards(tx.unsafe, seen));
  return Array.from(judged.values()).some(({ verdict }) => verdict === 'postgres is older');
}

/** Writers and gateways run meanwhile, so the mark of a shard may be another by the time it is accepted: then the program is run again. */
export async function acceptIfOlder(stack: Stack): Promise<void> {
  await until(async () => {
    if (!(await isOlder(stack))) return true;
    const { code, printed } = await stack.acceptPostgres();
    if (code !== 0 && !printed.includes(AGAIN)) throw new Error(`accept-postgres ended with ${code}: ${printed}`);
    return false;
  }, ACCEPTED_WITHIN_MS);
}
