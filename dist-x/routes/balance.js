import { keyOf } from '../keys/caller.js';
import { CURRENCY, json, record, TEXT, usd } from '../openapi/schemas.js';
import { microsToUsd } from '../platform/money.js';
const BALANCE = record('Balance', {
    owner_id: TEXT,
    balance: usd('What the account can spend now'),
    held: usd('What open calls hold; what they do not cost comes back'),
    currency: CURRENCY,
    top_up: { type: 'string', description: 'Where money can be added, if the operator names such a page' },
}, { optional: ['top_up'] });
const EXAMPLE = {
    owner_id: 'acme-bot',
    balance: 9.998,
    held: 0.002,
    currency: 'USD',
    top_up: 'https://example.com/top-up',
};
/**
 * `GET /balance/me`: what the account of this key can spend now, and what its calls in flight hold, in USD.
 *
 * @param deps.topUpUrl  TOP_UP_URL, or null
 */
export function balanceRoutes(deps) {
    return [
        {
            method: 'GET',
            path: '/api/v1/balance/me',
            summary: "The live balance of the caller's account",
            access: ['buyer'],
            responses: {
                200: json('The balance', BALANCE, EXAMPLE),
            },
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
                        ...(deps.topUpUrl === null ? {} : { top_up: deps.topUpUrl }),
                    },
                };
            },
        },
    ];
}
//# sourceMappingURL=balance.js.map