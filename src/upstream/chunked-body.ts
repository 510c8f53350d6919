import { COLON, CR, FIELD_TEXT, LF, SEMICOLON, TOKEN } from './octets.ts';

/*
 * The states of a chunked body, RFC 9112 section 7.1. Each arrow is one octet, but `took` takes many octets of 'data' at once:
 *
 *   size ──;──► extension ─┐                              ┌────────────◄───────────┐
 *     └────────CR──────────┴─CR─► sizeLf ─n>0─► data ─► dataCr ─► dataLf ─► size  │
 *                                    └─0─► lineStart ─CR─► endLf ─► done          │
 *                                             └─► name ─► value ─► lineLf ────────┘ (to lineStart)
 */
type State =
  | 'size'
  | 'extension'
  | 'sizeLf'
  | 'data'
  | 'dataCr'
  | 'dataLf'
  | 'lineStart'
  | 'name'
  | 'value'
  | 'lineLf'
  | 'endLf'
  | 'done'
  | 'failed';

/** Hex digits of a chunk's size. 13 digits stay below 2^53; a longer size is malformed. */
const MAX_SIZE_DIGITS = 13;
/**
 * Maximum length of all chunk extensions of a body together; with more, the body is malformed. The gateway drops extensions, so
 * without a bound a service could send them for ever without the caller noticing.
 */
const MAX_EXTENSION_BYTES = 16_384;

/** The trailers of every response that has none, or whose trailers nobody wants. */
export const NO_TRAILERS: readonly string[] = [];

/**
 * Decodes one chunked body, however its octets are split between reads. Extensions are checked and dropped; trailers, too, unless
 * they are wanted.
 *
 * Tested by test/upstream/response-parser.test.ts and malformed-responses.test.ts.
 */
export class ChunkedBody {
  /** What is wrong with the octets; '' while they are a valid chunked body. */
  malformed = '';
  readonly #maxTrailerBytes: number;
  #state: State = 'size';
  /** Octets of chunk data still to come. */
  #left = 0;
  #digits = 0;
  #extensionBytes = 0;
  #trailerBytes = 0;
  #wantsTrailers = false;
  #trailers: string[] | null = null;
  /** The trailer line that is being read, if trailers are wanted. */
  #line = '';

  constructor(maxTrailerBytes: number) {
    this.#maxTrailerBytes = maxTrailerBytes;
  }

  reset(wantsTrailers: boolean): void {
    this.#wantsTrailers = wantsTrailers;
    this.#line = '';
    this.#trailers = null;
    this.malformed = '';
    this.#state = 'size';
    this.#left = 0;
    this.#digits = 0;
    this.#extensionBytes = 0;
    this.#trailerBytes = 0;
  }

  /** The trailers, once the body is done: flat [name, value, …], as in a head. Empty unless they are wanted. */
  get trailers(): readonly string[] {
    return this.#trailers ?? NO_TRAILERS;
  }

  get done(): boolean {
    return this.#state === 'done';
  }

  /**
   * How many octets of chunk data come next. The parser reads them from the input itself, and calls `took` with the number that it
   * read.
   */
  get dataLeft(): number {
    return this.#state === 'data' ? this.#left : 0;
  }

  took(count: number): void {
    this.#left -= count;
    if (this.#left === 0) this.#state = 'dataCr';
  }

  /** Reads framing octets up to the next data, the end of the body, a fault, or the end of the input. */
  readFraming(bytes: Buffer, start: number, end: number): number {
    let at = start;
    while (at < end && this.#state !== 'data' && this.#state !== 'done' && this.#state !== 'failed') {
      this.#step(bytes[at++] as number);
    }
    return at;
  }

  #step(octet: number): void {
    switch (this.#state) {
      case 'size':
        this.#size(octet);
        return;
      case 'extension':
        if (octet === CR) this.#state = 'sizeLf';
        else if (FIELD_TEXT[octet] === 0) this.#fail('invalid character in a chunk extension');
        else if (++this.#extensionBytes > MAX_EXTENSION_BYTES) this.#fail('chunk extensions too large');
        return;
      case 'sizeLf':
        if (octet !== LF) this.#fail('chunk size not followed by CRLF');
        else this.#state = this.#left > 0 ? 'data' : 'lineStart';
        return;
      case 'dataCr':
        if (octet === CR) this.#state = 'dataLf';
        else this.#fail('chunk data not followed by CRLF');
        return;
      case 'dataLf':
        if (octet !== LF) this.#fail('chunk data not followed by CRLF');
        this.#digits = 0;
        if (octet === LF) this.#state = 'size';
        return;
      default:
        this.#trailer(octet);
    }
  }

  #size(octet: number): void {
    const value = hexValue(octet);
    if (value >= 0) {
      if (++this.#digits > MAX_SIZE_DIGITS) this.#fail('chunk size too long');
      else this.#left = this.#left * 16 + value;
    } else if (this.#digits === 0) {
      this.#fail('chunk size missing');
    } else if (octet === CR) {
      this.#state = 'sizeLf';
    } else if (octet === SEMICOLON) {
      this.#state = 'extension';
    } else {
      this.#fail('invalid chunk size');
    }
  }

  #trailer(octet: number): void {
    if (++this.#trailerBytes > this.#maxTrailerBytes) {
      this.#fail('trailers too large');
      return;
    }
    switch (this.#state) {
      case 'lineStart':
        if (octet === CR) this.#state = 'endLf';
        else if (TOKEN[octet] === 1) this.#state = 'name';
        else this.#fail('invalid trailer name');
        if (this.#wantsTrailers) this.#line = String.fromCharCode(octet);
        return;
      case 'name':
        if (octet === COLON) this.#state = 'value';
        else if (TOKEN[octet] === 0) this.#fail('invalid trailer name');
        if (this.#wantsTrailers) this.#line += String.fromCharCode(octet);
        return;
      case 'value':
        if (octet === CR) this.#endLine();
        else if (FIELD_TEXT[octet] === 0) this.#fail('invalid character in a trailer');
        else if (this.#wantsTrailers) this.#line += String.fromCharCode(octet);
        return;
      case 'lineLf':
      case 'endLf':
        if (octet !== LF) this.#fail('trailer not followed by CRLF');
        else this.#state = this.#state === 'endLf' ? 'done' : 'lineStart';
    }
  }

  #endLine(): void {
    this.#state = 'lineLf';
    if (!this.#wantsTrailers) return;
    const colon = this.#line.indexOf(':');
    // Space and tab around a value are not part of it (RFC 9110 §5.5).
    const value = this.#line.slice(colon + 1).replace(/^[ \t]+|[ \t]+$/g, '');
    this.#trailers ??= [];
    this.#trailers.push(this.#line.slice(0, colon), value);
  }

  #fail(reason: string): void {
    this.#state = 'failed';
    this.malformed = reason;
  }
}

function hexValue(octet: number): number {
  if (octet >= 0x30 && octet <= 0x39) return octet - 0x30;
  const lower = octet | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}
