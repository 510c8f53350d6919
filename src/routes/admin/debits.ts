import { type DebitCarrier, makeDebit } from '../../accounts/debits.ts';
import { selectDebits, type TakenDebit } from '../../accounts/money-lists-sql.ts';
import { ApiError, unavailableError } from '../../errors.ts';
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
  line,
  listPage,
  listResponse,
  noAccount,
  REFERENCE,
  readAmount,
} from './money-fields.ts';

const BODY = {
  title: 'NewDebit',
  examples: [{ account_id: EXAMPLE.accountId, amount: 2.5, reference: 'refund 12', reason: 'Paid twice' }],
  type: 'object',
  additionalProperties: false,
  required: ['account_id', 'amount', 'reference', 'reason'],
  properties: {
    account_id: ACCOUNT_ID,
    amount: AMOUNT,
    reference: REFERENCE,
    reason: line(500, 'Shown to the account in its statement'),
  },
} as const;
type Body = FromSchema<typeof BODY>;

const FIELDS = {
  account_id: UUID,
  amount: usd('What was taken'),
  reference: TEXT,
  reason: TEXT,
  created_at: { ...TIME, description: 'When it was taken. RFC 3339, in UTC' },
};
const DEBIT = record('Debit', FIELDS);
const EXAMPLE_DEBIT = {
  account_id: EXAMPLE.accountId,
  amount: 2.5,
  reference: 'refund 12',
  reason: 'Paid twice',
  created_at: EXAMPLE.time,
};

type DebitsRoutesDeps = {
  readonly sql: Sql;
  readonly money: MoneyTransactions;
  readonly carrier: DebitCarrier;
  readonly log: { warn(fields: object, message: string): void };
};

/**
 * `POST /admin/debits` takes money out of a wallet, once per reference and never more than the wallet has beside its holds. `GET
 * /admin/debits` lists the debits.
 */
export function debitsRoutes(deps: DebitsRoutesDeps): Route[] {
  const { sql, money, carrier } = deps;
  return [
    {
      method: 'POST',
      path: '/api/v1/admin/debits',
      summary: 'Take money out of a wallet; never more than it has beside its holds, and once per reference',
      access: ['admin'],
      body: BODY,
      responses: {
        200: json('This reference was taken before; nothing has changed', DEBIT, EXAMPLE_DEBIT),
        201: json('The debit', DEBIT, EXAMPLE_DEBIT),
      },
      errors: ['not_found', 'conflict'],
      handle: async (request: ApiRequest<Body>) => {
        const { account_id: accountId, amount, reference, reason } = request.body;
        const wanted = { accountId, amountMicros: readAmount(amount), reference, reason };
        const made = await makeDebit(money, carrier, wanted, actorOfRequest(request)).catch((error: unknown) =>
          unknownOutcome(error, request.requestId, deps),
        );
        if (made === null) throw noAccount();
        const { debit, created } = made;
        return { status: created ? 201 : 200, body: debitJson({ ...debit, createdAt: debit.endedAt as Date }) };
      },
    },
    {
      method: 'GET',
      path: '/api/v1/admin/debits',
      summary: 'All debits that were taken, newest first',
      access: ['admin'],
      query: LIST_QUERY,
      csvRows: 'debits',
      responses: { 200: listResponse('ListedDebit', 'debits', FIELDS, EXAMPLE_DEBIT) },
      handle: ({ query }: ApiRequest<undefined, ListQuery>) => listPage(sql, query, 'debits', selectDebits, debitJson),
    },
  ];
}

/**
 * Whatever failed, the debit may have begun, and then ends later. So the operator must not believe that nothing was taken. The
 * gateway's own refusals say that nothing was taken.
 */
function unknownOutcome(error: unknown, requestId: string, { log }: DebitsRoutesDeps): never {
  if (error instanceof ApiError) throw error;
  log.warn({ err: error, request_id: requestId }, 'a debit failed, but may have begun: then the writer ends it');
  throw unavailableError(
    error,
    'It is not known yet whether the amount was taken. Send the same request again: it is taken once at most.',
  );
}

const debitJson = ({ accountId, amountMicros, reference, reason, createdAt }: TakenDebit) => ({
  account_id: accountId,
  amount: microsToUsd(amountMicros),
  reference,
  reason,
  created_at: createdAt.toISOString(),
});
