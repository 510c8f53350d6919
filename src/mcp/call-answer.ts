import { ERRORS } from '../errors.ts';
import { isDeeperThan } from '../platform/json-depth.ts';
import { microsToUsd } from '../platform/money.ts';
import { MAX_JSON_DEPTH } from './call-request.ts';
import type { CallAnswer, CallCost, Headers } from './in-process-caller.ts';
import { callError, chargedText, type ErrorFields, retryAfter, type ToolResult, toolResult } from './tool-result.ts';

/**
 * What `call_service` answers, made from how the call ended.
 *
 * Tested by test/mcp/call-answer.test.ts, and test/integration/mcp-tools.test.ts.
 *
 * @param cost  how the call was settled. Headers that were written before that tell less
 * @param isKeyed  whether it had an idempotency key
 */
export function callResult(answer: Exclude<CallAnswer, { kind: 'left' }>, cost: CallCost, isKeyed = false): ToolResult {
  switch (answer.kind) {
    case 'error': {
      const error = JSON.parse(answer.body) as ErrorFields;
      const fields = { ...error, ...retryAfter(answer.headers.get('retry-after')) };
      return callError(fields, costOf(answer.headers, cost), isKeyed);
    }
    case 'broken': {
      const error: ErrorFields = { error: 'upstream_error', ...ERRORS.upstream_error };
      return callError(
        error,
        cost.isRefunded ? { amount: 0, ...recordOf(answer.headers) } : costOf(answer.headers, cost),
        isKeyed,
      );
    }
    case 'response':
      return responseResult(answer, cost, isKeyed);
  }
}

function responseResult(
  { status, headers, body, cutBy }: Extract<CallAnswer, { kind: 'response' }>,
  settled: CallCost,
  isKeyed: boolean,
): ToolResult {
  const cost = costOf(headers, settled);
  const isReplayed = headers.get('idempotent-replayed') === 'true';
  const location = headers.get('location');
  const mediaType = headers.get('content-type');
  const session = headers.get('mcp-session-id');
  const value = {
    status,
    ...(mediaType === undefined ? {} : { media_type: mediaType }),
    ...(location === undefined ? {} : { location }),
    ...(session === undefined ? {} : { mcp_session_id: session }),
    ...readableBody(body, headers, cutBy !== null),
    truncated: cutBy !== null,
    ...cost,
    ...(isReplayed ? { replayed: true } : {}),
  };
  const ending = { cutBy, isRefunded: settled.isRefunded, isKeyed, isReplayed };
  const note = noteOnResponse(status, cost, ending);
  return toolResult(note === '' ? value : { ...value, note }, status >= 400);
}

type Cost = {
  readonly amount: number;
  /** The most that the service could charge for a call priced by use. */
  readonly authorized?: number;
  /** The amount is what is held: the cost of the call is not known yet. */
  readonly held?: true;
  readonly free_tier: boolean;
  /** Absent if no free call could cover the call. */
  readonly free_calls_left?: number;
  readonly balance?: number;
  readonly usage_id?: string;
};

/**
 * What the call cost, as the gateway's header lines say, or as it was settled if these say only what was held. A call that was not
 * admitted has no such lines, and cost nothing.
 */
function costOf(headers: Headers, { chargedMicros, authorizedMicros }: CallCost): Cost {
  const stated = Number(headers.get('x-acf-amount') ?? 0);
  const isHeld = headers.get('x-acf-held') === 'true';
  const amount = isHeld && chargedMicros !== null ? microsToUsd(chargedMicros) : stated;
  const [balance, freeLeft] = [headers.get('x-acf-balance'), headers.get('x-acf-free-left')];
  return {
    amount,
    ...(authorizedMicros === null ? {} : { authorized: microsToUsd(authorizedMicros) }),
    ...(isHeld && chargedMicros === null ? { held: true } : {}),
    free_tier: headers.get('x-acf-free-tier') === 'true',
    ...(freeLeft === undefined ? {} : { free_calls_left: Number(freeLeft) }),
    ...(balance === undefined ? {} : { balance: sumOf(Number(balance), stated, -amount) }),
    ...recordOf(headers),
  };
}

/** Amounts in USD, added in micro-USD: exact. */
const sumOf = (...usd: readonly number[]): number =>
  microsToUsd(usd.reduce((sum, amount) => sum + Math.round(amount * 1_000_000), 0));

/** The id of the call's record. Calls that were not admitted have no record. */
function recordOf(headers: Headers): { readonly usage_id?: string } {
  const id = headers.get('x-acf-usage-id');
  return id === undefined ? {} : { usage_id: id };
}

/** How a response ended, as far as the note to the agent depends on it. */
type Ending = {
  readonly cutBy: 'size' | 'time' | null;
  readonly isRefunded: boolean;
  readonly isKeyed: boolean;
  /** Whether it is the answer to an earlier call. */
  readonly isReplayed: boolean;
};

function costText({ amount, held }: Cost, isReplayed: boolean): string {
  if (isReplayed) return `Nothing more was charged: the first call cost $${amount}.`;
  return held ? `At most $${amount} is charged; get_usage tells what it was.` : chargedText(amount);
}

/** The fact first, then what to do: an agent must not repeat a call that it would pay for again. */
function noteOnResponse(status: number, cost: Cost, { cutBy, isRefunded, isKeyed, isReplayed }: Ending): string {
  const notes: string[] = [];
  const { amount } = cost;
  // A call that cost nothing may have taken a free call, and the next one may be charged.
  const unkeyed = amount === 0 ? 'may be charged' : 'is charged again';
  const again = isKeyed ? 'with another idempotency_key is charged' : unkeyed;
  if (cutBy === 'size') {
    notes.push(
      `The body was longer than a tool result may be; only its beginning is here. A repeat brings no more and ${again}:`,
    );
    notes.push('ask the service for less, or make the call over HTTP at its proxy_path.');
  }
  if (cutBy === 'time') {
    notes.push('The service was still sending when the time for a tool result was up; only the beginning is here.');
    notes.push(`A repeat ${again}. Make the call over HTTP at its proxy_path to read it to the end.`);
  }
  if (status >= 500) {
    notes.push('The service failed.');
    notes.push('It may have acted on the request all the same: repeat the call only if doing it twice is harmless.');
  } else if (status >= 300 && isRefunded) {
    notes.push('The service, or what its provider has set up for it, is at fault, not your request.');
    notes.push('Use another service, or try again later.');
  } else if (status >= 400) {
    notes.push(`The service refused the request as it is. Change it before you call again: a repeat ${again}.`);
  } else if (status >= 300 && status !== 304) notes.push('Redirects are not followed.');
  if (notes.length === 0) return '';
  return [costText(cost, isReplayed), ...notes].join(' ');
}

/** `body` is JSON or text; `body_base64` is everything else. A response without a body has neither. */
function readableBody(
  body: Buffer,
  headers: Headers,
  isCut: boolean,
): { readonly body: unknown } | { readonly body_base64: string } | Record<string, never> {
  if (body.length === 0) return {};
  const text = headers.has('content-encoding') ? null : textOf(body, headers.get('content-type'), isCut);
  if (text === null) return { body_base64: body.toString('base64') };
  const isJson = /^[^;]*[/+]json\s*(?:;|$)/i.test(headers.get('content-type') ?? '');
  return { body: isJson && !isCut ? parsed(text) : text };
}

/** The body as text, or null if it is not text in a known charset. If the body was cut, an incomplete last character is dropped. */
function textOf(body: Buffer, mediaType: string | undefined, isCut: boolean): string | null {
  const charset = /;\s*charset="?([^\s";]+)/i.exec(mediaType ?? '')?.[1] ?? 'utf-8';
  try {
    const text = new TextDecoder(charset, { fatal: true }).decode(body, { stream: isCut });
    // NUL is valid UTF-8, but texts do not contain it, while most binary formats begin with it.
    return text.includes('\0') ? null : text;
  } catch {
    // The charset is unknown, or the bytes are not valid in it.
    return null;
  }
}

/**
 * Text that is not valid JSON is passed on as text, although the service calls it JSON. So is JSON that is nested too deeply, or
 * that parsing would change.
 */
function parsed(text: string): unknown {
  try {
    const value = JSON.parse(text) as unknown;
    return isDeeperThan(MAX_JSON_DEPTH, value) || hasLongInteger(text) ? text : value;
  } catch {
    return text;
  }
}

/**
 * Whether a JSON text has an integer that JSON.parse rounds. Services have ids of 19 digits, and an agent that calls with a rounded one
 * pays for the wrong thing.
 */
function hasLongInteger(text: string): boolean {
  if (!/\d{16}/.test(text)) return false;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g)) {
    if (/^-?\d{16,}$/.test(token) && !Number.isSafeInteger(Number(token))) return true;
  }
  return false;
}
