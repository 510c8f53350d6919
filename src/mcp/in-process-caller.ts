import type { RateState, ShownRate } from '../gate/answer.ts';
import type { CallerEvents, CallerStream } from '../gate/caller-io.ts';

/** A call that this process makes for a tool: what the exchange tells it in addition to what every caller gets. */
export type OpenCall = {
  /** The rate limit after the call was admitted or refused; null before that. */
  readonly rate: RateState | null;
  /** Whether the call was settled by a refund. */
  readonly isRefunded: boolean;
  /** What the call cost; null until it is settled. */
  readonly chargedMicros: number | null;
  /** The most that the service could charge for a call priced by use; null at a fixed price. */
  readonly authorizedMicros: number | null;
};

/** How a call was settled, if it was. */
export type CallCost = Omit<OpenCall, 'rate'>;

/** Bounds of a response that is kept whole in memory. */
export type AnswerBounds = {
  /** Maximum bytes of the body. The caller leaves without reading the rest. */
  readonly maxBytes: number;
  /** Maximum time of a body after its head; then the caller leaves with the part that has arrived. */
  readonly maxMs: number;
  /** The same for an event stream, which may have no end. */
  readonly maxStreamMs: number;
};

/** How a call ended. Header names are in lower case. */
export type CallAnswer =
  /** The gateway answered: the call was refused, or its service failed before it answered. */
  | { readonly kind: 'error'; readonly headers: Headers; readonly body: string }
  /** The service answered. `cutBy` says which bound was reached; null: the body is complete. */
  | {
      readonly kind: 'response';
      readonly status: number;
      readonly headers: Headers;
      readonly body: Buffer;
      readonly cutBy: 'size' | 'time' | null;
    }
  /** The service's response broke off. */
  | { readonly kind: 'broken'; readonly status: number; readonly headers: Headers }
  /** The tool's caller left first. Nobody is left to be answered. */
  | { readonly kind: 'left' };

export type Headers = ReadonlyMap<string, string>;

/** The connection of the MCP request for which a call is made. */
type OuterCaller = Pick<CallerStream, 'address' | 'wasCut'>;

/**
 * The caller of a call that begins inside this process. The exchange treats it as any other caller: it sends a request body that
 * has already arrived, reads the response into memory, and may leave at any moment.
 *
 *   waiting ──► admitted (attach) ──► answering (begin) ──► ended
 *      │             │                    │  reached a bound: leaves, with what it has
 *      └─────────────┴────────────────────┴──► left: the tool's caller is gone
 *
 * If it leaves, the call is settled as the failure table (docs/design.md) says for a caller that leaves.
 *
 * Tested by test/mcp/in-process-caller.test.ts, and test/integration/mcp-tools.test.ts.
 */
export class InProcessCaller implements CallerStream {
  readonly #outer: OuterCaller;
  /** The request body until it is delivered; then null. */
  #requestBody: Uint8Array | null;
  readonly #bounds: AnswerBounds;
  readonly #onProgress: () => void;
  #events: CallerEvents | null = null;
  #headers: Headers = new Map();
  readonly #chunks: Uint8Array[] = [];
  #timer: NodeJS.Timeout | null = null;
  #hasEnded = false;
  #resolve: (answer: CallAnswer) => void = () => {};
  readonly answer: Promise<CallAnswer>;
  aborted = false;
  /** Status of the service's response; 0 before it. */
  status = 0;
  /** Bytes of the response that have come. */
  bytes = 0;

  /** @param onProgress  invoked when somebody attaches, and when the service's response begins */
  constructor(outer: OuterCaller, requestBody: Uint8Array, bounds: AnswerBounds, onProgress: () => void) {
    this.#outer = outer;
    // An exchange without a request body does not wait for a piece.
    this.#requestBody = requestBody.length === 0 ? null : requestBody;
    this.#bounds = bounds;
    this.#onProgress = onProgress;
    this.answer = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  get address(): string | null {
    return this.#outer.address;
  }

  get wasCut(): boolean {
    return this.#outer.wasCut;
  }

  /** The rate limit that the call's answer states; null before the answer. */
  get rate(): ShownRate | null {
    const number = (name: string): number => Number(this.#headers.get(name));
    if (!this.#headers.has('x-ratelimit-limit')) return null;
    return {
      limit: number('x-ratelimit-limit'),
      remaining: number('x-ratelimit-remaining'),
      resetSeconds: number('x-ratelimit-reset'),
    };
  }

  /** The tool's caller has gone away. The call ends as it would for a caller of the proxy. */
  leave(): void {
    if (this.#hasEnded) return;
    this.#end({ kind: 'left' });
    this.aborted = true;
    this.#events?.onCallerGone();
  }

  attach(events: CallerEvents): void {
    this.#events = events;
    if (this.aborted) {
      events.onCallerGone();
      return;
    }
    // The service failed before the exchange could begin to listen.
    if (this.#hasEnded) return;
    this.#onProgress();
    // As at the edge, a listener that attaches later gets everything that has not been delivered yet.
    const body = this.#requestBody;
    this.#requestBody = null;
    if (body !== null) events.onCallerBody(body, true);
  }

  /** The whole body was delivered by attach(). */
  pauseBody(): void {}

  resumeBody(): void {}

  respond(_status: number, headerLines: string, body: string | Uint8Array): void {
    if (this.#hasEnded) return;
    this.#headers = parseHeaderLines(headerLines);
    const text = typeof body === 'string' ? body : Buffer.from(body).toString('utf8');
    this.#end({ kind: 'error', headers: this.#headers, body: text });
  }

  /** An interim response contains nothing that a tool could use before the final one. */
  interim(): void {}

  begin(status: number, headerLines: string): void {
    if (this.#hasEnded) return;
    this.status = status;
    this.#headers = parseHeaderLines(headerLines);
    const { maxMs, maxStreamMs } = this.#bounds;
    const isStream = this.#headers.get('content-type')?.toLowerCase().startsWith('text/event-stream') ?? false;
    this.#timer = setTimeout(() => this.#cut('time'), isStream ? maxStreamMs : maxMs);
    this.#onProgress();
  }

  write(chunk: Uint8Array): boolean {
    if (this.#hasEnded) return false;
    const room = this.#bounds.maxBytes - this.bytes;
    // A copy: the upstream client overwrites its buffer. Not slice(), because that of a Buffer does not copy.
    this.#chunks.push(new Uint8Array(chunk.subarray(0, room)));
    this.bytes += Math.min(room, chunk.length);
    if (chunk.length <= room) return true;
    this.#cut('size');
    return false;
  }

  end(): void {
    this.#respondWith(null);
  }

  abort(): void {
    if (!this.#hasEnded) this.#end({ kind: 'broken', status: this.status, headers: this.#headers });
  }

  #cut(by: 'size' | 'time'): void {
    if (this.#hasEnded) return;
    this.#respondWith(by);
    this.aborted = true;
    // In a separate turn: the exchange destroys the upstream call, which may be in the middle of delivering a piece.
    setImmediate(() => this.#events?.onCallerGone());
  }

  #respondWith(cutBy: 'size' | 'time' | null): void {
    if (this.#hasEnded) return;
    this.#end({
      kind: 'response',
      status: this.status,
      headers: this.#headers,
      body: Buffer.concat(this.#chunks),
      cutBy,
    });
  }

  #end(answer: CallAnswer): void {
    this.#hasEnded = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#resolve(answer);
  }
}

/**
 * Header lines, each preceded by CRLF → values by name. If a name is repeated, the first value counts: the gateway's own lines come
 * before the service's.
 */
function parseHeaderLines(lines: string): Headers {
  const headers = new Map<string, string>();
  for (const line of lines.split('\r\n')) {
    const colon = line.indexOf(':');
    if (colon < 1) continue;
    const name = line.slice(0, colon).toLowerCase();
    if (!headers.has(name)) headers.set(name, line.slice(colon + 1).trim());
  }
  return headers;
}
