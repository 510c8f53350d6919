import { assert } from '../assert.ts';
import { ChunkedBody, NO_TRAILERS } from './chunked-body.ts';
import { LF } from './octets.ts';
import { HeadSoFar, Malformed, type ParsedHead, parseHead, STATUS_LINE_BYTES } from './response-head.ts';

export interface ResponseSink {
  /** An interim (1xx) response. 100 is dropped, and 101 is malformed: the gateway asks for neither. */
  onParsedInterim?(head: ParsedHead): void;
  /** The head of the final response. */
  onParsedHead(head: ParsedHead): void;
  /** A piece of the body, as a view on the input: valid only until this returns. */
  onParsedBody(chunk: Buffer): void;
}

/**
 * 'head', and 'length', 'chunked' or 'close' (the framing of the body) say what is being read. 'idle' lasts until the first
 * `begin`, 'done' until the next, and 'failed' for ever.
 */
type ParserState = 'idle' | 'head' | 'length' | 'chunked' | 'close' | 'done' | 'failed';

/** Interim (1xx) responses before a final one; one more is malformed. RFC 9110 sets no bound, and no server needs ten. */
const MAX_INTERIM_RESPONSES = 10;
/**
 * The first look at a head decodes at most this much of the input, which is enough for a typical head. Decoding a whole read
 * would cost 5 µs.
 */
const FIRST_LOOK_BYTES = 1536;

/**
 * Reads the responses of one connection, one after the other, however the input is split. It knows no socket and no clock.
 *
 * It is strict: what RFC 9112 does not allow is a fault. If two parsers disagree about where a message ends, an attacker can use
 * the difference to smuggle in a response.
 */
export class ResponseParser {
  state: ParserState = 'idle';
  /** When `state` is 'failed': why. */
  malformed = '';
  /** When `state` is 'done': the trailers of the response, if they are wanted; as `ResponseHead.headers`. */
  trailers: readonly string[] = NO_TRAILERS;
  /** While this is set, `execute` returns at the next boundary, and leaves the rest of its input unread. */
  paused = false;
  readonly #sink: ResponseSink;
  readonly #maxHeadBytes: number;
  readonly #chunked: ChunkedBody;
  #isHeadRequest = false;
  #wantsTrailers = false;
  /** In state 'length': octets of the body still to come. */
  #left = 0;
  #interimResponses = 0;
  /** Octets of the interim (1xx) heads so far. Together with the final head they must stay within `maxHeadBytes`. */
  #interimBytes = 0;
  /** The pieces so far of a head that comes in several reads. */
  #partial: Buffer | null = null;
  #partialLength = 0;
  #soFar: HeadSoFar | null = null;

  constructor(sink: ResponseSink, maxHeadBytes: number) {
    this.#sink = sink;
    this.#maxHeadBytes = maxHeadBytes;
    this.#chunked = new ChunkedBody(maxHeadBytes);
  }

  /** Called when a request is sent: expects its response. */
  begin(isHeadRequest: boolean, wantsTrailers = false): void {
    assert(this.state === 'idle' || this.state === 'done');
    this.state = 'head';
    this.paused = false;
    this.#isHeadRequest = isHeadRequest;
    this.#wantsTrailers = wantsTrailers;
    this.trailers = NO_TRAILERS;
    this.#interimResponses = 0;
    this.#interimBytes = 0;
  }

  /**
   * Reads `bytes[start, end)`, and may rearrange these octets.
   * @returns the position after the last octet used. If it is less than `end`, the parser was paused, failed, or is done and
   * octets are left over.
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

  /** The input has ended. That completes a close-delimited body; any other response that is not complete yet was cut. */
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
   * Joins all chunks in this input into one piece: it moves the data of each chunk up to the end of the data before it, over
   * the framing between them. The stream of a language model often has several chunks in a read. An upstream that sends chunks
   * of one octet would otherwise cost a callback for every six octets.
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
    if (chunked.done) {
      this.state = 'done';
      this.trailers = chunked.trailers;
    }
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
    // Once the status was read, only a complete line is worth another look. Looking again at each octet of a slowly sent head
    // would take quadratic time.
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
    // The head was not complete before this input, so its end lies in this input, at `at - before + head.length`.
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
      if (head.status === 101) return this.#fail('switches protocols without being asked', next);
      if (++this.#interimResponses > MAX_INTERIM_RESPONSES) return this.#fail('too many interim responses', next);
      this.#interimBytes += head.length;
      if (head.status > 101) this.#sink.onParsedInterim?.(head);
      return next;
    }
    if (head.framing === 'none') this.state = 'done';
    else this.state = head.framing;
    if (head.framing === 'length') this.#left = head.contentLength;
    else if (head.framing === 'chunked') this.#chunked.reset(this.#wantsTrailers);
    this.#sink.onParsedHead(head);
    return next;
  }

  #fail(reason: string, at: number): number {
    this.state = 'failed';
    this.malformed = reason;
    return at;
  }
}
