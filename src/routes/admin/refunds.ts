import { type Refund, selectRefunds } from '../../accounts/refunds/refund-sql.ts';
import type { ApiRequest, Route } from '../../http/route.ts';
import { EXAMPLE, UUID } from '../../openapi/schemas.ts';
import type { Sql } from '../../platform/postgres.ts';
import { REFUND_EXAMPLE, REFUND_FIELDS, refundJson } from '../refunds.ts';
import { ACCOUNT_ID, LIST_QUERY, type ListQuery, listPage, listResponse } from './money-fields.ts';

const QUERY = {
  ...LIST_QUERY,
  properties: {
    ...LIST_QUERY.properties,
    account_id: { ...ACCOUNT_ID, description: 'Only those of calls that this account bought or sold' },
  },
} as const;
const FIELDS = {
  account_id: { ...UUID, description: "The buyer's account" },
  provider_id: { ...UUID, description: "The provider's account" },
  ...REFUND_FIELDS,
};
const ROW = { account_id: EXAMPLE.accountId, provider_id: EXAMPLE.providerId, ...REFUND_EXAMPLE };

/** `GET /admin/refunds`: what providers and operators gave back of calls. */
export function adminRefundsRoutes({ sql }: { readonly sql: Sql }): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v1/admin/refunds',
      summary: 'All refunds of calls, newest first',
      access: ['admin'],
      query: QUERY,
      csvRows: 'refunds',
      responses: { 200: listResponse('ListedRefund', 'refunds', FIELDS, ROW) },
      handle: ({ query }: ApiRequest<undefined, ListQuery>) => listPage(sql, query, 'refunds', selectRefunds, rowJson),
    },
  ];
}

const rowJson = (refund: Refund) => ({
  account_id: refund.accountId,
  provider_id: refund.providerId,
  ...refundJson(refund),
});
