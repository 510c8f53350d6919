import { parseInstant } from '../accounts/time-range.ts';
import { ApiError } from '../errors.ts';
import type { FromSchema } from '../http/route.ts';
import { BUDGET_PERIODS } from '../keys/budget-period.ts';
import type { KeyChange } from '../keys/children/change.ts';
import { MAX_SERVICES } from '../keys/children/limits.ts';
import type { NewChildKey } from '../keys/keys.ts';
import { ONE_LINE } from '../openapi/schemas.ts';
import { usdToMicros } from '../platform/money.ts';

// What requests say about the limits of child keys, and how it is read.

const TEXT_OF_LABEL = {
  minLength: 1,
  maxLength: 100,
  pattern: ONE_LINE,
  description: 'What you call the key',
} as const;
/** In micro-USD, a larger number is not exact. */
const MAX_USD = 1_000_000_000;
const AMOUNT = {
  type: 'number',
  minimum: 0,
  maximum: MAX_USD,
  description: 'USD that may be spent in a period',
} as const;
const PERIOD = { type: 'string', enum: BUDGET_PERIODS, description: 'In UTC; weeks begin on Monday' } as const;
const MAX_PRICE = { minimum: 0, maximum: MAX_USD, description: 'USD that a call may cost at most' } as const;
const SERVICES = {
  maxItems: MAX_SERVICES,
  uniqueItems: true,
  items: { type: 'string', pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' },
  description: 'The only services that it may call',
} as const;
const EXPIRES_AT = {
  maxLength: 40,
  description: 'RFC 3339, or a day (00:00 UTC): from then on the key is refused',
} as const;
const BUDGET = 'What the key and those below it may spend';

export const LABEL = { type: 'string', ...TEXT_OF_LABEL } as const;

/** Fields of a request for a child key. */
export const NEW_LIMITS = (maxRateLimit: number) =>
  ({
    budget: {
      type: 'object',
      additionalProperties: false,
      required: ['amount', 'period'],
      properties: { amount: AMOUNT, period: PERIOD },
      description: BUDGET,
    },
    rate_limit: rateLimit(maxRateLimit, 'Requests per minute; the lowest of those above it if absent'),
    max_price: { type: 'number', ...MAX_PRICE },
    services: { type: 'array', ...SERVICES },
    expires_at: { type: 'string', ...EXPIRES_AT },
  }) as const;

/** Fields of a change: null removes a limit. */
export const CHANGED_LIMITS = (maxRateLimit: number) =>
  ({
    label: { type: ['string', 'null'], ...TEXT_OF_LABEL },
    budget: {
      type: ['object', 'null'],
      additionalProperties: false,
      required: ['amount'],
      properties: { amount: AMOUNT, period: PERIOD },
      description: `${BUDGET}; null stops it, and a period is needed only for a new one`,
    },
    rate_limit: rateLimit(maxRateLimit, 'Requests per minute'),
    max_price: { type: ['number', 'null'], ...MAX_PRICE },
    services: { type: ['array', 'null'], ...SERVICES },
    expires_at: { type: ['string', 'null'], ...EXPIRES_AT },
  }) as const;

const rateLimit = (maximum: number, description: string) =>
  ({ type: 'integer', minimum: 1, maximum, description }) as const;

type Schema<Properties> = {
  readonly type: 'object';
  readonly additionalProperties: false;
  readonly properties: Properties;
};
type NewBody = FromSchema<Schema<ReturnType<typeof NEW_LIMITS>>> & { readonly label?: string };
type ChangeBody = FromSchema<Schema<ReturnType<typeof CHANGED_LIMITS>>>;

export function newChildOf(body: NewBody): NewChildKey {
  const { budget, expires_at: expiresAt, max_price: maxPrice, rate_limit: rateLimit = null, services = null } = body;
  return {
    label: body.label ?? null,
    budget:
      budget === undefined ? null : { amountMicros: micros('budget.amount', budget.amount), period: budget.period },
    rateLimit,
    maxPriceMicros: maxPrice === undefined ? null : micros('max_price', maxPrice),
    services,
    expiresAt: expiresAt === undefined ? null : instant(expiresAt),
  };
}

export function changeOf(body: ChangeBody): KeyChange {
  const { label, budget, expires_at: expiresAt, max_price: maxPrice, rate_limit: rateLimit, services } = body;
  return {
    ...(label === undefined ? {} : { label }),
    ...(rateLimit === undefined ? {} : { rateLimit }),
    ...(services === undefined ? {} : { services }),
    ...(budget === undefined ? {} : { budget: budget && budgetOf(budget) }),
    ...(maxPrice === undefined ? {} : { maxPriceMicros: maxPrice === null ? null : micros('max_price', maxPrice) }),
    ...(expiresAt === undefined ? {} : { expiresAt: expiresAt === null ? null : instant(expiresAt) }),
  };
}

const budgetOf = ({ amount, period }: NonNullable<ChangeBody['budget']>) => ({
  amountMicros: micros('budget.amount', amount),
  period,
});

function micros(field: string, usd: number): number {
  const amount = usdToMicros(usd);
  if (amount === null)
    throw new ApiError('invalid_request', `${field}: must be a number of USD, 0 or more, with at most 6 decimals.`);
  return amount;
}

const instant = (text: string): Date => new Date(parseInstant('expires_at', text) ?? 0);
