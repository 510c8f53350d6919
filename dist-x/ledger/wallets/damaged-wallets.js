import { WalletDamaged } from './wallets.js';
/**
 * Logs which accounts failed in a round because their wallet is damaged. Such a wallet fails in every round until an operator repairs
 * it, so it does not make the job fail: then a failure of another account would not be logged.
 *
 * @throws the first failure of another kind
 */
export function reportDamaged(failures, damage, keys) {
    for (const error of failures) {
        if (!(error instanceof WalletDamaged))
            throw error;
        damage.found('wallet', error.accountId, '', keys.shardOf(error.accountId));
    }
}
//# sourceMappingURL=damaged-wallets.js.map