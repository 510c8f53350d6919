/** What a reply is: its text lies in `bytes[start, end)`. A missing bulk string is an empty one: no script here replies it. */
export type ReplyKind = 'text' | 'error';

export interface ReplySink {
  onReply(kind: ReplyKind, bytes: Buffer, start: number, end: number): void;
}

const CR = 0x0d;
const LF = 0x0a;
const DOLLAR = 0x24;
const PLUS = 0x2b;
const MINUS = 0x2d;
const COLON = 0x3a;
const ZERO = 0x30;
/** No reply here comes near it: whoever announces more does not speak this protocol. */
const MAX_BULK_BYTES = 1_048_576;
const MAX_LINE_BYTES = 65_536;

/** What came is no reply: where the next one would begin is unknown. */
export class ReplyFault extends Error {}

/**
 * Splits what a Redis connection sends into replies: RESP2 texts, numbers and errors, which is all that scripts here and the
 * commands that open a connection reply. The input may be split anywhere.
 */
export class ReplyReader {
  readonly #sink: ReplySink;
  /** The beginning of a reply whose end has not come. */
  #rest: Buffer | null = null;

  constructor(sink: ReplySink) {
    this.#sink = sink;
  }

  /** @throws ReplyFault on anything that is no such reply. What the sink throws passes through. */
  read(bytes: Buffer, length: number): void {
    if (this.#rest === null) {
      const used = this.#replies(bytes, length);
      if (used < length) this.#rest = Buffer.from(bytes.subarray(used, length));
      return;
    }
    const all = Buffer.concat([this.#rest, bytes.subarray(0, length)]);
    const used = this.#replies(all, all.length);
    this.#rest = used < all.length ? all.subarray(used) : null;
  }

  /** @returns where the first incomplete reply begins */
  #replies(bytes: Buffer, length: number): number {
    let at = 0;
    while (at < length) {
      const lineEnd = endOfLine(bytes, at + 1, length);
      if (lineEnd < 0) break;
      const next = lineEnd + 2;
      const type = bytes[at];
      if (type !== DOLLAR) {
        if (type !== PLUS && type !== COLON && type !== MINUS)
          throw new ReplyFault('redis sent a reply of an unknown type');
        this.#sink.onReply(type === MINUS ? 'error' : 'text', bytes, at + 1, lineEnd);
        at = next;
        continue;
      }
      const size = bytes[at + 1] === MINUS ? -2 : sizeOf(bytes, at + 1, lineEnd);
      // Its own line break follows the text.
      if (next + size + 2 > length) break;
      this.#sink.onReply('text', bytes, next, Math.max(next, next + size));
      at = next + size + 2;
    }
    return at;
  }
}

/** Position of the CR, or -1 when the line is not complete. */
function endOfLine(bytes: Buffer, from: number, length: number): number {
  let at = from;
  while (at < length && bytes[at] !== CR) at++;
  if (at - from > MAX_LINE_BYTES) throw new ReplyFault('redis sent a line without an end');
  if (at + 1 >= length) return -1;
  if (bytes[at + 1] !== LF) throw new ReplyFault('redis sent a carriage return without a line feed');
  return at;
}

function sizeOf(bytes: Buffer, start: number, end: number): number {
  let size = 0;
  for (let i = start; i < end; i++) {
    const digit = (bytes[i] as number) - ZERO;
    if (!(digit >= 0 && digit <= 9)) throw new ReplyFault('redis sent a length that is no number');
    size = size * 10 + digit;
    if (size > MAX_BULK_BYTES) throw new ReplyFault('redis sent a reply larger than any script here replies');
  }
  return size;
}
