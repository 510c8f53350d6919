import { recordAct } from '../../accounts/audit.ts';
import { ApiError, unavailableError } from '../../errors.ts';
import type { ApiRequest, FromSchema, Route } from '../../http/route.ts';
import { keyOf } from '../../keys/caller.ts';
import type { Correction, NewCorrection } from '../../ledger/reconcile/corrections-sql.ts';
import type { Corrector, Operator } from '../../ledger/reconcile/corrector.ts';
import type { BudgetDrift, FreeDrift } from '../../ledger/reconcile/identity.ts';
import { COUNT, EXAMPLE, json, list, record, TEXT, TIME, UUID, usd } from '../../openapi/schemas.ts';
import { isUuid } from '../../platform/ids.ts';
import { microsToUsd } from '../../platform/money.ts';
import { actorOfRequest, line, REFERENCE } from './money-fields.ts';

const BODY = {
  title: 'NewCorrection',
  examples: [{ believe: 'postgres', reason: 'Redis came back older twice', reference: 'incident 12' }],
  type: 'object',
  additionalProperties: false,
  required: ['believe', 'reason', 'reference'],
  properties: {
    believe: {
      type: 'string',
      enum: ['postgres', 'redis'],
      description:
        'Which store is right. The other one is changed: postgres changes the wallet, redis changes the books',
    },
    reason: line(500, 'Kept with the repair. If redis is believed, the account sees it in its statement'),
    reference: REFERENCE,
  },
} as const;
type Body = FromSchema<typeof BODY>;

/** A counter of free calls that does not agree. */
export const FREE_CALLS_DRIFT = record('FreeCallsDrift', {
  service_id: UUID,
  used: { type: 'integer' },
  expected: { type: 'integer' },
});
/** A key's spending from its budget that does not agree. */
export const BUDGET_DRIFT = record('BudgetDrift', {
  key_id: TEXT,
  spent: usd('In the period that the wallet counts in'),
  expected: usd('What it should be, in the latest period'),
});
export const CORRECTION_FIELDS = {
  account_id: UUID,
  believe: BODY.properties.believe,
  drift: usd('What the wallet had more than it should have had; negative: less'),
  free_calls: list(FREE_CALLS_DRIFT, 'Free calls used: in the wallet, and as they should have been'),
  budgets: list(BUDGET_DRIFT, 'What keys have spent of their budgets: in the wallet, and as it should have been'),
  holds_of_stored_calls: { ...COUNT, description: 'Holds of stored calls that were removed' },
  reason: TEXT,
  reference: TEXT,
  made_by: TEXT,
  created_at: TIME,
};
const CORRECTION = record('Correction', CORRECTION_FIELDS);
const EXAMPLE_CORRECTION = {
  account_id: EXAMPLE.accountId,
  believe: 'postgres',
  drift: 0.0531,
  free_calls: [],
  budgets: [],
  holds_of_stored_calls: 0,
  reason: 'Redis came back older twice',
  reference: 'incident 12',
  made_by: 'admin acf_7hTq2mXcVb91LwKzRd03Ye',
  created_at: EXAMPLE.time,
};

type CorrectionsRoutesDeps = {
  readonly corrector: Pick<Corrector, 'correct'>;
  readonly log: { warn(fields: object, message: string): void };
};

/** `POST /admin/reconciliation/{account_id}` ends a drift that the comparison may not repair, once per reference. */
export function correctionsRoutes({ corrector, log }: CorrectionsRoutesDeps): Route[] {
  return [
    {
      method: 'POST',
      path: '/api/v1/admin/reconciliation/:account_id',
      summary: 'End the drift of an account: say which store is right, and why; once per reference',
      access: ['admin'],
      params: { account_id: { description: 'The account', schema: UUID, example: EXAMPLE.accountId } },
      body: BODY,
      responses: {
        200: json('This reference was carried out before; nothing has changed', CORRECTION, EXAMPLE_CORRECTION),
        201: json('The correction', CORRECTION, EXAMPLE_CORRECTION),
      },
      errors: ['not_found', 'conflict'],
      handle: async (request: ApiRequest<Body>) => {
        const accountId = request.params.account_id ?? '';
        if (!isUuid(accountId)) throw new ApiError('not_found', 'There is no such account.');
        const wanted = { accountId, ...request.body };
        const { correction, created } = await corrector
          .correct(wanted, operatorOf(request, wanted))
          .catch((error: unknown) => {
            if (error instanceof ApiError) throw error;
            log.warn({ err: error, request_id: request.requestId }, 'a correction failed, but may have been made');
            throw unavailableError(
              error,
              'It is not known yet whether the drift was taken out. Send the same request again: it counts once.',
            );
          });
        return { status: created ? 201 : 200, body: correctionJson(correction) };
      },
    },
  ];
}

function operatorOf(request: ApiRequest, { accountId, believe, reason, reference }: NewCorrection): Operator {
  return {
    madeBy: `admin ${keyOf(request.caller).keyId}`,
    record: (tx, { driftMicros, freeDrifts, budgetDrifts, storedHolds }, moved) =>
      recordAct(tx, {
        ...actorOfRequest(request),
        action: 'account.correct',
        subjectType: 'account',
        subjectId: accountId,
        before: {
          drift: microsToUsd(driftMicros),
          ...moved?.before,
          ...(freeDrifts.length === 0 ? {} : { free_calls: freeCallsJson(freeDrifts) }),
          ...(budgetDrifts.length === 0 ? {} : { budgets: budgetsJson(budgetDrifts) }),
          ...(storedHolds === 0 ? {} : { holds_of_stored_calls: storedHolds }),
        },
        after: { drift: 0, ...moved?.after, believe, reason, reference },
      }),
  };
}

export const freeCallsJson = (drifts: readonly FreeDrift[]) =>
  drifts.map(({ serviceId, used, expected }) => ({ service_id: serviceId, used, expected }));

export const budgetsJson = (drifts: readonly BudgetDrift[]) =>
  drifts.map(({ keyId, spentMicros, expectedMicros }) => ({
    key_id: keyId,
    spent: microsToUsd(spentMicros),
    expected: microsToUsd(expectedMicros),
  }));

export const correctionJson = (correction: Correction) => ({
  account_id: correction.accountId,
  believe: correction.believe,
  drift: microsToUsd(correction.driftMicros),
  free_calls: freeCallsJson(correction.freeDrifts),
  budgets: budgetsJson(correction.budgetDrifts),
  holds_of_stored_calls: correction.storedHolds,
  reason: correction.reason,
  reference: correction.reference,
  made_by: correction.madeBy,
  created_at: correction.createdAt.toISOString(),
});
