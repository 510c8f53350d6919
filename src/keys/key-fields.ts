import {
  type Fields,
  money,
  optional,
  plain,
  type Row,
  selectList,
  time,
  timeOrNull,
  type Values,
  view,
} from '../platform/fields.ts';
import { COUNT, EXAMPLE, type JsonSchema, list, orNull, TEXT, TIME, UUID, usd } from '../platform/schemas.ts';
import { BUDGET_PERIODS } from './budget-period.ts';
import { ROLES, type Role } from './caller.ts';
import type { BudgetNow, StoredBudget } from './children/budgets-sql.ts';

export const KEY_ID: JsonSchema = { type: 'string', pattern: '^acf_[0-9A-Za-z]{22}$' };
const SECRET = { type: 'string', pattern: '^sk_[0-9A-Za-z]{49}$', description: 'Shown here and never again' };
const ROLE = { type: 'string', enum: [...ROLES] };
const STATUS = { type: 'string', enum: ['active', 'revoked'] };
const RATE_LIMIT = { type: 'integer', minimum: 1, description: 'Requests per minute' };
const BY_OPERATOR = { type: 'boolean', description: 'Whether an operator issued it to the account' };
// Closing an account revokes its keys, so nobody can read about a closed one.
const ACCOUNT_STATUS = { type: 'string', enum: ['active', 'suspended'] };
const REASON = { ...orNull(TEXT), description: 'What the operator tells a suspended account' };
const LABEL: JsonSchema = { ...TEXT, description: 'What its owner calls the key' };
const PARENT = 'k.ancestors[cardinality(k.ancestors)]';
const PARENT_KEY: JsonSchema = { ...KEY_ID, description: 'The key above a child key' };
const BUDGET = `CASE WHEN k.budget_amount IS NOT NULL
  THEN json_build_object('amount', k.budget_amount, 'period', k.budget_period, 'number', k.budget_number) END`;
const BUDGET_NOW: JsonSchema = {
  title: 'Budget',
  type: 'object',
  description: 'What a child key and those below it may spend',
  required: ['amount', 'period', 'spent', 'remaining', 'resets_at', 'refused'],
  properties: {
    amount: usd('What may be spent in a period'),
    period: { type: 'string', enum: [...BUDGET_PERIODS], description: 'In UTC; weeks begin on Monday' },
    spent: usd('What calls of this period have cost that ended up to a second ago'),
    remaining: usd('What is left of the amount'),
    resets_at: { ...orNull(TIME), description: 'When the next period begins; null: never' },
    refused: { ...COUNT, description: 'Calls of this period that it has refused, up to some seconds ago' },
  },
};
const SERVICES: JsonSchema = list(UUID, 'The only services that a child key may call');
const PREVIOUS = 'CASE WHEN k.previous_expires_at > now() THEN k.previous_expires_at END';
/** Taken from counted calls: their sums have few rows, and a page has a thousand keys. */
const LAST_USED =
  '(SELECT last_call_at FROM key_hours h WHERE h.key_id = k.key_id ORDER BY hour DESC, last_call_at DESC LIMIT 1)';

/** An API key, from `api_keys k JOIN accounts a`. Its owner is its account. */
export const KEY = {
  key_id: { column: 'k.key_id', audience: 'owner', ...plain<string>(KEY_ID), example: EXAMPLE.keyId },
  secret: { audience: 'owner', ...plain<string>(SECRET), example: EXAMPLE.secret },
  role: { column: 'k.role', audience: 'owner', ...plain<Role>(ROLE), example: 'buyer' },
  owner_id: { column: 'a.owner_id', audience: 'owner', ...plain<string>(TEXT), example: 'acme-bot' },
  rate_limit: { column: 'k.rate_limit', audience: 'owner', ...plain<number>(RATE_LIMIT), example: 60 },
  account_id: { column: 'k.account_id', audience: 'owner', ...plain<string>(UUID), example: EXAMPLE.accountId },
  label: { column: 'k.label', audience: 'owner', ...optional(plain<string>(LABEL)), example: 'research agent' },
  parent_key_id: { column: PARENT, audience: 'owner', ...optional(plain<string>(PARENT_KEY)) },
  budget: { audience: 'owner', ...optional(plain<BudgetNow>(BUDGET_NOW)) },
  max_price: { column: 'k.max_price', audience: 'owner', ...optional(money('The most that a call may cost')) },
  services: { column: 'k.services', audience: 'owner', ...optional(plain<readonly string[]>(SERVICES)) },
  expires_at: { column: 'k.expires_at', audience: 'owner', ...optional(time()) },
  status: { column: 'k.status', audience: 'owner', ...plain<'active' | 'revoked'>(STATUS), example: 'active' },
  created_at: { column: 'k.created_at', audience: 'owner', ...time(), example: EXAMPLE.time },
  /** When the secret replaced by the last rotation ceases to be valid; null if there is none, or it is not valid any more. */
  previous_secret_expires_at: { column: PREVIOUS, audience: 'owner', ...timeOrNull(), example: null },
  by_operator: { column: 'k.by_operator', audience: 'owner', ...plain<boolean>(BY_OPERATOR), example: false },
  account_status: { column: 'a.status', audience: 'owner', ...plain<string>(ACCOUNT_STATUS), example: 'active' },
  suspension_reason: {
    column: 'a.suspension_reason',
    audience: 'owner',
    ...plain<string | null>(REASON),
    example: null,
  },
  last_used_at: { column: LAST_USED, audience: 'owner', ...timeOrNull(), example: EXAMPLE.time },
  total_spent: { audience: 'owner', ...money('What calls with this key have cost'), example: 0.002 },
} as const satisfies Fields;

/** A key as Postgres has it. Its ancestors are the keys above it, root key first. */
export type KeyRow = Row<typeof KEY> & {
  readonly ancestors: readonly string[];
  readonly stored_budget: StoredBudget | null;
};
export const KEY_SELECT = `${selectList(KEY)}, k.ancestors, ${BUDGET} AS stored_budget`;
/** A key, with the remaining amount of its budget. */
export type ShownKey = KeyRow & { readonly budget: BudgetNow | null };

/** A key that was just made. This is the only copy of its secret in clear. */
export const NEW_KEY = view(KEY, 'owner', [
  'status',
  'created_at',
  'previous_secret_expires_at',
  'by_operator',
  'account_status',
  'suspension_reason',
  'last_used_at',
  'total_spent',
]);
export type CreatedKey = Pick<Values<typeof KEY>, (typeof NEW_KEY.names)[number]>;
const NOT_LISTED = ['secret', 'account_status', 'suspension_reason', 'total_spent'] as const;
export const LISTED_KEY = view(KEY, 'owner', NOT_LISTED);
export const OWN_KEY = view(KEY, 'owner', ['secret']);
const OPERATOR = { key_id: KEY.key_id, role: KEY.role, label: KEY.label, created_at: KEY.created_at };
export type OperatorKey = Row<typeof OPERATOR>;
/** A key that an operator issued, as it is shown to all keys of its account. */
export const OPERATOR_KEY = view(OPERATOR, 'owner');
