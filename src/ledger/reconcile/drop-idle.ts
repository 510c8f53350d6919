import { createHash, randomUUID } from 'node:crypto';
import { mayDrop } from '../history/may-drop.ts';
import { dropWalletsScript } from '../scripts.ts';
import { isAhead } from './decision.ts';
import type { Numbers, Wallet } from './identity.ts';
import type { Reading, ReconcileStores, ShardView } from './shard-view.ts';

type Drop = {
  readonly view: ShardView;
  readonly shard: number;
  readonly accountIds: readonly string[];
};

/**
 * In doubt, drops those of the loaded wallets that have nothing under way: they are loaded again exactly as Postgres has them when their
 * account calls. So an account can spend what its wallet has too much only until this has passed over it.
 *
 * @returns the wallets that were dropped, by account
 */
export async function dropIdle(
  { redis, keys }: Pick<ReconcileStores, 'redis' | 'keys'>,
  { view, shard, accountIds }: Drop,
): Promise<ReadonlyMap<string, Wallet>> {
  const ticket = randomUUID();
  const reading = await view.readNumbers(accountIds, ticket);
  const isIdle = ({ accountId, wallet, settled, holds, isIncomplete }: Reading<Numbers>['states'][number]): boolean =>
    wallet.damagedFields.length === 0 &&
    !isIncomplete &&
    !reading.rejected.has(accountId) &&
    !isAhead({ wallet, settled }) &&
    mayDrop(reading.historyOf(accountId), {
      holds: holds.length,
      streamed: view.hasEvents(accountId) ? 1 : 0,
      hasBegunDebit: settled.begunDebitSeq !== null,
    });
  const idle = reading.states.filter(isIdle);
  if (idle.length === 0) return new Map();
  const names = idle.map(({ accountId }) => keys.wallet(shard, accountId));
  const digests = idle.map(({ accountId }) => digestOf(reading.fields.get(accountId) as readonly string[]));
  const reply = (await redis.script(dropWalletsScript, names.length, [...names, ticket, ...digests])) as number[];
  const dropped = idle.filter((_, i) => reply[i] === 1);
  return new Map(dropped.map(({ accountId, wallet }) => [accountId, wallet]));
}

/** As drop-wallets.lua makes it. */
function digestOf(fields: readonly string[]): string {
  let text = '';
  for (let i = 0; i + 1 < fields.length; i += 2) {
    if (fields[i] !== 'ticket') text += `${fields[i]}\0${fields[i + 1]}\0`;
  }
  return createHash('sha1').update(text).digest('hex');
}
