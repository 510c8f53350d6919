import type { CallTerms } from '../admission/call-terms.ts';
import type { RateState } from '../admission/codes.ts';
import type { Rejected, SpentBudget } from '../admission/commands.ts';
import { ApiError, ERRORS, unavailableError } from '../errors.ts';
import { unknownRate } from '../gate/answer.ts';
import type { HeadFault } from '../gate/caller-io.ts';
import type { KeyRecord } from '../keys/caller.ts';
import { isTag } from '../platform/call-tag.ts';
import { formatUsd, microsToUsd, parseUsd } from '../platform/money.ts';
import type { Operator } from '../platform/operator.ts';
import { readIdempotencyKey } from '../replay/idempotency-key.ts';
import type { ExchangeOptions } from './exchange-options.ts';
import { badIdempotencyKey, refusalOfClaim } from './replay/refusals.ts';

/** The error that tells the caller what is wrong with its HTTP message. */
export function faultError({ code, message }: HeadFault): ApiError {
  return new ApiError(code, message, { headers: FAULT_HEADERS[code] ?? {} });
}

/** Headers that HTTP requires in these responses: RFC 9110 §15.5.6 for 405, §15.5.22 with §7.8 for 426. */
const FAULT_HEADERS: { readonly [code in HeadFault['code']]?: Readonly<Record<string, string>> } = {
  method_not_allowed: { Allow: 'GET, HEAD, POST, PUT, PATCH, DELETE' },
  upgrade_not_supported: { Upgrade: 'HTTP/1.1', Connection: 'Upgrade' },
};

const MAX_AMOUNT = 'x-acf-max-amount';
const FREE_ONLY = 'x-acf-free-only';
const TAG = 'x-acf-tag';
const IDEMPOTENCY_KEY = 'idempotency-key';

/** What the caller says about a call: the most that it will pay, the idempotency key, and whom or what the call is for. */
type Said = {
  /** Micro-USD; more than any price if there is no limit. */
  readonly ceilingMicros: number;
  /** Whether the call must cost nothing. */
  readonly isFreeOnly: boolean;
  /** Null: it has none. */
  readonly tag: string | null;
  /** Null: it has none. */
  readonly idempotencyKey: string | null;
};

/**
 * Reads `X-ACF-Max-Amount: <usd>`, `X-ACF-Free-Only: true`, `X-ACF-Tag` and `Idempotency-Key`. The ceiling is what the first says, or the
 * maximum of a child key, whichever is lower. Throws if the price is higher, or if a value is not what it should be.
 */
export function saidIn(headers: readonly string[], priceMicros: number, ofKey: number | null): Said {
  let ceilingMicros = ofKey ?? Number.MAX_SAFE_INTEGER;
  let isFreeOnly = false;
  let tag: string | null = null;
  let idempotencyKey: string | null = null;
  if (priceMicros > ceilingMicros) {
    const message = `The price of this service is above the maximum of your API key, ${formatUsd(ceilingMicros)} USD.`;
    throw priceExceedsMaximum(priceMicros, message);
  }
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string;
    // The lengths spare most headers the second comparison.
    if (name.length === TAG.length && name === TAG) tag = tagOf(headers[i + 1] as string, tag);
    if (name.length === FREE_ONLY.length) {
      if (name === FREE_ONLY) isFreeOnly = isTrue(headers[i + 1] as string) || isFreeOnly;
      else if (name === IDEMPOTENCY_KEY) {
        if (idempotencyKey !== null) throw badIdempotencyKey();
        idempotencyKey = readIdempotencyKey(headers[i + 1] as string);
        if (idempotencyKey === null) throw badIdempotencyKey();
      }
    }
    if (name.length !== MAX_AMOUNT.length || name !== MAX_AMOUNT) continue;
    const bound = parseUsd(headers[i + 1] as string);
    if (bound === null)
      throw new ApiError('invalid_request', 'X-ACF-Max-Amount must be an amount in USD with at most 6 decimals.');
    if (priceMicros > bound) throw priceExceedsMaximum(priceMicros);
    ceilingMicros = Math.min(ceilingMicros, bound);
  }
  return { ceilingMicros, isFreeOnly, tag, idempotencyKey };
}

/** @param earlier the value of an earlier line of the header: a call has one tag, and of two it would be unclear which was meant */
function tagOf(value: string, earlier: string | null): string {
  if (!isTag(value) || (earlier !== null && earlier !== value))
    throw new ApiError('invalid_request', 'X-ACF-Tag must be one tag of 1 to 64 characters of A-Z a-z 0-9 . _ : / @ -');
  return value;
}

function isTrue(value: string): boolean {
  if (value !== 'true' && value !== 'false')
    throw new ApiError('invalid_request', 'X-ACF-Free-Only must be true or false.');
  return value === 'true';
}

/** The error for a call that must be free, but that no free call covers. */
export function freeCallsUsed({ priceMicros, hasFreeCalls }: CallTerms): ApiError {
  const message = hasFreeCalls ? undefined : 'This service has no free calls, and the request allows no paid call.';
  return new ApiError('free_calls_used', message, { fields: { price: microsToUsd(priceMicros) } });
}

const priceExceedsMaximum = (priceMicros: number, message?: string): ApiError =>
  new ApiError('price_exceeds_maximum', message, { fields: { price: microsToUsd(priceMicros) } });

/** The error for a child key whose services do not include this one. */
export const notPermittedError = (): ApiError =>
  new ApiError('forbidden', 'Your API key may not call this service. The holder of the key above it can permit that.');

/** The error for a provider key that calls a listing of another account. */
export const notOwnError = (): ApiError =>
  new ApiError(
    'forbidden',
    'A provider key can call the listings of its own account only. Other calls need a key of role buyer.',
  );

/** The error for a buyer whom the provider has blocked. It gives no reason, because the provider alone knows it. */
export const blockedError = (): ApiError =>
  new ApiError('forbidden', 'The provider of this service has blocked your account. Nothing was charged.');

/** The error for a call that admission refused, and the rate limit to send with it. */
export function refusalOf(
  result: Exclude<Rejected, { readonly outcome: 'charged_before' }>,
  key: KeyRecord,
  terms: CallTerms,
  { gate, operator }: Pick<ExchangeOptions, 'gate' | 'operator'>,
): { readonly error: ApiError; readonly rate: RateState } {
  switch (result.outcome) {
    case 'insufficient_balance':
      if (terms.isFreeOnly) return { error: freeCallsUsed(terms), rate: result.rate };
      return { error: insufficientBalance(terms, result.balanceMicros, key, operator), rate: result.rate };
    case 'budget_exceeded':
      if (terms.isFreeOnly) return { error: freeCallsUsed(terms), rate: result.rate };
      return { error: budgetExceeded(terms, result.budget, key), rate: result.rate };
    case 'damaged':
      return { error: damagedAccount(), rate: result.rate };
    case 'call_in_progress':
    case 'idempotency_mismatch':
    case 'claims_full':
      return { error: refusalOfClaim(result.outcome), rate: result.rate };
    case 'unavailable':
      return { error: unavailableError(), rate: unknownRate(key.rateLimit) };
    default:
      return { error: gate.refusal(key, result.outcome, result.rate), rate: result.rate };
  }
}

/** Says whose budget it is and when its next period begins, because the reader is often a model that has only this answer. */
function budgetExceeded(
  { heldMicros, priceMicros }: CallTerms,
  { keyId: limitKey, leftMicros, resetsAtMs }: SpentBudget,
  { keyId }: KeyRecord,
): ApiError {
  const resetsAt = resetsAtMs === null ? null : new Date(resetsAtMs).toISOString();
  const whose = limitKey === keyId ? 'this key' : `the key ${limitKey}, above this one,`;
  const again = resetsAt === null ? 'It does not start again' : `It starts again at ${resetsAt}`;
  const required = Math.min(priceMicros, heldMicros);
  return new ApiError(
    'budget_exceeded',
    `The budget of ${whose} has ${formatUsd(leftMicros)} USD left, and this call needs ${formatUsd(required)}. ${again}. ` +
      'The holder of the key above it can raise it.',
    { fields: { limit_key: limitKey, remaining: microsToUsd(leftMicros), resets_at: resetsAt } },
  );
}

/** Retry-After of an error that only an operator can fix: a sooner retry is pointless. */
const OPERATOR_SECONDS = 60;

function damagedAccount(): ApiError {
  const message =
    "This account's balance cannot be read; the gateway's operator has to repair it. Nothing was charged.";
  return unavailableError(undefined, message, OPERATOR_SECONDS);
}

/** The call would reach the service without the secrets that the listing adds. It is refused before admission, so it is free. */
export function unreadableSecrets(): ApiError {
  const message =
    "The secrets of this service's listing cannot be decrypted; the gateway's operator has to repair that. Nothing was charged.";
  return unavailableError(undefined, message, OPERATOR_SECONDS);
}

/** Says what to do, because the reader is often a model that has only this answer. */
function insufficientBalance(
  { heldMicros, priceMicros }: CallTerms,
  balanceMicros: number,
  { accountId }: KeyRecord,
  operator: Operator,
): ApiError {
  const topUp = operator.topUpOf(accountId);
  const how =
    topUp === null ? `Ask ${operator.who} to add money to the account ${accountId}` : `Money can be added at ${topUp}`;
  // For a call priced by use, more is held than it may cost in the end.
  const what =
    priceMicros < heldMicros && priceMicros <= balanceMicros
      ? `The balance does not cover what this call may cost. It is priced by use: it can be made with a lower X-ACF-Max-Amount, of ${formatUsd(priceMicros)} or more.`
      : ERRORS.insufficient_balance.message;
  return new ApiError('insufficient_balance', `${what} ${how}. GET /api/v1/balance/me shows the balance.`, {
    fields: {
      required: microsToUsd(heldMicros),
      balance: microsToUsd(balanceMicros),
      ...(topUp === null ? {} : { top_up: topUp }),
      ...(operator.details === null ? {} : { operator: operator.details }),
    },
  });
}
