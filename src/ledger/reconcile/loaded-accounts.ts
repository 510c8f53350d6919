import { isUuid } from '../../platform/ids.ts';
import type { ReconcileStores } from './shard-view.ts';

const SCAN_COUNT = 1_000;
const UUID_LENGTH = 36;

/**
 * Accounts with a loaded wallet, by shard. The scan may miss a wallet that is loaded meanwhile, but such a wallet agrees with
 * Postgres. It may name an account twice: removing duplicates with a set of 100 000 took a third of the time spent here.
 *
 * @param shards must belong to one Redis
 * @param onPage called before each page; an error that it throws ends the scan
 */
export async function loadedAccounts(
  { redis, keys }: Pick<ReconcileStores, 'redis' | 'keys'>,
  shards: readonly number[],
  onPage: () => void = () => {},
): Promise<ReadonlyMap<number, string[]>> {
  const [only, ...others] = shards;
  // Redis goes through all its keys anyway, but sends fewer names.
  const pattern = only !== undefined && others.length === 0 ? keys.wallet(only, '*') : 'wallet:*';
  const accounts = new Map<number, string[]>();
  const prefixes = Array.from(keys.open.keys(), (shard) => keys.wallet(shard, ''));
  const scan = (cursor: string) => {
    onPage();
    return redis.command('scan', [cursor, 'MATCH', pattern, 'COUNT', String(SCAN_COUNT)]) as Promise<
      [string, string[]]
    >;
  };
  let [cursor, names] = await scan('0');
  for (;;) {
    // The next page is requested before this one is processed, so that Redis and this process work at the same time.
    const next = cursor === '0' ? null : scan(cursor);
    for (const name of names) {
      const id = name.slice(-UUID_LENGTH);
      const shard = keys.shardOf(id);
      const prefix = prefixes[shard] as string;
      if (name.length !== prefix.length + id.length || !name.startsWith(prefix) || !isUuid(id)) continue;
      const its = accounts.get(shard);
      if (its === undefined) accounts.set(shard, [id]);
      else its.push(id);
    }
    if (next === null) break;
    [cursor, names] = await next;
  }
  return accounts;
}
