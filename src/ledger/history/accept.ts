import type { Sql, Tx } from '../../platform/postgres.ts';
import type { RedisStore } from '../../platform/redis.ts';
import type { RedisKeys } from '../../platform/redis-keys.ts';
import { FLUSH_LOCK } from '../locks.ts';
import { acceptMarkScript } from '../scripts.ts';
import { judgeShards, storeFlush } from './histories-sql.ts';
import type { Mark } from './judge.ts';
import { markText, readMark, seeShards } from './marks.ts';

/** Longest wait for a flush of the shard, or for wallets of it that are being loaded. */
const LOCK_WAIT_MS = 10_000;

type Acceptance = {
  readonly shard: number;
  /** The mark that was shown to the operator: of a flush that Postgres lacks. */
  readonly mark: Mark;
  /** Records the act, in the transaction that carries it out. */
  readonly record: (tx: Tx, accepted: Mark) => Promise<void>;
  /** Called between the two stores. Tests end the program here. */
  readonly afterCommit?: () => Promise<void> | void;
};

/**
 * Declares Postgres right about a shard, although it lacks the flush whose mark Redis has.
 *
 *   lock ──► still that mark? ──► a flush without entries, and doubt ──COMMIT──► Redis: that mark becomes the mark of this flush
 *
 * From then on Postgres has the flush that Redis's mark names, so the shard is flushed again. Because of the doubt, the comparison
 * corrects its wallets by Postgres. Until Redis has the new mark, the shard stays as it was: if the program is killed before that,
 * it is simply run again.
 *
 * Gateways and writers may run, and one that was suspended may come back: a trim that belongs to the lost Postgres finds another
 * mark than it saw, and does nothing. If that Postgres comes back, it lacks this flush, and so it is the older one.
 *
 * @returns 'changed': Redis has another mark by now; 'not older': Postgres has the flush of its mark
 */
export async function acceptShard(
  { sql, redis, keys }: { readonly sql: Sql; readonly redis: RedisStore; readonly keys: RedisKeys },
  { shard, mark, record, afterCommit }: Acceptance,
): Promise<'accepted' | 'changed' | 'not older'> {
  const store = redis.shard(shard);
  const name = keys.mark[shard] as string;
  const stored = await sql.begin(async (tx) => {
    await tx.unsafe(`SET LOCAL lock_timeout = ${LOCK_WAIT_MS}`);
    await tx`SELECT pg_advisory_xact_lock(${FLUSH_LOCK}::int, ${shard}::int)`;
    // A mark that cannot be read is replaced, too.
    const found = String((await store.command('get', [name])) ?? '');
    const { seen } = await seeShards(store, keys, [shard]);
    const judged = await judgeShards(tx.unsafe, seen);
    const its = judged.get(shard);
    if (its?.verdict !== 'postgres is older') return 'not older';
    if (markText(its.seen.mark) !== markText(mark) || markText(readMark(found)) !== markText(mark)) return 'changed';
    const history = { ...its.history, doubt: its.history.doubt + 1 };
    const [flush] = await tx<{ id: number }[]>`
      INSERT INTO journal (kind, reference) VALUES ('usage', 'accept-postgres') RETURNING id`;
    const accepted = await storeFlush(tx.unsafe, flush?.id as number, new Map([[shard, { ...its, history }]]));
    await record(tx, accepted);
    return { found, accepted };
  });
  if (typeof stored === 'string') return stored;
  await afterCommit?.();
  const reply = await store.script(acceptMarkScript, 1, [name, asciiOf(stored.found), markText(stored.accepted)]);
  return reply === 1 ? 'accepted' : 'changed';
}

const asciiOf = (text: string): string => Array.from(text, (char) => (char < '\u0080' ? char : '')).join('');
