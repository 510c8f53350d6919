import type { Route } from '../http/route.ts';
import { keyOf } from '../keys/caller.ts';
import { microsToUsd } from '../platform/money.ts';

/** An account's money as it is now, in micro-USD. */
export type Wallet = {
  /** What the account can spend. */
  readonly balanceMicros: number;
  /** What the open holds of calls in flight have taken from the balance; a refunded call returns its hold. */
  readonly heldMicros: number;
};

/** Reads the live wallet. If Redis does not have it, loads it first. Rejects with `unavailable` when either fails. */
export type WalletReader = { read(accountId: string): Promise<Wallet> };

/** `GET /balance/me`: what the account of this key can spend now, and what its calls in flight hold, in USD. */
export function balanceRoutes(deps: { readonly wallets: WalletReader }): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v1/balance/me',
      summary: "The live balance of the caller's account",
      access: ['buyer'],
      handle: async ({ caller }) => {
        const { accountId, ownerId } = keyOf(caller);
        const wallet = await deps.wallets.read(accountId);
        return {
          status: 200,
          body: {
            owner_id: ownerId,
            balance: microsToUsd(wallet.balanceMicros),
            held: microsToUsd(wallet.heldMicros),
            currency: 'USD',
          },
        };
      },
    },
  ];
}
