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
  const scan = (cursor: string) => {
    onPage();
    return redis.command('scan', [cursor, 'MATCH', pattern, 'COUNT', String(SCAN_COUNT)]) as Promise<
      [string, string[]]
    >;
  };
  let [cursor, names] = await scan('0');
  for (;;) {
    // Asked for before this page is read, so that Redis and this process work at the same time.
    const next = cursor === '0' ? null : scan(cursor);
    for (const name of names) {
      const id = name.slice(name.lastIndexOf(':') + 1);
      const shard = keys.shardOf(id);
      if (!isUuid(id) || name !== keys.wallet(shard, id)) continue;
      // A set, because a scan may return the same key twice.
      accounts.set(shard, (accounts.get(shard) ?? new Set()).add(id));
    }
    if (next === null) break;
    [cursor, names] = await next;
  }
  return new Map(Array.from(accounts, ([shard, ids]) => [shard, Array.from(ids)]));
}
