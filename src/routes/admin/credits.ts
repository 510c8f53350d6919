import { actorOf } from '../../accounts/audit.ts';
import { type Credit, type CreditApplier, type NewCredit, storeCredit } from '../../accounts/credits.ts';
import { selectCredits } from '../../accounts/money-lists-sql.ts';
import { ApiError } from '../../errors.ts';
import type { ApiRequest, FromSchema, Route } from '../../http/route.ts';
import { keyOf } from '../../keys/caller.ts';
import { isKeyId } from '../../keys/credentials.ts';
import type { KeyRow } from '../../keys/key-fields.ts';
import type { MoneyTransactions } from '../../ledger/history/fence.ts';
import { COUNT, EXAMPLE, json, record, TEXT, TIME, UUID, usd } from '../../openapi/schemas.ts';
import { microsToUsd } from '../../platform/money.ts';
import type { Sql } from '../../platform/postgres.ts';
import {
  ACCOUNT_ID,
  AMOUNT,
  LIST_QUERY,
  type ListQuery,
  listPage,
  listResponse,
  noAccount,
  REFERENCE,
  readAmount,
} from './money-fields.ts';

type CreditsRoutesDeps = {
  readonly sql: Sql;
  readonly money: MoneyTransactions;
  readonly keys: { find(keyId: string): Promise<KeyRow | null> };
  readonly applier: CreditApplier;
  readonly log: { warn(fields: Record<string, unknown>, message: string): void };
};

const BODY = {
  title: 'NewCredit',
  description: 'Exactly one of account_id and key_id names the account',
  examples: [{ account_id: EXAMPLE.accountId, amount: 10, reference: 'invoice 4711' }],
  type: 'object',
  additionalProperties: false,
  required: ['amount', 'reference'],
  properties: {
    account_id: ACCOUNT_ID,
    key_id: { type: 'string', maxLength: 26 },
    amount: AMOUNT,
    reference: REFERENCE,
  },
} as const;
const FIELDS = {
  account_id: UUID,
  amount: usd('What was added'),
  reference: TEXT,
  seq: { ...COUNT, description: "Number of this credit among the account's" },
  created_at: TIME,
};
const CREDIT = record('Credit', FIELDS);
const CREDIT_EXAMPLE = {
  account_id: EXAMPLE.accountId,
  amount: 10,
  reference: 'invoice 4711',
  seq: 1,
  created_at: EXAMPLE.time,
};

type Body = FromSchema<typeof BODY>;

/**
 * `POST /admin/credits` brings money in, and `GET /admin/credits` lists the credits. Repeating a reference makes no second credit:
 * the answer has the same body, and status 200 instead of 201.
 */
export function creditsRoutes(deps: CreditsRoutesDeps): Route[] {
  return [
    {
      method: 'POST',
      path: '/api/v1/admin/credits',
      summary: 'Credit an account; a repeated reference makes no second credit and gets the same body again',
      access: ['admin'],
      body: BODY,
      responses: {
        200: json('This reference was credited before; nothing has changed', CREDIT, CREDIT_EXAMPLE),
        201: json('The credit', CREDIT, CREDIT_EXAMPLE),
      },
      errors: ['not_found', 'conflict'],
      handle: async ({ body, caller, requestId }: ApiRequest<Body>) => {
        const by = actorOf(keyOf(caller), requestId);
        const stored = await storeCredit(deps.money, await readCredit(deps, body), by);
        if (stored === null) throw noAccount();
        if (stored.created) await applyToWallet(deps, stored.credit);
        return { status: stored.created ? 201 : 200, body: creditJson(stored.credit) };
      },
    },
    {
      method: 'GET',
      path: '/api/v1/admin/credits',
      summary: 'All credits, newest first',
      access: ['admin'],
      query: LIST_QUERY,
      csvRows: 'credits',
      responses: { 200: listResponse('ListedCredit', 'credits', FIELDS, CREDIT_EXAMPLE) },
      handle: ({ query }: ApiRequest<undefined, ListQuery>) =>
        listPage(deps.sql, query, 'credits', selectCredits, creditJson),
    },
  ];
}

async function readCredit(deps: CreditsRoutesDeps, body: Body): Promise<NewCredit> {
  if ((body.account_id === undefined) === (body.key_id === undefined)) {
    throw new ApiError('invalid_request', 'account_id: exactly one of account_id and key_id is needed.');
  }
  const amountMicros = readAmount(body.amount);
  const accountId = body.account_id ?? (await accountOfKey(deps, body.key_id ?? ''));
  return { accountId, amountMicros, reference: body.reference };
}

async function accountOfKey(deps: CreditsRoutesDeps, keyId: string): Promise<string> {
  const key = isKeyId(keyId) ? await deps.keys.find(keyId) : null;
  if (key === null) throw new ApiError('not_found', 'key_id: there is no such key.');
  return key.account_id;
}

/**
 * Adds the credit to the wallet in Redis. If that fails, nothing is lost: Postgres has stored the credit, and the writer applies
 * it later.
 */
async function applyToWallet(deps: CreditsRoutesDeps, credit: Credit): Promise<void> {
  const { accountId, seq, amountMicros } = credit;
  try {
    await deps.applier.apply({ accountId, seq, amountMicros, budgets: null });
  } catch (err) {
    deps.log.warn(
      { err, accountId, seq },
      'credit is stored in Postgres but not yet in the wallet: the writer will apply it',
    );
  }
}

/** Only fields that never change, so that a repeated reference gets the same body. The balance, for instance, is left out. */
function creditJson(credit: Credit): Record<string, unknown> {
  return {
    account_id: credit.accountId,
    amount: microsToUsd(credit.amountMicros),
    reference: credit.reference,
    seq: credit.seq,
    created_at: credit.createdAt.toISOString(),
  };
}
