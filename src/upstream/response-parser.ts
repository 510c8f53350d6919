import { assert } from '../assert.ts';
import { ChunkedBody } from './chunked-body.ts';
import { LF } from './octets.ts';
import { HeadSoFar, Malformed, type ParsedHead, parseHead, STATUS_LINE_BYTES } from './response-head.ts';

export interface ResponseSink {
  /** The final head; interim responses are swallowed. */
  onParsedHead(head: ParsedHead): void;
  /** A view on the input. */
  onParsedBody(chunk: Buffer): void;
}

/** 'idle' before the first `begin`; 'done' and 'failed' until the next. */
export type ParserState = 'idle' | 'head' | 'length' | 'chunked' | 'close' | 'done' | 'failed';

/** RFC 9110 sets no bound; ten is more than any server needs. */
const MAX_INTERIM_RESPONSES = 10;
/** Typical heads fit; longer ones pay a second look. Decoding a whole 64 KiB read would cost 5 µs. */
const FIRST_LOOK_BYTES = 1536;

/**
 * Reads the responses of one connection, one after the other, from input split anywhere. No sockets, no clock. Strict: what
 * RFC 9112 does not allow is a fault, because whoever disagrees about where a message ends can be made to lie about it.
 */
export class ResponseParser {
  state: ParserState = 'idle';
  /** Why `state` is 'failed'. */
  malformed = '';
  /** While set, `execute` returns at the next boundary, leaving the rest of its input unread. */
  paused = false;
  readonly #sink: ResponseSink;
  readonly #maxHeadBytes: number;
  readonly #chunked: ChunkedBody;
  #isHeadRequest = false;
  /** Octets of the body still to come, when 'length'. */
  #left = 0;
  #interimResponses = 0;
  /** Octets of completed interim heads: they count towards the bound. */
  #interimBytes = 0;
  /** An incomplete head, when it came in pieces. */
  #partial: Buffer | null = null;
  #partialLength = 0;
  #soFar: HeadSoFar | null = null;

  constructor(sink: ResponseSink, maxHeadBytes: number) {
    this.#sink = sink;
    this.#maxHeadBytes = maxHeadBytes;
    this.#chunked = new ChunkedBody(maxHeadBytes);
  }

  /** Expects the response to a new request. */
  begin(isHeadRequest: boolean): void {
    assert(this.state === 'idle' || this.state === 'done');
    this.state = 'head';
    this.paused = false;
    this.#isHeadRequest = isHeadRequest;
    this.#interimResponses = 0;
    this.#interimBytes = 0;
  }

  /**
   * Reads `bytes[start, end)`, and may rearrange it.
   * @returns the position behind the last octet used. Less than `end`: paused, failed, or done with octets to spare.
   */
  execute(bytes: Buffer, start: number, end: number): number {
    let at = start;
    while (at < end && !this.paused) {
      switch (this.state) {
        case 'head':
          at = this.#readHead(bytes, at, end);
          break;
        case 'length':
          at = this.#readLength(bytes, at, end);
          break;
        case 'chunked':
          at = this.#readChunked(bytes, at, end);
          break;
        case 'close':
          this.#sink.onParsedBody(bytes.subarray(at, end));
          at = end;
          break;
        default:
          return at;
      }
    }
    return at;
  }

  /** The input has ended. A close-delimited body is complete by that; anything else was cut. */
  finish(): void {
    if (this.state === 'close') this.state = 'done';
  }

  #readLength(bytes: Buffer, at: number, end: number): number {
    const stop = Math.min(end, at + this.#left);
    this.#left -= stop - at;
    if (this.#left === 0) this.state = 'done';
    this.#sink.onParsedBody(bytes.subarray(at, stop));
    return stop;
  }

  /**
   * All the chunks in this input become one: the later ones are moved up to the first, over their framing. A token stream
   * often has several in a read, and an upstream of one-octet chunks would otherwise cost a callback for every six octets.
   */
  #readChunked(bytes: Buffer, start: number, end: number): number {
    const chunked = this.#chunked;
    let dataStart = 0;
    let dataEnd = 0;
    let at = start;
    do {
      at = chunked.readFraming(bytes, at, end);
      const length = Math.min(end - at, chunked.dataLeft);
      if (length === 0) break;
      if (dataEnd === 0) dataStart = dataEnd = at;
      else bytes.copyWithin(dataEnd, at, at + length);
      chunked.took(length);
      dataEnd += length;
      at += length;
    } while (at < end);
    if (chunked.done) this.state = 'done';
    if (dataEnd > dataStart) this.#sink.onParsedBody(bytes.subarray(dataStart, dataEnd));
    return chunked.malformed === '' ? at : this.#fail(chunked.malformed, at);
  }

  #readHead(bytes: Buffer, at: number, end: number): number {
    if (this.#partialLength > 0) return this.#readSplitHead(bytes, at, end);
    const limit = Math.min(end, at + this.#maxHeadBytes - this.#interimBytes);
    let head = parseHead(bytes, at, Math.min(limit, at + FIRST_LOOK_BYTES), this.#isHeadRequest, null);
    if (head instanceof HeadSoFar && limit > at + FIRST_LOOK_BYTES) {
      head = parseHead(bytes, at, limit, this.#isHeadRequest, head);
    }
    if (!(head instanceof HeadSoFar)) return this.#tookHead(head, at);
    if (limit < end) return this.#fail('head too large', limit);
    this.#keepPartial(bytes, at, end);
    this.#soFar = head;
    return end;
  }

  #readSplitHead(bytes: Buffer, at: number, end: number): number {
    const before = this.#partialLength;
    const limit = Math.min(end, at + this.#maxHeadBytes - this.#interimBytes - before);
    this.#keepPartial(bytes, at, limit);
    // Lines are read when they are complete: looking at every octet that drips in would be quadratic.
    const isWorthALook = before < STATUS_LINE_BYTES || bytes.subarray(at, limit).includes(LF);
    const head = isWorthALook
      ? parseHead(this.#partial as Buffer, 0, this.#partialLength, this.#isHeadRequest, this.#soFar)
      : this.#soFar;
    if (head === null || head instanceof HeadSoFar) {
      this.#soFar = head;
      return limit < end ? this.#fail('head too large', limit) : end;
    }
    this.#partial = null;
    this.#partialLength = 0;
    this.#soFar = null;
    if (head instanceof Malformed) return this.#fail(head.reason, at);
    // The kept part alone was incomplete, so the head ends within this input.
    return this.#tookHead(head, at - before);
  }

  #keepPartial(bytes: Buffer, start: number, end: number): void {
    const length = this.#partialLength + end - start;
    if (this.#partial === null || this.#partial.length < length) {
      const grown = Buffer.allocUnsafe(Math.min(this.#maxHeadBytes, Math.max(1024, length * 2)));
      this.#partial?.copy(grown, 0, 0, this.#partialLength);
      this.#partial = grown;
    }
    bytes.copy(this.#partial, this.#partialLength, start, end);
    this.#partialLength = length;
  }

  #tookHead(head: ParsedHead | Malformed, at: number): number {
    if (head instanceof Malformed) return this.#fail(head.reason, at);
    const next = at + head.length;
    if (head.status < 200) {
      if (head.status === 101) return this.#fail('switches protocols unasked', next);
      if (++this.#interimResponses > MAX_INTERIM_RESPONSES) return this.#fail('too many interim responses', next);
      this.#interimBytes += head.length;
      return next;
    }
    if (head.framing === 'none') this.state = 'done';
    else this.state = head.framing;
    if (head.framing === 'length') this.#left = head.contentLength;
    else if (head.framing === 'chunked') this.#chunked.reset();
    this.#sink.onParsedHead(head);
    return next;
  }

  #fail(reason: string, at: number): number {
    this.state = 'failed';
    this.malformed = reason;
    return at;
  }
}
