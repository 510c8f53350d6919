import { ApiError } from '../../errors.ts';

/**
 * Maximum depth of a message. JSON.stringify is recursive, and so are the parsers of many services. Some fail at 100 levels (Ruby)
 * or 64 (.NET), and those without a bound overflow their stack.
 */
const MAX_DEPTH = 100;
/**
 * Maximum commas and opening brackets of a message outside its strings, and maximum colons: about as many values and members as it
 * has. A megabyte of text takes 5 ms to judge, but a megabyte of short members or empty lists 100 ms, which no caller pays for.
 * Within these bounds no message was found to take more than 18 ms.
 */
const MAX_VALUES = 100_000;
const MAX_COLONS = 10_000;
/** Numbers of at most this length, without an exponent, have at most 15 digits, and a double represents each of them exactly. */
const MAX_EXACT_LENGTH = 15;
/** Programs print a double in full with at most 17 digits. */
const MAX_DOUBLE_DIGITS = 17;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const MINUS = 0x2d;
const PLUS = 0x2b;
const DOT = 0x2e;
const ZERO = 0x30;
const LETTER_E = 0x65;
const COMMA = 0x2c;
const COLON = 0x3a;

/** A byte order mark is kept, and JSON.parse refuses it, because parsers treat it differently. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Reads JSON that is to be written again: `JSON.stringify` of the result means the same to every reader as the text means to this
 * one. Values that would not come through unchanged are refused. (If an object has a name twice, the last one counts, and only that
 * one is written.)
 *
 * Tested by test/proxy/mcp/json-text.test.ts.
 */
export function parseJson(bytes: Uint8Array): unknown {
  const text = decode(bytes);
  refuseLosses(text);
  try {
    return JSON.parse(text);
  } catch {
    throw new ApiError('invalid_json');
  }
}

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new ApiError('invalid_json', 'The body is not valid UTF-8.');
  }
}

/**
 * Checks everything outside strings. The text may not be JSON at all: then the tokens seen here mean nothing, and JSON.parse
 * refuses it later.
 */
function refuseLosses(text: string): void {
  let depth = 0;
  let values = 0;
  let colons = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at);
    else if (code === OPEN_ARRAY || code === OPEN_OBJECT) {
      values++;
      if (++depth > MAX_DEPTH) throw tooMuch(`is nested deeper than ${MAX_DEPTH} levels`);
    } else if (code === CLOSE_ARRAY || code === CLOSE_OBJECT) depth--;
    else if (code === MINUS || isDigit(code)) at = endOfNumber(text, at);
    else if (code === COMMA) values++;
    else if (code === COLON) colons++;
  }
  if (values > MAX_VALUES) throw tooMuch(`has more than ${MAX_VALUES} values`);
  if (colons > MAX_COLONS) throw tooMuch(`has more than ${MAX_COLONS} members of objects`);
}

const tooMuch = (what: string): ApiError => new ApiError('invalid_request', `The body ${what}.`);

const isDigit = (code: number): boolean => code >= ZERO && code <= 0x39;

/** @returns the index of the closing quote */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  for (; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === BACKSLASH) at++;
    else if (code === QUOTE) break;
  }
  return at;
}

/**
 * Refuses a number that would not come through. An integer does if it is written with the same digits, since a service may read it
 * exactly. A decimal does if it remains the same double.
 *
 * @returns the index of the number's last character
 */
function endOfNumber(text: string, start: number): number {
  let end = start;
  let isInteger = true;
  let hasExponent = false;
  /** Significant digits, excluding the exponent. */
  let digits = 0;
  for (; end < text.length; end++) {
    const code = text.charCodeAt(end);
    if (isDigit(code)) {
      if (!hasExponent && (digits > 0 || code !== ZERO)) digits++;
    } else if (code === DOT) isInteger = false;
    else if ((code | 0x20) === LETTER_E) hasExponent = true;
    else if (code !== MINUS && code !== PLUS) break;
  }
  if (!hasExponent && end - start <= MAX_EXACT_LENGTH) return end - 1;
  const number = text.slice(start, end);
  const value = Number(number);
  const survives =
    isInteger && !hasExponent
      ? String(value) === number
      : // 1e400 would become null, and 1e-400 would become 0.
        digits <= MAX_DOUBLE_DIGITS && Number.isFinite(value) && (value !== 0 || digits === 0);
  if (survives) return end - 1;
  const message =
    'The body has a number that a 64-bit floating point number cannot hold. Send it as a string, if the tool takes one.';
  throw new ApiError('invalid_request', message);
}
