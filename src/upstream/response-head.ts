import { COLON, CR, FIELD_TEXT, LF, SPACE, TAB, TOKEN } from './octets.ts';
import type { ResponseHead } from './types.ts';

export type Framing = 'none' | 'length' | 'chunked' | 'close';

/** A response head with what the connection needs to know of it. */
export interface ParsedHead extends ResponseHead {
  readonly framing: Framing;
  readonly keepAlive: boolean;
  /** `Keep-Alive: timeout=N`, or -1. */
  readonly keepAliveSeconds: number;
  /** Bytes of the head on the wire, the empty line included. */
  readonly length: number;
}

export class Malformed {
  readonly reason: string;
  constructor(reason: string) {
    this.reason = reason;
  }
}

/**
 * Reads one response head from `bytes[start, end)`.
 *
 * One pass over the octets by table look-up, slicing names and values out of one latin1 string. Measured on an 8-header
 * head of 300 bytes: 0.63 µs; one regular expression for validity and then indexOf: 0.71; the same pass over the string's
 * char codes: 0.86; searching the octets for the empty line first: 0.74.
 *
 * @returns null when the head is not complete yet.
 */
export function parseHead(
  bytes: Buffer,
  start: number,
  end: number,
  isHeadRequest: boolean,
): ParsedHead | Malformed | null {
  const text = bytes.toString('latin1', start, end);
  const status = readStatus(text);
  if (typeof status !== 'number') return status;
  const headers: string[] = [];
  let at = endOfStatusLine(bytes, start, end);
  if (at < 0) return at === NOT_YET ? null : new Malformed('control character in the reason phrase');
  for (;;) {
    if (at + 1 >= end) return at < end && bytes[at] !== CR && TOKEN[bytes[at] as number] === 0 ? BAD_NAME : null;
    if (bytes[at] === CR) {
      if (bytes[at + 1] !== LF) return BARE_CR;
      return interpret(status, headers, at + 2 - start, isHeadRequest);
    }
    const nameStart = at;
    while (TOKEN[bytes[at] as number] === 1 && at < end) at++;
    if (at >= end) return null;
    // A space here is obsolete folding at the line's start, or the space before the colon that RFC 9112 5.1 forbids.
    if (bytes[at] !== COLON || at === nameStart) return BAD_NAME;
    const nameEnd = at++;
    while (at < end && (bytes[at] === SPACE || bytes[at] === TAB)) at++;
    const valueStart = at;
    while (at < end && FIELD_TEXT[bytes[at] as number] === 1) at++;
    if (at + 1 >= end) return at < end && bytes[at] !== CR ? BAD_VALUE : null;
    if (bytes[at] !== CR || bytes[at + 1] !== LF) return BAD_VALUE;
    let valueEnd = at;
    while (valueEnd > valueStart && (bytes[valueEnd - 1] === SPACE || bytes[valueEnd - 1] === TAB)) valueEnd--;
    headers.push(text.slice(nameStart - start, nameEnd - start), text.slice(valueStart - start, valueEnd - start));
    at += 2;
  }
}

const BAD_NAME = new Malformed('invalid header name');
const BAD_VALUE = new Malformed('invalid character in a header value');
const BARE_CR = new Malformed('CR without LF');

/** The version is the tenth's digit: 'HTTP/1.0' gives a negative status, so that one number says both. */
function readStatus(text: string): number | Malformed | null {
  if (text.length < 13) {
    return 'HTTP/1.1 '.startsWith(text.slice(0, 9)) || 'HTTP/1.0 '.startsWith(text.slice(0, 9))
      ? null
      : new Malformed('not an HTTP/1.1 response');
  }
  const isVersion11 = text.startsWith('HTTP/1.1 ');
  if (!isVersion11 && !text.startsWith('HTTP/1.0 ')) return new Malformed('not an HTTP/1.1 response');
  const status = digit(text, 9) * 100 + digit(text, 10) * 10 + digit(text, 11);
  if (!(status >= 100 && status <= 599)) return new Malformed('status out of range');
  // 'HTTP/1.1 200' CRLF lacks the space of RFC 9112 section 4, is common, and cannot be misread.
  const after = text.charCodeAt(12);
  if (after !== SPACE && after !== CR) return new Malformed('invalid status line');
  return isVersion11 ? status : -status;
}

function digit(text: string, at: number): number {
  const value = text.charCodeAt(at) - 0x30;
  return value >= 0 && value <= 9 ? value : Number.NaN;
}

const NOT_YET = -1;
const INVALID = -2;

function endOfStatusLine(bytes: Buffer, start: number, end: number): number {
  let at = start + 12;
  while (at < end && FIELD_TEXT[bytes[at] as number] === 1) at++;
  if (at >= end) return NOT_YET;
  if (bytes[at] !== CR) return INVALID;
  if (at + 1 >= end) return NOT_YET;
  return bytes[at + 1] === LF ? at + 2 : INVALID;
}

/** What the headers say about the message's end and the connection's future (RFC 9112, sections 6.3 and 9.3). */
function interpret(
  signedStatus: number,
  headers: string[],
  length: number,
  isHeadRequest: boolean,
): ParsedHead | Malformed {
  const isVersion10 = signedStatus < 0;
  const status = isVersion10 ? -signedStatus : signedStatus;
  let contentLength = -1;
  let chunked = false;
  let close = false;
  let persist = false;
  let keepAliveSeconds = -1;
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string;
    // The lengths of the only four names that matter here; lower-casing every name cost 0.3 µs a head.
    if (name.length !== 10 && name.length !== 14 && name.length !== 17) continue;
    const value = headers[i + 1] as string;
    switch (name.toLowerCase()) {
      case 'content-length':
        // Two of them, equal or not, or a list: somebody before us may have believed the other one.
        if (contentLength >= 0) return new Malformed('repeated Content-Length');
        if (!/^[0-9]{1,15}$/.test(value)) return new Malformed('invalid Content-Length');
        contentLength = Number(value);
        break;
      case 'transfer-encoding':
        if (chunked) return new Malformed('repeated Transfer-Encoding');
        if (value.toLowerCase() !== 'chunked') return new Malformed('Transfer-Encoding other than chunked');
        chunked = true;
        break;
      case 'connection':
        close ||= hasToken(value, 'close');
        persist ||= hasToken(value, 'keep-alive');
        break;
      case 'keep-alive': {
        const timeout = /(?:^|[ ,])timeout=([0-9]{1,7})(?:[ ,]|$)/i.exec(value);
        if (timeout !== null) keepAliveSeconds = Number(timeout[1]);
        break;
      }
    }
  }
  if (chunked && contentLength >= 0) return new Malformed('Content-Length together with Transfer-Encoding');
  if (chunked && isVersion10) return new Malformed('Transfer-Encoding in HTTP/1.0');
  const framing = framingOf(status, isHeadRequest, chunked, contentLength);
  const hasBody = framing !== 'none';
  const keepAlive = framing !== 'close' && !close && (!isVersion10 || persist);
  return { status, headers, contentLength, hasBody, framing, keepAlive, keepAliveSeconds, length };
}

function framingOf(status: number, isHeadRequest: boolean, chunked: boolean, contentLength: number): Framing {
  if (isHeadRequest || status < 200 || status === 204 || status === 304 || contentLength === 0) return 'none';
  if (chunked) return 'chunked';
  return contentLength > 0 ? 'length' : 'close';
}

function hasToken(list: string, token: string): boolean {
  const lower = list.toLowerCase();
  if (lower === token) return true;
  return lower.includes(',') && lower.split(',').some((item) => item.trim() === token);
}
