import { isUuid } from '../../platform/ids.ts';
import type { ReconcileStores } from './shard-view.ts';

const SCAN_COUNT = 1_000;

/**
 * Accounts with a loaded wallet, by shard. The scan may miss a wallet that is loaded during it, but that agrees with Postgres.
 *
 * @param shards  all of one Redis
 * @param onPage  called before each page; what it throws ends the scan
 */
export async function loadedAccounts(
  { redis, keys }: Pick<ReconcileStores, 'redis' | 'keys'>,
  shards: readonly number[],
  onPage: () => void = () => {},
): Promise<ReadonlyMap<number, string[]>> {
  const [only, ...others] = shards;
  // Redis goes through all its keys in any case, but sends fewer names.
  const pattern = only !== undefined && others.length === 0 ? keys.wallet(only, '*') : 'wallet:*';
  const accounts = new Map<number, Set<string>>();
  let cursor = '0';
  do {
    onPage();
    const args = [cursor, 'MATCH', pattern, 'COUNT', String(SCAN_COUNT)];
    const [next, names] = (await redis.command('scan', args)) as [string, string[]];
    cursor = next;
    for (const name of names) {
      const id = name.slice(name.lastIndexOf(':') + 1);
      const shard = keys.shardOf(id);
      if (!isUuid(id) || name !== keys.wallet(shard, id)) continue;
      // A set, because a scan may return the same key twice.
      accounts.set(shard, (accounts.get(shard) ?? new Set()).add(id));
    }
  } while (cursor !== '0');
  return new Map(Array.from(accounts, ([shard, ids]) => [shard, Array.from(ids)]));
}
