/**
 * A reply is a text (numbers included) or an error. A null bulk string counts as an empty text; none of our scripts replies with
 * one.
 */
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
/**
 * Maximum sizes of a bulk string and of a line. Our replies are far smaller; beyond these bounds the peer does not speak RESP.
 */
const MAX_BULK_BYTES = 1_048_576;
const MAX_LINE_BYTES = 65_536;

/** The received bytes are not a Redis reply. It is unknown where the next reply begins, so the connection must be dropped. */
export class ReplyFault extends Error {}

/**
 * Splits the bytes of a Redis connection into replies: RESP2 texts, numbers and errors. Our scripts, and the commands that open a
 * connection, have no other replies. A reply may arrive in pieces of any size.
 */
export class ReplyReader {
  readonly #sink: ReplySink;
  /** The first bytes of a reply whose end has not arrived. */
  #rest: Buffer | null = null;

  constructor(sink: ReplySink) {
    this.#sink = sink;
  }

  /** @throws ReplyFault on bytes that are not such a reply. Errors that the sink throws are passed on. */
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
      // The 2 bytes are the line break after the text.
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
  if (at - from > MAX_LINE_BYTES) throw new ReplyFault('redis sent a line that does not end');
  if (at + 1 >= length) return -1;
  if (bytes[at + 1] !== LF) throw new ReplyFault('redis sent a carriage return without a line feed');
  return at;
}

function sizeOf(bytes: Buffer, start: number, end: number): number {
  let size = 0;
  for (let i = start; i < end; i++) {
    const digit = (bytes[i] as number) - ZERO;
    if (!(digit >= 0 && digit <= 9)) throw new ReplyFault('redis sent a length that is not a number');
    size = size * 10 + digit;
    if (size > MAX_BULK_BYTES) throw new ReplyFault('redis sent a reply larger than any of our scripts returns');
  }
  return size;
}
