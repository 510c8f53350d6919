const LF = 0x0a;
const CR = 0x0d;
const COLON = 0x3a;

/**
 * Where the bytes so far have ended:
 *
 *   between events  at the start of a line, and no line of an event has come since the last empty line
 *   in a comment    the same, but within a line that begins with a colon
 *   in a line       within a line of an event
 *   after a line    at the start of a line, and the event is not complete
 */
type Position = 'between events' | 'in a comment' | 'in a line' | 'after a line';

/**
 * Reads a `text/event-stream` (HTML Standard, section 9.2.5) just enough to know whether the bytes so far end between two events.
 * Lines end with LF, CR or CRLF; an empty line ends an event.
 *
 * Tested by test/proxy/event-boundary.test.ts.
 */
export class EventBoundary {
  #position: Position = 'between events';
  /** The last byte was a CR. If an LF follows, both are one line end. */
  #isAfterCr = false;
  /** A line has ended with CR alone: this stream does not use CRLF. */
  #hasBareCr = false;

  /**
   * False after the CR of a stream that may use CRLF, because an LF may follow: text inserted before it would be followed by an
   * empty line that nobody sent.
   */
  get isBetweenEvents(): boolean {
    return this.#position === 'between events' && (!this.#isAfterCr || this.#hasBareCr);
  }

  /** The next bytes of the stream, without a byte order mark. Most chunks are whole events, and cost two comparisons. */
  pass(bytes: Uint8Array): void {
    const { length } = bytes;
    if (length >= 2 && bytes[length - 1] === LF && bytes[length - 2] === LF) {
      this.#position = 'between events';
      this.#isAfterCr = false;
      return;
    }
    for (let at = 0; at < length; at++) this.#step(bytes[at] as number);
  }

  #step(byte: number): void {
    const isAfterCr = this.#isAfterCr;
    this.#isAfterCr = byte === CR;
    if (isAfterCr && byte === LF) return;
    if (isAfterCr) this.#hasBareCr = true;
    if (byte === LF || byte === CR) this.#position = this.#position === 'in a line' ? 'after a line' : 'between events';
    else if (this.#position === 'after a line') this.#position = 'in a line';
    else if (this.#position === 'between events') this.#position = byte === COLON ? 'in a comment' : 'in a line';
  }
}
