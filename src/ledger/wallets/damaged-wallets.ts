import type { RedisKeys } from '../../platform/redis-keys.ts';
import type { DamageLog } from '../damage-log.ts';
import { WalletDamaged } from './wallets.ts';

/**
 * Logs which accounts failed in a round because their wallet is damaged. Such a wallet fails in every round until an operator
 * repairs it. So it does not count as a failure of the job, which would hide the failure of another account from the log.
 *
 * @throws the first failure of another kind
 */
export function reportDamaged(failures: readonly unknown[], damage: DamageLog, keys: RedisKeys): void {
  for (const error of failures) {
    if (!(error instanceof WalletDamaged)) throw error;
    damage.found('wallet', error.accountId, '', keys.shardOf(error.accountId));
  }
}
