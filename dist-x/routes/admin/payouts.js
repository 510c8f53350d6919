import { selectPayouts } from '../../accounts/money-lists-sql.js';
import { storePayout } from '../../accounts/payouts.js';
import { EXAMPLE, json, record, TEXT, TIME, UUID, usd } from '../../openapi/schemas.js';
import { microsToUsd } from '../../platform/money.js';
import { ACCOUNT_ID, AMOUNT, actorOfRequest, LIST_QUERY, listPage, listResponse, noAccount, REFERENCE, readAmount, } from './money-fields.js';
const BODY = {
    title: 'NewPayout',
    examples: [{ account_id: EXAMPLE.accountId, amount: 0.1, reference: 'transfer 2026-11' }],
    type: 'object',
    additionalProperties: false,
    required: ['account_id', 'amount', 'reference'],
    properties: { account_id: ACCOUNT_ID, amount: AMOUNT, reference: REFERENCE },
};
const FIELDS = {
    account_id: UUID,
    amount: usd('What was paid'),
    reference: TEXT,
    created_at: TIME,
};
const PAYOUT = record('Payout', FIELDS);
const EXAMPLE_PAYOUT = {
    account_id: EXAMPLE.accountId,
    amount: 0.1,
    reference: 'transfer 2026-11',
    created_at: EXAMPLE.time,
};
/**
 * Records what the operator has paid to providers: `POST /admin/payouts`, never more than is payable, and `GET /admin/payouts`.
 * Repeating a reference records no second payout.
 */
export function payoutsRoutes({ sql }) {
    return [
        {
            method: 'POST',
            path: '/api/v1/admin/payouts',
            summary: 'Record a payment to a provider; never more than is payable, and once per reference',
            access: ['admin'],
            body: BODY,
            responses: {
                200: json('This reference was paid before; nothing has changed', PAYOUT, EXAMPLE_PAYOUT),
                201: json('The payout', PAYOUT, EXAMPLE_PAYOUT),
            },
            errors: ['not_found', 'conflict'],
            handle: async (request) => {
                const { account_id: accountId, amount, reference } = request.body;
                const wanted = { accountId, amountMicros: readAmount(amount), reference };
                const stored = await storePayout(sql, wanted, actorOfRequest(request));
                if (stored === null)
                    throw noAccount();
                return { status: stored.created ? 201 : 200, body: payoutJson(stored.payout) };
            },
        },
        {
            method: 'GET',
            path: '/api/v1/admin/payouts',
            summary: 'All payouts, newest first',
            access: ['admin'],
            query: LIST_QUERY,
            responses: { 200: listResponse('ListedPayout', 'payouts', FIELDS, EXAMPLE_PAYOUT) },
            handle: ({ query }) => listPage(sql, query, 'payouts', selectPayouts, payoutJson),
        },
    ];
}
const payoutJson = ({ accountId, amountMicros, reference, createdAt }) => ({
    account_id: accountId,
    amount: microsToUsd(amountMicros),
    reference,
    created_at: createdAt.toISOString(),
});
//# sourceMappingURL=payouts.js.map