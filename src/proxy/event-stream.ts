import type { ResponseHead } from '../upstream/index.ts';
import { EventBoundary } from './event-boundary.ts';

/** How often all open event streams are checked. One timer serves them all, and runs only while there are any. */
const TICK_MS = 1_000;
/**
 * After this many ticks without a byte, the caller gets a comment. Proxies, load balancers and clients commonly drop a silent
 * connection after 60 s, some after 30: the comment reaches them before that, even if one is late.
 */
const QUIET_TICKS = 15;
/**
 * A comment, which every reader of event streams skips. No empty line follows it: if the stream uses ids, the Python SDKs of OpenAI
 * and Anthropic take an empty line for an empty event.
 */
const COMMENT = Buffer.from(': \n');
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);
const NOTHING = Buffer.alloc(0);

/**
 * Whether a response is an event stream into which comments may be written. A content coding rules this out, and so does a declared
 * length. Most responses declare a length, so their headers need not be checked.
 */
export function isEventStream({ status, headers, contentLength, hasBody }: ResponseHead): boolean {
  if (contentLength >= 0 || !hasBody || status >= 300) return false;
  let types = 0;
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string;
    if (name.length === 12 && name.toLowerCase() === 'content-type') {
      if (++types > 1 || !/^text\/event-stream[\t ]*(?:;|$)/i.test(headers[i + 1] as string)) return false;
    } else if (name.length === 16 && name.toLowerCase() === 'content-encoding') {
      if (!/^(?:identity)?$/i.test(headers[i + 1] as string)) return false;
    }
  }
  return types === 1;
}

/** The call to which the event stream belongs. */
export interface StreamingCall {
  /** The caller's socket is full. Nothing may be sent until the caller has read. */
  readonly isStalled: boolean;
  /** Sends bytes of the response body. The head is sent before the first ones. */
  send(bytes: Uint8Array): void;
}

/**
 * One event stream on its way to the caller.
 *
 * **The head at once.** uWebSockets.js sends a head only with the first bytes of a body. So when the service's head has come
 * without an event, a comment takes the head to the caller. (The current release has `beginWrite()` for this, but it sends one CRLF
 * too many before the first chunk, and Node's fetch rejects that response.)
 *
 * **Silence.** While the service is silent, the caller gets a comment every 15 s, but only between two events, and only while the
 * caller reads. The upstream client, which sees only the service's bytes, decides how long the service may be silent.
 *
 * Tested by test/proxy/event-stream.test.ts and test/integration/event-streams.test.ts.
 */
export class EventStream {
  readonly #call: StreamingCall;
  readonly #streams: EventStreams;
  readonly #boundary = new EventBoundary();
  #quietTicks = 0;
  /** A comment has been sent before the first byte of the service. */
  #beganWithComment = false;
  /** Whether it is known if the service's stream begins with a byte order mark. */
  #isMarkRead = false;
  /** How many of the bytes so far may be the beginning of a byte order mark. */
  #markBytes = 0;
  #isOver = false;

  constructor(call: StreamingCall, streams: EventStreams) {
    this.#call = call;
    this.#streams = streams;
    streams.add(this);
    // Later in this turn, so that if the first event comes with the head, the caller gets only what the service sent.
    setImmediate(() => {
      if (!this.#isOver && !this.#isMarkRead && this.#markBytes === 0) this.#comment();
    });
  }

  /** Takes bytes from the service. @returns the bytes to send to the caller */
  pass(chunk: Buffer): Buffer {
    this.#quietTicks = 0;
    if (!this.#isMarkRead) return this.#passFirst(chunk);
    this.#boundary.pass(chunk);
    return chunk;
  }

  /** `EventStreams` calls this every second. */
  tick(): void {
    this.#quietTicks++;
    const mayComment = this.#boundary.isBetweenEvents && (this.#isMarkRead || this.#markBytes === 0);
    if (this.#quietTicks >= QUIET_TICKS && mayComment && !this.#call.isStalled) this.#comment();
  }

  /** Whether an event that is sent now begins as a new event. */
  get isBetweenEvents(): boolean {
    return this.#boundary.isBetweenEvents;
  }

  /** The call is over: nothing is sent any more. */
  end(): void {
    this.#isOver = true;
    this.#streams.remove(this);
  }

  #comment(): void {
    this.#quietTicks = 0;
    if (!this.#isMarkRead) this.#beganWithComment = true;
    this.#call.send(COMMENT);
  }

  /**
   * Readers skip a byte order mark only at the beginning of a stream. After a comment it would become part of the first field's
   * name, and the field would be lost. So the mark is dropped in that case, and its first bytes wait for the next ones. (If the
   * service ends its stream after one or two bytes of a mark, they are dropped: they contain no event.)
   */
  #passFirst(chunk: Buffer): Buffer {
    const all = Buffer.concat([BYTE_ORDER_MARK.subarray(0, this.#markBytes), chunk]);
    const known = Math.min(all.length, BYTE_ORDER_MARK.length);
    const isMark = all.compare(BYTE_ORDER_MARK, 0, known, 0, known) === 0;
    if (isMark && known < BYTE_ORDER_MARK.length) {
      this.#markBytes = known;
      return this.#beganWithComment ? NOTHING : chunk;
    }
    this.#isMarkRead = true;
    const text = isMark ? all.subarray(BYTE_ORDER_MARK.length) : all;
    this.#boundary.pass(text);
    return this.#beganWithComment ? text : chunk;
  }
}

/** All open event streams of this process. */
export class EventStreams {
  readonly #open = new Set<EventStream>();
  #timer: NodeJS.Timeout | null = null;

  add(stream: EventStream): void {
    this.#open.add(stream);
    this.#timer ??= setInterval(this.#tick, TICK_MS).unref();
  }

  remove(stream: EventStream): void {
    this.#open.delete(stream);
  }

  readonly #tick = (): void => {
    for (const stream of this.#open) stream.tick();
    if (this.#open.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  };
}
