import { selectPayouts } from '../../accounts/money-lists-sql.ts';
import { type Payout, storePayout } from '../../accounts/payouts.ts';
import type { ApiRequest, FromSchema, Route } from '../../http/route.ts';
import type { MoneyTransactions } from '../../ledger/history/fence.ts';
import { EXAMPLE, json, record, TEXT, TIME, UUID, usd } from '../../openapi/schemas.ts';
import { microsToUsd } from '../../platform/money.ts';
import type { Sql } from '../../platform/postgres.ts';
import {
  ACCOUNT_ID,
  AMOUNT,
  actorOfRequest,
  LIST_QUERY,
  type ListQuery,
  listPage,
  listResponse,
  noAccount,
  REFERENCE,
  readAmount,
} from './money-fields.ts';

const BODY = {
  title: 'NewPayout',
  examples: [{ account_id: EXAMPLE.accountId, amount: 0.1, reference: 'transfer 2026-11' }],
  type: 'object',
  additionalProperties: false,
  required: ['account_id', 'amount', 'reference'],
  properties: { account_id: ACCOUNT_ID, amount: AMOUNT, reference: REFERENCE },
} as const;
type Body = FromSchema<typeof BODY>;

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
export function payoutsRoutes({ sql, money }: { readonly sql: Sql; readonly money: MoneyTransactions }): Route[] {
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
      handle: async (request: ApiRequest<Body>) => {
        const { account_id: accountId, amount, reference } = request.body;
        const wanted = { accountId, amountMicros: readAmount(amount), reference };
        const stored = await storePayout(money, wanted, actorOfRequest(request));
        if (stored === null) throw noAccount();
        return { status: stored.created ? 201 : 200, body: payoutJson(stored.payout) };
      },
    },
    {
      method: 'GET',
      path: '/api/v1/admin/payouts',
      summary: 'All payouts, newest first',
      access: ['admin'],
      query: LIST_QUERY,
      csvRows: 'payouts',
      responses: { 200: listResponse('ListedPayout', 'payouts', FIELDS, EXAMPLE_PAYOUT) },
      handle: ({ query }: ApiRequest<undefined, ListQuery>) =>
        listPage(sql, query, 'payouts', selectPayouts, payoutJson),
    },
  ];
}

const payoutJson = ({ accountId, amountMicros, reference, createdAt }: Payout) => ({
  account_id: accountId,
  amount: microsToUsd(amountMicros),
  reference,
  created_at: createdAt.toISOString(),
});
