import type { KeyRecord } from '../keys/caller.ts';
import { type Fields, money, optional, plain, type Row, selectList, time, view } from '../platform/fields.ts';
import { microsToUsd } from '../platform/money.ts';
import { COUNT, EXAMPLE, type JsonSchema, list, record, TEXT, TIME, UUID, usd } from '../platform/schemas.ts';
import { giverOf, type Refund } from './refunds/refund-sql.ts';

const STATUS: JsonSchema = {
  type: 'integer',
  description: '499: the caller left before an answer. 0: nobody knows',
};
const OUTCOME: JsonSchema = {
  type: 'string',
  pattern: '^(completed|abandoned|refunded:[a-z0-9_]+)$',
  description: '`completed`, `refunded:<reason>` or `abandoned`',
};
const text = (description: string) => plain<string>({ ...TEXT, description });
const id = (description: string) => plain<string>({ ...UUID, description });

/**
 * The record of a call, from `calls c LEFT JOIN services s`. Its owner is the buyer's account, its counterpart the provider's.
 * Neither may learn anything about the other.
 */
export const CALL = {
  usage_id: { column: 'c.usage_id', audience: 'anyone', ...plain<string>(UUID), example: EXAMPLE.usageId },
  buyer: {
    audience: 'counterpart',
    ...text('The buyer as X-ACF-Buyer names it to the service'),
    example: '5f2c9a1be07d4c3398a6f1d2b4e8c07a',
  },
  service_id: { column: 'c.service_id', audience: 'anyone', ...plain<string>(UUID), example: EXAMPLE.serviceId },
  service_name: { column: "coalesce(s.name, '')", audience: 'anyone', ...plain<string>(TEXT), example: 'Translate' },
  method: { column: 'c.method', audience: 'anyone', ...plain<string>(TEXT), example: 'POST' },
  path: {
    column: 'c.path',
    audience: 'anyone',
    ...text('Without its query, cut after 512 characters'),
    example: '/translate',
  },
  status: { column: 'c.status', audience: 'anyone', ...plain<number>(STATUS), example: 200 },
  amount: { column: 'c.amount', audience: 'anyone', ...money('What the call cost'), example: 0.002 },
  fee: { column: 'c.fee', audience: 'counterpart', ...money("The platform's share"), example: 0.0001 },
  earned: { column: 'c.amount - c.fee', audience: 'counterpart', ...money("The provider's share"), example: 0.0019 },
  free_tier: { column: 'c.free_tier', audience: 'anyone', ...plain<boolean>({ type: 'boolean' }), example: false },
  outcome: { column: 'c.outcome', audience: 'anyone', ...plain<string>(OUTCOME), example: 'completed' },
  latency_ms: {
    column: 'c.latency_us / 1000::float8',
    audience: 'anyone',
    ...plain<number>({ type: 'number', minimum: 0, description: 'Milliseconds' }),
    example: 17.322,
  },
  request_bytes: { column: 'c.request_bytes', audience: 'anyone', ...plain<number>(COUNT), example: 41 },
  response_bytes: { column: 'c.response_bytes', audience: 'anyone', ...plain<number>(COUNT), example: 52 },
  created_at: { column: 'c.created_at', audience: 'anyone', ...time(), example: EXAMPLE.time },
  key_id: { column: 'c.key_id', audience: 'owner', ...text('The key that paid'), example: EXAMPLE.keyId },
  key_label: {
    column: '(SELECT k.label FROM api_keys k WHERE k.key_id = c.key_id)',
    audience: 'owner',
    ...optional(text('Its label')),
    example: 'research',
  },
  authorized: {
    column: 'c.authorized',
    audience: 'anyone',
    ...optional(money('Of a call priced by use: what its service could charge at most')),
    example: 0.05,
  },
  clamped: {
    column: 'c.clamped',
    audience: 'anyone',
    ...optional(
      plain<boolean>({ type: 'boolean', description: 'Of a call priced by use: its service reported more than that' }),
    ),
    example: false,
  },
  tag: {
    column: 'c.tag',
    audience: 'owner',
    ...optional(text('Whom or what the call was for, as its caller said in X-ACF-Tag')),
    example: 'customer-17',
  },
  replays: {
    column: '(SELECT p.replays FROM call_replays p WHERE p.day = c.day AND p.usage_id = c.usage_id)',
    audience: 'owner',
    ...optional(
      plain<number>({
        ...COUNT,
        description: 'How often its answer was given again to requests with its Idempotency-Key, which cost nothing',
      }),
    ),
    example: 2,
  },
  refunded: {
    column: '(SELECT sum(r.amount)::bigint FROM refunds r WHERE r.usage_id = c.usage_id)',
    audience: 'anyone',
    ...optional(money('What was given back of the amount after the call')),
    example: 0.001,
  },
  refunds: {
    audience: 'anyone',
    ...optional<readonly RefundOfCall[], readonly object[]>({
      schema: list(
        record('RefundOfCall', {
          amount: usd('What was given back'),
          reason: TEXT,
          reference: TEXT,
          by: { type: 'string', enum: ['provider', 'operator'], description: 'Who gave it' },
          created_at: TIME,
        }),
        'The oldest first',
      ),
      json: (refunds) => refunds.map(refundOfCallJson),
    }),
    example: [
      {
        amount: 0.001,
        reason: 'the translation was cut off',
        reference: 'complaint 17',
        by: 'provider',
        created_at: EXAMPLE.time,
      },
    ],
  },
  cause: {
    column: 'c.cause',
    audience: 'counterpart',
    ...optional(
      text(
        'Why the service failed the call, where the status does not say it: `dns_failed`, `connect_failed`, `tls_expired`, ' +
          '`tls_wrong_name`, `tls_untrusted`, `tls_failed`, `connect_timeout`, `dns_timeout`, `head_timeout`, `body_timeout`, `reset`, ' +
          '`malformed_response`, `address_forbidden`; of the credentials that the listing adds `credentials_refused`, `quota_used_up`; ' +
          'of an MCP server `redirected`, `not_acceptable`',
      ),
    ),
    example: 'tls_expired',
  },
  account_id: { column: 'c.account_id', audience: 'admin', ...id("The buyer's account"), example: EXAMPLE.accountId },
  owner_id: { audience: 'admin', ...text('Its label'), example: 'acme-bot' },
  provider_id: {
    column: 'c.provider_id',
    audience: 'admin',
    ...id("The provider's account"),
    example: EXAMPLE.providerId,
  },
  provider_owner_id: { audience: 'admin', ...text('Its label'), example: 'translators' },
} as const satisfies Fields;

/** A refund as the record of its call shows it. */
type RefundOfCall = Pick<Refund, 'amountMicros' | 'reason' | 'reference' | 'givenBy' | 'createdAt'>;

const refundOfCallJson = (refund: RefundOfCall) => ({
  amount: microsToUsd(refund.amountMicros),
  reason: refund.reason,
  reference: refund.reference,
  by: giverOf(refund),
  created_at: refund.createdAt.toISOString(),
});

export type CallRow = Row<typeof CALL>;
export const CALL_SELECT = selectList(CALL);

export const BOUGHT = view(CALL, 'owner');
export const SOLD = view(CALL, 'counterpart', ['buyer']);
export const ANY_CALL = view(CALL, 'admin', ['buyer']);
// Lists say only how much of a call was given back; the call's own page says how.
export const BOUGHT_LIST = view(CALL, 'owner', ['refunds']);
/** All records in a provider's list belong to one service. */
export const SOLD_LIST = view(CALL, 'counterpart', ['service_id', 'service_name', 'refunds']);
export const ANY_LIST = view(CALL, 'admin', ['buyer', 'refunds']);

/** Whether the holder of this key sees the call as its buyer or as its provider; null: the holder may not see it. */
export function audienceOf(call: CallRow, by: KeyRecord): 'owner' | 'counterpart' | 'admin' | null {
  if (by.role === 'admin') return 'admin';
  if (call.account_id === by.accountId) return 'owner';
  return call.provider_id === by.accountId ? 'counterpart' : null;
}
