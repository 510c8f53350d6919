import { isTag } from '../platform/call-tag.ts';
import { isUuid } from '../platform/ids.ts';

/**
 * The usage event. Settling a call appends it to the stream, and it is all that the writer knows about the call. It is one stream
 * field of tab-separated text, so that neither the hot path nor the Lua script serialises anything. The field's name is the version
 * of the format: `e1`.
 *
 *   usage_id
 *   the hold, as it was in Redis: v1, amount, free (0|1), admitted at (ms), instance, account, key, service, provider, method,
 *     path; then fields name=value
 *   the settlement: outcome, status, latency (µs), request bytes, response bytes; then fields name=value
 *
 * Named fields are absent if they have nothing to say. No outcome contains `=`, so each part ends where the next one begins. Of a
 * call priced by use (amounts in micro-USD):
 *
 *   hold         cap      the highest price of its listing or operation; makes it a call priced by use
 *                ceiling  what the caller would pay at most, if that is less
 *                budgets  of a call of a child key: the budgets that its amount counts in, each as <key>.<period>, separated by
 *                         commas (src/keys/budget-period.ts)
 *                claim    of a call with an idempotency key: the name of its claim (src/admission/claims.ts), by which the sweep
 *                         frees it. It is not stored
 *   settlement   captured what the service reported, or the price if it reported nothing. It may be above the hold, whose amount is
 *                         then charged. Absent: the whole hold
 *
 * Of a call that its caller has tagged:
 *
 *   hold         tag      whom or what the call was for, in the caller's words (`X-ACF-Tag`)
 *
 * Of a call that its service failed:
 *
 *   settlement   cause    what its provider is told of the failure, a short word (src/proxy/cause-texts.ts). Never for the buyer
 *
 * Three stream fields, one for each part, cost the writer 2.6 µs more per event: ioredis makes a Buffer and a string of each
 * field.
 */

export type RefundReason =
  | 'upstream_error'
  | 'upstream_timeout'
  | 'upstream_busy'
  | 'upstream_5xx'
  | 'upstream_cut'
  | 'upstream_denied'
  | 'upstream_rate_limited'
  | 'caller_gone'
  | 'payload_too_large'
  | 'body_too_slow'
  | 'invalid_request'
  | 'unavailable';

export type Outcome = 'completed' | 'abandoned' | `refunded:${RefundReason}`;

export type Settlement = {
  readonly outcome: Outcome;
  /** HTTP status sent to the caller; 499 if the caller left before a status was sent, 0 if unknown. */
  readonly status: number;
  readonly latencyUs: number;
  readonly requestBytes: number;
  readonly responseBytes: number;
  /** Why the service failed the call, if the status does not say it. */
  readonly cause?: string | null;
};

/** A budget, and the period of it in which a call counts. */
export type BudgetPart = { readonly keyId: string; readonly period: number };

/** One settled call as the writer stores it. Amounts in micro-USD. */
export type UsageEvent = Settlement & {
  readonly usageId: string;
  /** The amount the hold took. Nothing is charged unless the outcome is `completed`. */
  readonly heldMicros: number;
  /** What the service reported, perhaps more than was held. Null: the whole hold is charged. */
  readonly capturedMicros: number | null;
  /** The highest price of the listing or operation. Null: the call had a fixed price. */
  readonly capMicros: number | null;
  /** The most that the caller would pay, if that is less. */
  readonly ceilingMicros: number | null;
  /** The budgets in which the charge counts. */
  readonly budgets: readonly BudgetPart[];
  readonly cause: string | null;
  /** The caller's own label for what the call was made for. Null: it gave none. */
  readonly tag: string | null;
  readonly freeTier: boolean;
  readonly admittedAtMs: number;
  readonly accountId: string;
  readonly keyId: string;
  readonly serviceId: string;
  readonly providerId: string;
  readonly method: string;
  readonly path: string;
};

export function encodeSettlement(s: Settlement): string {
  const text = `${s.outcome}\t${s.status}\t${s.latencyUs}\t${s.requestBytes}\t${s.responseBytes}`;
  return s.cause == null ? text : `${text}\tcause=${s.cause}`;
}

/** The settlement that the sweep records for a call whose gateway died. */
export const ABANDONED = encodeSettlement({
  outcome: 'abandoned',
  status: 0,
  latencyUs: 0,
  requestBytes: 0,
  responseBytes: 0,
});

/** The settlement that a cancellation records for a call whose admission got no reply. The caller was told 503. */
export const CANCELLED = encodeSettlement({
  outcome: 'refunded:unavailable',
  status: 503,
  latencyUs: 0,
  requestBytes: 0,
  responseBytes: 0,
});

const OUTCOME = /^(completed|abandoned|refunded:[a-z0-9_]{1,40})$/;
const MAX_SMALLINT = 32_767;

/** A regular expression and `Number` took 0.06 µs more per number, and an event has six. */
function digits(text: string | undefined): number | null {
  if (text === undefined || text.length === 0 || text.length > 16) return null;
  let value = 0;
  for (let i = 0; i < text.length; i++) {
    const digit = text.charCodeAt(i) - 0x30;
    if (digit < 0 || digit > 9) return null;
    value = value * 10 + digit;
  }
  return value;
}

function integer(text: string | undefined, name: string, maximum: number = Number.MAX_SAFE_INTEGER): number {
  const value = digits(text);
  if (value === null) throw new Error(`usage event: ${name} is not a number: ${text}`);
  if (value > maximum) throw new Error(`usage event: ${name} is too large: ${text}`);
  return value;
}

function uuid(text: string | undefined, name: string): string {
  if (text === undefined || !isUuid(text)) throw new Error(`usage event: ${name} is not a UUID: ${text}`);
  return text;
}

/** Maximum ids of services and providers kept; beyond it all are forgotten. */
const MAX_SHARED_IDS = 1_000;
const sharedIds = new Map<string, string>();

/**
 * The id of a service or a provider. The same ids occur again and again, so each is checked once, and its events share one string:
 * comparing it with itself, or looking it up again, need not read its letters.
 */
function sharedUuid(text: string | undefined, name: string): string {
  const shared = sharedIds.get(text ?? '');
  if (shared !== undefined) return shared;
  // A copy, because a slice would keep the whole text of its event.
  const id = Buffer.from(uuid(text, name), 'latin1').toString('latin1');
  if (sharedIds.size >= MAX_SHARED_IDS) sharedIds.clear();
  sharedIds.set(id, id);
  return id;
}

/** A text that Postgres can store: Postgres text cannot contain NUL. */
function storable(text: string | undefined, name: string): string {
  if (text === undefined || text.includes('\0')) throw new Error(`usage event: ${name} is missing or has a NUL`);
  return text;
}

function outcome(text: string | undefined): Outcome {
  if (text === 'completed') return text;
  if (text === undefined || !OUTCOME.test(text)) throw new Error(`usage event: unknown outcome: ${text}`);
  return text as Outcome;
}

/** Whether a stream field is a usage event that this version can read. */
export const isEvent = (field: string | undefined): boolean => field === 'e1';

/** Whether a stream field is a usage event of a newer version. Only a writer of that version can store it. */
export const isNewerEvent = (field: string | undefined): boolean =>
  field !== undefined && !isEvent(field) && /^e[1-9]\d{0,3}$/.test(field);

/** Number of unnamed fields of an event. */
const FIELDS = 17;
/** Where the named fields of the hold begin and, after these are removed, those of the settlement. */
const HOLD_ENDS = 12;

/**
 * Thrown for an event with a field whose name this version does not know, so only a newer one can store it. It is made once: one
 * look at a stream may find thousands of such events, and a stack trace for each would take longer than reading them.
 */
export const NEWER_EVENT = new Error('usage event: a field of a newer version');

/**
 * Reads an event. Throws on text that batch.lua and `encodeSettlement` cannot have written. The writer then puts that event into
 * `rejected_events`; otherwise Postgres would refuse the whole batch because of it.
 *
 * @throws NEWER_EVENT
 */
export function decodeUsageEvent(text: string): UsageEvent {
  const f = text.split('\t');
  const named = f.length > FIELDS ? takeNamed(f) : NONE;
  if (f.length !== FIELDS) throw new Error('usage event: wrong number of fields');
  if (f[1] !== 'v1') throw new Error(`usage event: the hold has another version: ${f[1]}`);
  if (f[3] !== '0' && f[3] !== '1') throw new Error(`usage event: free is neither 0 nor 1: ${f[3]}`);
  return {
    usageId: uuid(f[0], 'usage_id'),
    heldMicros: integer(f[2], 'amount'),
    capturedMicros: named.captured ?? null,
    capMicros: named.cap ?? null,
    ceilingMicros: named.ceiling ?? null,
    budgets: named.budgets ?? NO_BUDGETS,
    cause: named.cause ?? null,
    tag: named.tag ?? null,
    freeTier: f[3] === '1',
    admittedAtMs: integer(f[4], 'admitted at'),
    accountId: uuid(f[6], 'account'),
    keyId: storable(f[7], 'key'),
    serviceId: sharedUuid(f[8], 'service'),
    providerId: sharedUuid(f[9], 'provider'),
    method: storable(f[10], 'method'),
    path: storable(f[11], 'path'),
    outcome: outcome(f[12]),
    status: integer(f[13], 'status', MAX_SMALLINT),
    latencyUs: integer(f[14], 'latency'),
    requestBytes: integer(f[15], 'request bytes'),
    responseBytes: integer(f[16], 'response bytes'),
  };
}

type Named = { [Name in 'cap' | 'ceiling' | 'captured']?: number } & {
  budgets?: readonly BudgetPart[];
  cause?: string;
  tag?: string;
  claim?: string;
};
const NONE: Named = {};
const HOLD_NAMES: readonly string[] = ['cap', 'ceiling', 'tag', 'claim', 'budgets'];
const SETTLEMENT_NAMES: readonly string[] = ['captured', 'cause'];

/** Removes the named fields from an event's fields. */
function takeNamed(fields: string[]): Named {
  const named: Named = {};
  let end = HOLD_ENDS;
  while (fields[end]?.includes('=')) end++;
  readNamed(fields.splice(HOLD_ENDS, end - HOLD_ENDS), HOLD_NAMES, named);
  readNamed(fields.splice(FIELDS), SETTLEMENT_NAMES, named);
  return named;
}

function readNamed(fields: readonly string[], names: readonly string[], into: Named): void {
  for (const field of fields) {
    const [, name, value] = /^([a-z_]{1,20})=(.*)$/s.exec(field) ?? [];
    if (name === undefined) throw new Error(`usage event: neither a name nor a value: ${field}`);
    if (!names.includes(name)) throw NEWER_EVENT;
    if (name in into) throw new Error(`usage event: ${name} occurs twice`);
    if (name === 'budgets') into.budgets = storable(value, name).split(',').map(budgetPart);
    else if (name === 'cause') into.cause = word(value, name);
    else if (name === 'tag') into.tag = tag(value);
    else if (name === 'claim') into.claim = storable(value, name);
    else into[name as 'cap'] = integer(value, name);
  }
}

function word(text: string | undefined, name: string): string {
  if (text === undefined || !/^[a-z_]{1,40}$/.test(text))
    throw new Error(`usage event: ${name} is not a word: ${text}`);
  return text;
}

function tag(text: string | undefined): string {
  if (text === undefined || !isTag(text)) throw new Error(`usage event: not a tag: ${text}`);
  return text;
}

const NO_BUDGETS: readonly BudgetPart[] = [];

function budgetPart(text: string): BudgetPart {
  const [keyId = '', period, ...rest] = text.split('.');
  if (keyId === '' || rest.length > 0) throw new Error(`usage event: not a budget: ${text}`);
  return { keyId, period: integer(period, 'period') };
}

/** The budgets that a hold names, as ledger/scripts/includes/give-back.lua reads them. */
export function budgetsOfHold(hold: string): readonly BudgetPart[] {
  const at = hold.indexOf(BUDGETS);
  if (at < 0) return NO_BUDGETS;
  const parts = hold.slice(at + BUDGETS.length).matchAll(/([^.,]+)\.(\d+)/g);
  return Array.from(parts, ([, keyId, period]) => ({ keyId: keyId as string, period: Number(period) }));
}

const BUDGETS = '\tbudgets=';

/** The budgets as text, as holds, `calls` and `credits` have them: <key>.<period>, separated by commas. Null if there are none. */
export const budgetsText = (budgets: readonly BudgetPart[]): string | null =>
  budgets.length === 0 ? null : budgets.map(({ keyId, period }) => `${keyId}.${period}`).join(',');

/** Reads a text of `budgetsText`. */
export const budgetsOfText = (text: string | null): readonly BudgetPart[] =>
  text === null ? NO_BUDGETS : text.split(',').map(budgetPart);

/** What the buyer pays for the call, in micro-USD. The script has returned the rest of the hold (batch.lua, 'K'). */
export function chargedMicros({ outcome, freeTier, heldMicros, capturedMicros }: UsageEvent): number {
  if (outcome !== 'completed' || freeTier) return 0;
  return capturedMicros === null ? heldMicros : Math.min(capturedMicros, heldMicros);
}

/** What the record of a call priced by use says about its price. */
type Use = {
  /** The most that the service was told it may charge; also set for a free call, which costs nothing. */
  readonly authorizedMicros: number;
  /** Whether the service reported more than was held. Nothing is held for a free call, so nothing can be exceeded. */
  readonly isClamped: boolean;
  /**
   * Whether it was charged the highest price of its listing or operation, with or without a report. Otherwise a service that never
   * ends its responses could take the highest price from each caller that leaves, unnoticed.
   */
  readonly isAtCap: boolean;
};

/** @returns null for a call at a fixed price */
export function useOf(event: UsageEvent): Use | null {
  const { capMicros, ceilingMicros, capturedMicros, heldMicros, freeTier } = event;
  if (capMicros === null) return null;
  const authorizedMicros = freeTier ? (ceilingMicros ?? capMicros) : heldMicros;
  return {
    authorizedMicros,
    isClamped: !freeTier && capturedMicros !== null && capturedMicros > heldMicros,
    isAtCap: capMicros > 0 && chargedMicros(event) >= capMicros,
  };
}

/**
 * Begins the suffix of a recorded path that says which free message of an MCP server the call was. A request target cannot contain
 * `#` (the edge refuses it), so no path of another call does.
 */
export const MESSAGE_MARK = '#';

/**
 * Whether statistics count the call. They count charged calls and buyers' calls. They leave out calls that cost nothing and that no
 * buyer made to use the service: free messages to MCP servers, and providers' calls of their own listings.
 *
 * Tested by test/ledger/rollups/hours.test.ts. `COUNTED_SQL` says the same in SQL, for pages: test/accounts/usage-sums.test.ts.
 */
export function isCounted(
  { accountId, providerId, path }: Pick<UsageEvent, 'accountId' | 'providerId' | 'path'>,
  amountMicros: number,
): boolean {
  return amountMicros > 0 || (accountId !== providerId && !path.includes(MESSAGE_MARK));
}

/** `isCounted` as a condition on columns of `calls`. */
export const COUNTED_SQL = `(amount > 0 OR (account_id <> provider_id AND strpos(path, '${MESSAGE_MARK}') = 0))`;

/**
 * The platform's share of a charge, rounded down. The amount is split into multiples of 10 000 and a rest, because amount times
 * basis points could exceed 2^53.
 */
export function feeMicros(amountMicros: number, basisPoints: number): number {
  const whole = Math.floor(amountMicros / 10_000);
  return whole * basisPoints + Math.floor(((amountMicros % 10_000) * basisPoints) / 10_000);
}
