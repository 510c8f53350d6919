import { type Credit, type CreditApplier, type NewCredit, storeCredit } from '../../accounts/credits.ts';
import { ApiError } from '../../errors.ts';
import type { ApiRequest, JsonSchema, Route } from '../../http/route.ts';
import { isKeyId } from '../../keys/credentials.ts';
import type { Keys } from '../../keys/keys.ts';
import { COUNT, EXAMPLE, json, record, TEXT, TIME, UUID, usd } from '../../openapi/schemas.ts';
import { microsToUsd, usdToMicros } from '../../platform/money.ts';
import type { Sql } from '../../platform/postgres.ts';

export type CreditsRoutesDeps = {
  readonly sql: Sql;
  readonly keys: Pick<Keys, 'find'>;
  readonly applier: CreditApplier;
  readonly log: { warn(fields: Record<string, unknown>, message: string): void };
};

const BODY: JsonSchema = {
  title: 'NewCredit',
  description: 'Exactly one of account_id and key_id names the account',
  examples: [{ account_id: EXAMPLE.accountId, amount: 10, reference: 'invoice 4711' }],
  type: 'object',
  additionalProperties: false,
  required: ['amount', 'reference'],
  properties: {
    account_id: { type: 'string', pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' },
    key_id: { type: 'string', maxLength: 26 },
    amount: {
      type: 'number',
      exclusiveMinimum: 0,
      maximum: 1_000_000_000,
      description: 'USD, at most 6 decimals',
    },
    reference: {
      type: 'string',
      minLength: 1,
      maxLength: 200,
      pattern: '^[^\\u0000-\\u001f\\u007f-\\u009f]*$',
      description: 'Makes the request safe to repeat: a second one with the same reference adds nothing',
    },
  },
};
const CREDIT = record('Credit', {
  account_id: UUID,
  amount: usd('What was added'),
  reference: TEXT,
  seq: { ...COUNT, description: "Number of this credit among the account's" },
  created_at: TIME,
});
const CREDIT_EXAMPLE = {
  account_id: EXAMPLE.accountId,
  amount: 10,
  reference: 'invoice 4711',
  seq: 1,
  created_at: EXAMPLE.time,
};

type Body = {
  readonly account_id?: string;
  readonly key_id?: string;
  readonly amount: number;
  readonly reference: string;
};

/**
 * `POST /admin/credits` brings money in. Repeating a reference makes no second credit: the body of the answer is the same, and
 * the status is 200 instead of 201.
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
      handle: async ({ body }: ApiRequest<Body>) => {
        const stored = await storeCredit(deps.sql, await readCredit(deps, body));
        if (stored === null) throw new ApiError('not_found', 'account_id: there is no such account.');
        if (stored.created) await applyToWallet(deps, stored.credit);
        return { status: stored.created ? 201 : 200, body: creditJson(stored.credit) };
      },
    },
  ];
}

async function readCredit(deps: CreditsRoutesDeps, body: Body): Promise<NewCredit> {
  if ((body.account_id === undefined) === (body.key_id === undefined)) {
    throw new ApiError('invalid_request', 'account_id: exactly one of account_id and key_id is needed.');
  }
  const amountMicros = usdToMicros(body.amount);
  if (amountMicros === null || amountMicros === 0) {
    throw new ApiError('invalid_request', 'amount: must be USD above 0 with at most 6 decimals.');
  }
  const accountId = body.account_id ?? (await accountOfKey(deps, body.key_id ?? ''));
  return { accountId, amountMicros, reference: body.reference };
}

async function accountOfKey(deps: CreditsRoutesDeps, keyId: string): Promise<string> {
  const key = isKeyId(keyId) ? await deps.keys.find(keyId) : null;
  if (key === null) throw new ApiError('not_found', 'key_id: there is no such key.');
  return key.accountId;
}

/**
 * Adds the credit to the wallet in Redis. If that fails, nothing is lost: Postgres has stored the credit, and the writer applies
 * it later.
 */
async function applyToWallet(deps: CreditsRoutesDeps, credit: Credit): Promise<void> {
  const { accountId, seq, amountMicros } = credit;
  try {
    await deps.applier.apply({ accountId, seq, amountMicros });
  } catch (err) {
    deps.log.warn(
      { err, accountId, seq },
      'credit is stored in Postgres but not yet in the wallet: the writer will apply it',
    );
  }
}

/** Only what never changes, so that a repeated reference gets the same body again. The balance, for instance, is left out. */
function creditJson(credit: Credit): Record<string, unknown> {
  return {
    account_id: credit.accountId,
    amount: microsToUsd(credit.amountMicros),
    reference: credit.reference,
    seq: credit.seq,
    created_at: credit.createdAt.toISOString(),
  };
}
