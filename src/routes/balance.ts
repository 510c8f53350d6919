import type { Route } from '../http/route.ts';
import { keyOf } from '../keys/caller.ts';
import { TOP_UP, TOP_UP_EXAMPLE } from '../openapi/operator.ts';
import { CURRENCY, EXAMPLE, json, record, TEXT, UUID, usd } from '../openapi/schemas.ts';
import { microsToUsd } from '../platform/money.ts';
import type { Operator } from '../platform/operator.ts';

/** An account's money as it is now, in micro-USD. */
export type Wallet = {
  /** What the account can spend. */
  readonly balanceMicros: number;
  /** What the open holds of calls in flight have taken from the balance; a refunded call returns its hold. */
  readonly heldMicros: number;
};

/** Reads the live wallet. If Redis does not have it, loads it first. Rejects with `unavailable` when either fails. */
export type WalletReader = { read(accountId: string): Promise<Wallet> };

const BALANCE = record(
  'Balance',
  {
    account_id: UUID,
    owner_id: TEXT,
    balance: usd('What the account can spend now'),
    held: usd('What open calls hold; what they do not cost comes back'),
    currency: CURRENCY,
    top_up: TOP_UP,
  },
  { optional: ['top_up'] },
);
const BALANCE_EXAMPLE = {
  account_id: EXAMPLE.accountId,
  owner_id: 'acme-bot',
  balance: 9.998,
  held: 0.002,
  currency: 'USD',
  top_up: TOP_UP_EXAMPLE,
};

/**
 * `GET /balance/me`: what the account of this key can spend now, and what its calls in flight hold, in USD.
 */
export function balanceRoutes(deps: { readonly wallets: WalletReader; readonly operator: Operator }): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v1/balance/me',
      summary: "The live balance of the caller's account",
      access: ['buyer'],
      bucket: 'reads',
      forSuspended: true,
      responses: {
        200: json('The balance', BALANCE, BALANCE_EXAMPLE),
      },
      handle: async ({ caller }) => {
        const { accountId, ownerId } = keyOf(caller);
        const wallet = await deps.wallets.read(accountId);
        const topUp = deps.operator.topUpOf(accountId);
        return {
          status: 200,
          body: {
            account_id: accountId,
            owner_id: ownerId,
            balance: microsToUsd(wallet.balanceMicros),
            held: microsToUsd(wallet.heldMicros),
            currency: 'USD',
            ...(topUp === null ? {} : { top_up: topUp }),
          },
        };
      },
    },
  ];
}
