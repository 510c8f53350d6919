import { createHash } from 'node:crypto';
import { mayDrop } from '../history/may-drop.ts';
import { dropWalletsScript } from '../scripts.ts';
import { isAhead } from './decision.ts';
import type { AccountState } from './identity.ts';
import type { Reading, ReconcileStores, ShardView } from './shard-view.ts';

type Drop = {
  readonly view: ShardView;
  readonly shard: number;
  /** Read with the ticket. */
  readonly reading: Reading;
  readonly ticket: string;
};

/**
 * In doubt, drops the wallets of a reading that have nothing under way: they are loaded again exactly as Postgres has them when their
 * account calls. So an account can spend what its wallet has too much only until this has passed over it.
 *
 * @returns the accounts whose wallets were dropped
 */
export async function dropIdle(
  { redis, keys }: Pick<ReconcileStores, 'redis' | 'keys'>,
  { view, shard, reading, ticket }: Drop,
): Promise<ReadonlySet<string>> {
  const isIdle = ({ accountId, wallet, settled, holds, isIncomplete }: AccountState): boolean =>
    wallet.damagedFields.length === 0 &&
    !isIncomplete &&
    !reading.rejected.has(accountId) &&
    !isAhead({ wallet, settled }) &&
    mayDrop(reading.historyOf(accountId), {
      holds: holds.length,
      streamed: view.hasEvents(accountId) ? 1 : 0,
      hasBegunDebit: settled.begunDebitSeq !== null,
    });
  const ids = reading.states.filter(isIdle).map(({ accountId }) => accountId);
  if (ids.length === 0) return new Set();
  const names = ids.map((id) => keys.wallet(shard, id));
  const digests = ids.map((id) => digestOf(reading.fields.get(id) as readonly string[]));
  const reply = (await redis.script(dropWalletsScript, names.length, [...names, ticket, ...digests])) as number[];
  return new Set(ids.filter((_, i) => reply[i] === 1));
}

/** As drop-wallets.lua makes it. */
function digestOf(fields: readonly string[]): string {
  const hash = createHash('sha1');
  for (let i = 0; i + 1 < fields.length; i += 2) {
    if (fields[i] !== 'ticket') hash.update(`${fields[i]}\0${fields[i + 1]}\0`);
  }
  return hash.digest('hex');
}
