import type { Route } from '../http/route.ts';
import { keyOf } from '../keys/caller.ts';
import { microsToUsd } from '../platform/money.ts';

/** An account's money as it is now, calls in flight included. Amounts in micro-USD. */
export type Wallet = {
  /** What can be spent. */
  readonly balanceMicros: number;
  /** What open holds of calls in flight have taken; a refund puts it back. */
  readonly heldMicros: number;
};

/** Reads the live wallet; loads it first when Redis does not have it. Rejects with `unavailable` when it cannot. */
export type WalletReader = { read(accountId: string): Promise<Wallet> };

/** `GET /balance/me`: what the account of this key can spend now, and what its calls in flight hold. USD. */
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
