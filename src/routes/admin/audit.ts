import { ACT_OUTCOMES } from '../../accounts/audit.ts';
import { type Labels, selectLabels, selectNames } from '../../accounts/labels-sql.ts';
import { type AuditRow, actExists, selectActs } from '../../accounts/lists/audit-sql.ts';
import { readWithDeadline } from '../../accounts/lists/deadline.ts';
import { parseTimeRange } from '../../accounts/time-range.ts';
import type { ApiRequest, ApiResponse, FromSchema, JsonSchema, Route } from '../../http/route.ts';
import { EXAMPLE, json, list, orNull, record, TEXT, TIME, UUID } from '../../openapi/schemas.ts';
import { isUuid } from '../../platform/ids.ts';
import type { Sql } from '../../platform/postgres.ts';
import { listQuery, oneOf, readPage, TIME_FILTERS, wrongCursor } from './lists.ts';

const QUERY = listQuery({
  actor: {
    type: 'string',
    pattern: '^(acf_[0-9A-Za-z]{22}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|create-admin|system)$',
    description: 'Who acted: a key, all keys of an account, `create-admin` or `system`',
  },
  action: {
    type: 'string',
    pattern: '^[a-z]+\\.[a-z_]+$',
    maxLength: 50,
    description:
      '`account.create`, `account.credit`, `account.debit`, `account.payout`, `account.correct` (recorded before, so the request may have ' +
      'failed), `account.suspend`, `account.resume`, `account.clear_profile`, `account.close`; `call.refund`; `key.create`, ' +
      '`key.rotate`, `key.change`, `key.revoke`, `key.sign_in` (of an admin, in a browser); `service.change`, `service.remove`; ' +
      '`reconciliation.run`, `reconciliation.accept_postgres`',
  },
  subject: {
    type: 'string',
    pattern: '^[0-9A-Za-z_-]{1,36}$',
    description: 'What was acted on: the id of an account, key, service or call',
  },
  outcome: oneOf(ACT_OUTCOMES, 'Only acts with this outcome'),
  ...TIME_FILTERS,
});
type Query = FromSchema<typeof QUERY>;

const STATE: JsonSchema = {
  type: ['object', 'null'],
  additionalProperties: true,
  description: 'What changed, never with a secret. Where money was moved, also the balance',
};
const ACT = record('Act', {
  id: { type: 'integer' },
  at: TIME,
  actor: { ...TEXT, description: 'The id of an API key; `create-admin` or `system` where none acted' },
  actor_account_id: orNull(UUID),
  actor_owner_id: { ...orNull(TEXT), description: 'The label of that account' },
  action: TEXT,
  subject_type: { type: 'string', enum: ['account', 'key', 'service', 'call', 'reconciliation'] },
  subject_id: TEXT,
  subject_owner_id: { ...orNull(TEXT), description: 'The label of the account, or of the one whose key it is' },
  subject_name: { ...orNull(TEXT), description: 'The name of the service, until its account is closed' },
  before: STATE,
  after: STATE,
  outcome: {
    ...TEXT,
    enum: [...ACT_OUTCOMES],
    description: '`begun`: another act of the same request tells how it ended. `refused`: nothing has changed',
  },
  request_id: { ...orNull(TEXT), description: '`X-Request-Id` of the request that asked for it' },
});
const ACTS = record('Audit', { acts: list(ACT, 'Newest first'), next_cursor: orNull(TEXT) });
const ACT_EXAMPLE = {
  id: 42,
  at: EXAMPLE.time,
  actor: EXAMPLE.keyId,
  actor_account_id: EXAMPLE.providerId,
  actor_owner_id: 'operator',
  subject_owner_id: 'acme-bot',
  action: 'account.suspend',
  subject_type: 'account',
  subject_id: EXAMPLE.accountId,
  subject_name: null,
  before: { status: 'active' },
  after: { status: 'suspended' },
  outcome: 'done',
  request_id: EXAMPLE.usageId,
};

/** `GET /admin/audit`: what was done in the operator's name. */
export function auditRoutes({ sql }: { readonly sql: Sql }): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v1/admin/audit',
      summary: "What was done in the operator's name: by whom, when, to what, with what before and after; newest first",
      access: ['admin'],
      query: QUERY,
      csvRows: 'acts',
      responses: { 200: json('One page of acts', ACTS, { acts: [ACT_EXAMPLE], next_cursor: null }) },
      handle: (request: ApiRequest<undefined, Query>) => listActs(sql, request.query),
    },
  ];
}

async function listActs(sql: Sql, query: Query): Promise<ApiResponse> {
  const { actor = null, action = null, subject: subjectId = null, outcome = null, cursor } = query;
  const actorIsAccount = actor !== null && isUuid(actor);
  const filter = { ...parseTimeRange(query), actor, actorIsAccount, action, subjectId, outcome };
  const before = cursor === undefined ? null : await readCursor(sql, cursor);
  const { entries, next } = await readPage(
    query,
    (limit) => readWithDeadline(sql, async (timed) => selectActs(await timed(), filter, before, limit)),
    (act) => String(act.id),
  );
  const accounts = entries.flatMap((act) => [act.actorAccountId, accountOf(act)]).filter((id) => id !== null);
  const services = entries.filter((act) => act.subjectType === 'service').map((act) => act.subjectId);
  const [labels, names] = await Promise.all([selectLabels(sql, accounts), selectNames(sql, services)]);
  return { status: 200, body: { acts: entries.map((act) => actJson(act, labels, names)), next_cursor: next } };
}

async function readCursor(sql: Sql, cursor: string): Promise<number> {
  // Up to 15 digits: both JavaScript and Postgres represent such a number exactly.
  if (!/^[1-9]\d{0,14}$/.test(cursor) || !(await actExists(sql, Number(cursor)))) throw wrongCursor();
  return Number(cursor);
}

/** The account to which it was done, or whose key it was. */
function accountOf({ subjectType, subjectId, before, after }: AuditRow): string | null {
  const id = subjectType === 'account' ? subjectId : (after?.account_id ?? before?.account_id);
  return typeof id === 'string' && isUuid(id) ? id : null;
}

function actJson(act: AuditRow, labels: Labels, names: Labels): Record<string, unknown> {
  return {
    id: act.id,
    at: act.at.toISOString(),
    actor: act.actor,
    actor_account_id: act.actorAccountId,
    actor_owner_id: labels.get(act.actorAccountId ?? '') ?? null,
    action: act.action,
    subject_type: act.subjectType,
    subject_id: act.subjectId,
    subject_owner_id: labels.get(accountOf(act) ?? '') ?? null,
    subject_name: names.get(act.subjectId) ?? null,
    before: act.before,
    after: act.after,
    outcome: act.outcome,
    request_id: act.requestId,
  };
}
