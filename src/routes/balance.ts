import type { Allowance } from '../accounts/allowance.ts';
import type { Route } from '../http/route.ts';
import { type KeyRecord, keyOf } from '../keys/caller.ts';
import { KEY_ID } from '../keys/key-fields.ts';
import { TOP_UP, TOP_UP_EXAMPLE } from '../openapi/operator.ts';
import { CURRENCY, EXAMPLE, json, orNull, record, TEXT, TIME, UUID, usd } from '../openapi/schemas.ts';
import { microsToUsd } from '../platform/money.ts';
import type { Operator } from '../platform/operator.ts';

const BALANCE = record(
  'Balance',
  {
    account_id: UUID,
    owner_id: TEXT,
    balance: usd('What the account, or a child key, can spend now'),
    held: usd('What open calls hold; what they do not cost comes back'),
    currency: CURRENCY,
    limit_key: {
      ...KEY_ID,
      description: 'Whose budget leaves a child key no more than this; absent: no budget does, but the wallet',
    },
    resets_at: { ...orNull(TIME), description: 'When that budget starts again; null: never' },
    top_up: TOP_UP,
  },
  { optional: ['limit_key', 'resets_at', 'top_up'] },
);
const BALANCE_EXAMPLE = {
  account_id: EXAMPLE.accountId,
  owner_id: 'acme-bot',
  balance: 9.998,
  held: 0.002,
  currency: 'USD',
  top_up: TOP_UP_EXAMPLE,
};

type BalanceDeps = {
  /** `readAllowance`: rejects with `unavailable` if the wallet can be neither read nor loaded. */
  readonly read: (key: KeyRecord) => Promise<Allowance>;
  readonly operator: Operator;
};

/** `GET /balance/me`: what this key can spend now, and what open calls hold, in USD. */
export function balanceRoutes(deps: BalanceDeps): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v1/balance/me',
      summary: "The live balance of the caller's account, or what it and the budgets leave a child key",
      access: ['buyer'],
      forChildren: true,
      bucket: 'reads',
      forSuspended: true,
      responses: {
        200: json('The balance', BALANCE, BALANCE_EXAMPLE),
      },
      handle: async ({ caller }) => {
        const key = keyOf(caller);
        const { accountId, ownerId } = key;
        const { balanceMicros, heldMicros, budget } = await deps.read(key);
        const topUp = deps.operator.topUpOf(accountId);
        return {
          status: 200,
          body: {
            account_id: accountId,
            owner_id: ownerId,
            balance: microsToUsd(balanceMicros),
            held: microsToUsd(heldMicros),
            currency: 'USD',
            ...(budget === null ? {} : limitOf(budget)),
            ...(topUp === null ? {} : { top_up: topUp }),
          },
        };
      },
    },
  ];
}

const limitOf = ({ keyId, resetsAtMs }: NonNullable<Allowance['budget']>) => ({
  limit_key: keyId,
  resets_at: resetsAtMs === null ? null : new Date(resetsAtMs).toISOString(),
});
