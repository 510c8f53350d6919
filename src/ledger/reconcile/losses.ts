import { readRedisRun } from '../redis-run.ts';
import { agrees, compare, knowsItsDebits } from './identity.ts';
import { loadedAccounts } from './loaded-accounts.ts';
import { type ReconcileStores, ShardView } from './shard-view.ts';

/** Maximum number of accounts read at one instant, while the shard's flush lock is held. */
const PAGE = 500;
/**
 * Maximum number of waiting events. While Postgres is older nothing is stored, so any number may wait. One shard is read at a time.
 */
const BOUNDS = { waiting: Number.POSITIVE_INFINITY, kept: Number.POSITIVE_INFINITY };

/** What an account's loaded wallet has and an older Postgres does not know. Amounts in micro-USD. */
export type Loss = {
  readonly accountId: string;
  readonly shard: number;
  readonly walletMicros: number;
  /** What the wallet should have according to Postgres, including everything under way in Redis. */
  readonly expectedMicros: number;
  /** Number of credits that Postgres does not know. */
  readonly credits: number;
  /** The sum of debits that Postgres does not know. */
  readonly debitedMicros: number;
  /** Free calls that Postgres does not know. */
  readonly freeCalls: number;
  /** Names of fields that cannot be read. */
  readonly damagedFields: readonly string[];
};

/**
 * Compares the loaded wallets of these shards with a Postgres that is older than Redis. Losses of accounts whose wallets are not
 * loaded cannot be found anywhere any more. It changes nothing.
 */
export async function readLosses(
  stores: ReconcileStores,
  shards: readonly number[],
): Promise<{ readonly losses: readonly Loss[]; readonly compared: number }> {
  const losses: Loss[] = [];
  let compared = 0;
  for (const shard of shards) {
    const its = { ...stores, redis: stores.redis.shard(shard) };
    const { dataId } = await readRedisRun(its.redis);
    const accounts = Array.from(new Set((await loadedAccounts(its, [shard])).get(shard)));
    const view = new ShardView(its, shard, dataId, BOUNDS, { mayBeOlder: true });
    await view.readAhead();
    for (let from = 0; from < accounts.length; from += PAGE) {
      const { states } = await view.read(accounts.slice(from, from + PAGE), async (reading) => reading);
      compared += states.length;
      for (const state of states) {
        const { wallet, settled } = state;
        const comparison = compare(state);
        const credits = Math.max(wallet.creditSeq - settled.creditSeq, 0);
        const debitedMicros = knowsItsDebits(wallet, settled) ? 0 : wallet.debitedMicros - settled.debitedMicros;
        if (agrees(comparison) && credits === 0 && debitedMicros === 0) continue;
        const { accountId, walletMicros, expectedMicros, damagedFields, freeDrifts } = comparison;
        const freeCalls = freeDrifts.reduce((sum, { used, expected }) => sum + used - expected, 0);
        losses.push({
          accountId,
          shard,
          walletMicros,
          expectedMicros,
          credits,
          debitedMicros,
          freeCalls,
          damagedFields,
        });
      }
    }
  }
  return { losses, compared };
}
