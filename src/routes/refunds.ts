import { actorOf } from '../accounts/audit.ts';
import type { CreditApplier } from '../accounts/credits.ts';
import { giverOf, type Refund, type RefundedCall, selectRefundedCall } from '../accounts/refunds/refund-sql.ts';
import { REFUND_DAYS, type StoredRefund, storeRefund } from '../accounts/refunds/refunds.ts';
import { isUsageTime } from '../accounts/usage-sql.ts';
import { unseenFault } from '../catalog/providers/profile.ts';
import { ApiError } from '../errors.ts';
import type { ApiRequest, FromSchema, Route } from '../http/route.ts';
import { type KeyRecord, keyOf } from '../keys/caller.ts';
import type { MoneyTransactions } from '../ledger/history/fence.ts';
import { EXAMPLE, json, record, TEXT, TIME, UUID, usd } from '../openapi/schemas.ts';
import { isUuid } from '../platform/ids.ts';
import { microsToUsd } from '../platform/money.ts';
import type { Sql } from '../platform/postgres.ts';
import { AMOUNT, line, REFERENCE, readAmount } from './admin/money-fields.ts';
import { noSuchCall } from './usage.ts';

type RefundsDeps = {
  readonly sql: Sql;
  readonly money: MoneyTransactions;
  readonly applier: CreditApplier;
  readonly log: { warn(fields: Record<string, unknown>, message: string): void };
};

const BODY = {
  title: 'NewRefund',
  examples: [{ amount: 0.001, reason: 'the translation was cut off', reference: 'complaint 17' }],
  type: 'object',
  additionalProperties: false,
  required: ['reason', 'reference'],
  properties: {
    amount: { ...AMOUNT, description: `${AMOUNT.description}; all that is left of the call if absent` },
    reason: line(500, 'Why: the buyer, the provider and operators read it'),
    reference: REFERENCE,
  },
} as const;
type Body = FromSchema<typeof BODY>;

/** The fields of a refund, wherever it is shown. */
export const REFUND_FIELDS = {
  usage_id: UUID,
  amount: usd('What was given back to the buyer'),
  fee: usd('The part of it that the platform gave back of its fee; the rest came out of earnings'),
  carried: usd('The part that the earnings did not cover: the platform carries it until they do'),
  refunded: usd('What was given back of the call in total, this refund included'),
  reason: TEXT,
  reference: TEXT,
  by: { type: 'string', enum: ['provider', 'operator'], description: 'Who gave it' },
  created_at: TIME,
} as const;
export const REFUND_EXAMPLE = {
  usage_id: EXAMPLE.usageId,
  amount: 0.001,
  fee: 0.00005,
  carried: 0,
  refunded: 0.001,
  reason: 'the translation was cut off',
  reference: 'complaint 17',
  by: 'provider',
  created_at: EXAMPLE.time,
};
const REFUND = record('Refund', REFUND_FIELDS);

/** `POST /usage/{usage_id}/refund`: the provider of a call, or an operator, gives its amount back in whole or in part. */
export function refundsRoutes(deps: RefundsDeps): Route[] {
  return [
    {
      method: 'POST',
      path: '/api/v1/usage/:usage_id/refund',
      summary: `Give the amount of a call back to its buyer, whole or in part, within ${REFUND_DAYS} days: by its provider or an admin, and once per reference`,
      access: ['provider'],
      params: { usage_id: { description: 'The call', schema: UUID, example: EXAMPLE.usageId } },
      body: BODY,
      responses: {
        200: json('This reference was refunded before; nothing has changed', REFUND, REFUND_EXAMPLE),
        201: json('The refund', REFUND, REFUND_EXAMPLE),
      },
      errors: ['not_found', 'conflict'],
      handle: (request: ApiRequest<Body>) => giveBack(deps, request),
    },
  ];
}

async function giveBack(deps: RefundsDeps, { body, caller, params, requestId }: ApiRequest<Body>) {
  const by = keyOf(caller);
  checkSeen(body);
  const id = params.usage_id ?? '';
  const amountMicros = body.amount === undefined ? null : readAmount(body.amount);
  const call = isUuid(id) && isUsageTime(id) ? await selectRefundedCall(deps.sql, id) : null;
  if (call === null || !maySee(call, by)) throw await noSuchCall(deps.sql, id);
  const giver = { isOperator: by.role === 'admin', accountId: by.accountId };
  if (!giver.isOperator && call.providerId !== by.accountId) {
    throw new ApiError('forbidden', 'Only the provider of a call, or an admin, can give it back.');
  }
  const wanted = { usageId: id, amountMicros, reason: body.reason, reference: body.reference };
  const stored = await storeRefund(deps.money, call, wanted, giver, actorOf(by, requestId));
  if (stored === null) throw await noSuchCall(deps.sql, id);
  if (stored.created) await applyToWallet(deps, stored);
  return { status: stored.created ? 201 : 200, body: refundJson(stored.refund) };
}

/**
 * A provider writes these for its buyer and for operators, so they may not contain characters that make them look like another
 * text.
 */
function checkSeen({ reason, reference }: Body): void {
  for (const [name, text] of Object.entries({ reason, reference })) {
    const fault = unseenFault(text);
    if (fault !== null) throw new ApiError('invalid_request', `${name}: ${fault}.`);
  }
}

const maySee = ({ accountId, providerId }: RefundedCall, by: KeyRecord): boolean =>
  by.role === 'admin' || accountId === by.accountId || providerId === by.accountId;

/** Adds the refund to the wallet in Redis. If that fails, nothing is lost: the writer applies it later, like any credit. */
async function applyToWallet({ applier, log }: RefundsDeps, { refund, budgets }: StoredRefund): Promise<void> {
  const { accountId, creditSeq: seq, amountMicros } = refund;
  try {
    await applier.apply({ accountId, seq, amountMicros, budgets });
  } catch (err) {
    log.warn(
      { err, accountId, seq },
      'refund is stored in Postgres but not yet in the wallet: the writer will apply it',
    );
  }
}

/** Only fields that never change, so that a repeated reference gets the same body. */
export const refundJson = (refund: Refund) => ({
  usage_id: refund.usageId,
  amount: microsToUsd(refund.amountMicros),
  fee: microsToUsd(refund.feeMicros),
  carried: microsToUsd(refund.carriedMicros),
  refunded: microsToUsd(refund.totalBeforeMicros + refund.amountMicros),
  reason: refund.reason,
  reference: refund.reference,
  by: giverOf(refund),
  created_at: refund.createdAt.toISOString(),
});
