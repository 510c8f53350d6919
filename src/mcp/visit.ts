import { ApiError, unavailableError } from '../errors.ts';
import { commonHeaderLines, msUntilToken, renderError, type ShownRate } from '../gate/answer.ts';
import { BodyBytes } from '../gate/body-bytes.ts';
import type { CallerEvents, CallerStream, RequestHead } from '../gate/caller-io.ts';
import type { KeyRecord } from '../keys/caller.ts';
import { type ByteBudget, parsedBytes } from './byte-budget.ts';
import type { CallArguments } from './call-request.ts';
import {
  type AnswerBounds,
  type CallAnswer,
  type CallCost,
  InProcessCaller,
  type OpenCall,
} from './in-process-caller.ts';

/**
 * Maximum bytes of a message to `/mcp`; a longer one gets 413. Models do not write longer arguments, and a client that has a large
 * file can send it through the proxy, which streams it.
 */
const MAX_MESSAGE_BYTES = 1_048_576;
/**
 * Maximum time for the whole message; one that takes longer gets 408. The bytes that have arrived count against the memory of all
 * messages, so callers that send very slowly could close this endpoint to everybody else. 1 MiB in this time is 35 KB/s.
 */
const MAX_MESSAGE_MS = 30_000;

/** Bounds on a response that a tool receives. Beyond them the call is cut off, and charged as one whose caller left. */
export const ANSWER_BOUNDS: AnswerBounds = {
  /** More would fill the context of a model. */
  maxBytes: 262_144,
  maxMs: 300_000,
  /** Most MCP clients wait 60 s for a result. The difference is left for the time until the service's head arrives. */
  maxStreamMs: 45_000,
};

export type StartCall = (head: RequestHead, caller: CallerStream) => OpenCall | null;

/** The caller left before its call was made. */
const NOT_MADE: CallCost = { isRefunded: true, chargedMicros: 0, authorizedMicros: null };

/**
 * One request to `/mcp`, seen from its connection: reads the message, knows whether the caller is still there, makes at most one
 * call, and writes the response. Reserves the memory for all of this, and releases it at the end.
 *
 * Tested by test/mcp/visit.test.ts and test/integration/mcp-tools.test.ts.
 */
export class Visit implements CallerEvents {
  readonly head: RequestHead;
  readonly key: KeyRecord | null;
  readonly requestId: string;
  /** The arguments of the call that the message asks for, until its request is made from them. */
  arguments: CallArguments | null = null;
  readonly #stream: CallerStream;
  readonly #budget: ByteBudget;
  readonly #gone = new AbortController();
  #reserved = 0;
  #hasBegun = false;
  #message: { readonly bytes: BodyBytes; readonly done: (bytes: Buffer | ApiError) => void } | null = null;
  #whenWritable: (() => void) | null = null;
  #call: InProcessCaller | null = null;
  #openCall: OpenCall | null = null;

  constructor(head: RequestHead, stream: CallerStream, key: KeyRecord | null, requestId: string, budget: ByteBudget) {
    this.head = head;
    this.key = key;
    this.requestId = requestId;
    this.#stream = stream;
    this.#budget = budget;
  }

  /** Aborted when the caller has left, the gateway has cut the connection, or the request was answered with an error. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  get address(): string | null {
    return this.#stream.address;
  }

  /** Whether a call was begun. The call has then taken the token of this request. */
  get hasCalled(): boolean {
    return this.#call !== null;
  }

  /** The rate limit as the call of this visit states it; null while there is none. */
  get callRate(): ShownRate | null {
    return this.#call?.rate ?? this.#openCall?.rate ?? null;
  }

  /**
   * Milliseconds until a token is available, counted from the moment when the call of this visit was refused for its rate limit.
   */
  get msUntilToken(): number {
    const rate = this.#openCall?.rate ?? null;
    return rate === null ? 0 : msUntilToken(rate);
  }

  /**
   * Reads the whole message. Rejects with `payload_too_large`, with `body_too_slow`, or with `unavailable` if all messages together
   * would take too much memory. Never resolves if the caller leaves.
   */
  readMessage(): Promise<Buffer> {
    if (this.head.bodyLength > MAX_MESSAGE_BYTES) return Promise.reject(tooLong());
    return new Promise((resolve, reject) => {
      const deadline = setTimeout(() => this.#message?.done(new ApiError('body_too_slow')), MAX_MESSAGE_MS);
      this.gone.addEventListener('abort', () => clearTimeout(deadline), { once: true });
      this.#message = {
        bytes: new BodyBytes(MAX_MESSAGE_BYTES),
        done: (result) => {
          this.#message = null;
          clearTimeout(deadline);
          if (result instanceof ApiError) reject(result);
          else resolve(result);
        },
      };
      if (this.head.bodyLength === 0) this.#message.done(Buffer.alloc(0));
      this.#stream.attach(this);
    });
  }

  onCallerBody(chunk: Uint8Array, last: boolean): void {
    const message = this.#message;
    if (message === null) return;
    const { bytes } = message;
    if (bytes.length + chunk.length > MAX_MESSAGE_BYTES) message.done(tooLong());
    else if (!this.#reserve(chunk.length)) message.done(unavailableError());
    else {
      bytes.add(chunk);
      if (last) message.done(this.#reserve(parsedBytes(bytes.all)) ? bytes.all : unavailableError());
    }
  }

  onCallerGone(): void {
    this.#call?.leave();
    this.#gone.abort();
    this.onCallerWritable();
    this.release();
  }

  onCallerWritable(): void {
    const resume = this.#whenWritable;
    this.#whenWritable = null;
    resume?.();
  }

  /**
   * Makes a call with the key of this request, as a caller of the proxy would.
   *
   * @param cancelled  aborted when the caller cancels the call without leaving
   * @param onProgress  invoked when the call has been admitted, and when the service's response begins
   */
  async call(
    start: StartCall,
    { head, body }: { readonly head: RequestHead; readonly body: Uint8Array },
    cancelled: AbortSignal,
    onProgress: (call: InProcessCaller) => void,
  ): Promise<{ readonly answer: CallAnswer; readonly cost: CallCost }> {
    if (this.gone.aborted || cancelled.aborted) return { answer: { kind: 'left' }, cost: NOT_MADE };
    // Of the message, only the request's body is kept.
    this.release();
    if (!this.#reserve(ANSWER_BOUNDS.maxBytes + body.length)) throw unavailableError();
    const call: InProcessCaller = new InProcessCaller(this.#stream, body, ANSWER_BOUNDS, () => {
      // For an MCP server, the exchange reads the call's body before it admits the call. A notice would send the head of the
      // response, which states the rate limit, and that is known only after the admission.
      if (this.callRate !== null) onProgress(call);
    });
    const leave = (): void => call.leave();
    cancelled.addEventListener('abort', leave, { once: true });
    this.#call = call;
    this.#openCall = start(head, call);
    const answer = await call.answer;
    cancelled.removeEventListener('abort', leave);
    return { answer, cost: this.#openCall ?? NOT_MADE };
  }

  /** Answers with an error, or cuts a response that has begun. Nobody reads the result of a call that is still under way. */
  refuse(error: ApiError, rate: ShownRate): void {
    this.#call?.leave();
    this.#gone.abort();
    if (this.#hasBegun) {
      this.#stream.abort();
      this.release();
      return;
    }
    const { lines, body } = renderError(error, commonHeaderLines(rate, this.requestId));
    this.#respond(error.status, lines, body);
  }

  /** Sends the answer of the protocol's handler. The head leaves with the first bytes of the body. */
  async send(response: Response, rateOf: () => Promise<ShownRate>): Promise<void> {
    const reader = response.body?.getReader();
    const first = await reader?.read();
    const rate = await rateOf();
    const lines = commonHeaderLines(rate, this.requestId) + handlerLines(response);
    if (reader === undefined || first === undefined || first.done) {
      this.#respond(response.status, lines, '');
      return;
    }
    this.gone.addEventListener('abort', () => void reader.cancel().catch(() => {}), { once: true });
    if (this.gone.aborted) return;
    this.#hasBegun = true;
    this.#stream.begin(response.status, lines, true, -1, true);
    let piece: Awaited<ReturnType<typeof reader.read>> = first;
    while (!piece.done) {
      if (this.gone.aborted) return;
      if (!this.#stream.write(piece.value)) await this.#writable();
      piece = await reader.read();
    }
    if (this.gone.aborted) return;
    this.#stream.end();
    this.release();
  }

  release(): void {
    this.#budget.release(this.#reserved);
    this.#reserved = 0;
  }

  #respond(status: number, lines: string, body: string): void {
    this.#stream.respond(status, lines, body);
    this.release();
  }

  #reserve(bytes: number): boolean {
    if (!this.#budget.reserve(bytes)) return false;
    this.#reserved += bytes;
    return true;
  }

  #writable(): Promise<void> {
    if (this.gone.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      this.#whenWritable = resolve;
    });
  }
}

function tooLong(): ApiError {
  const message = `A message to /mcp may have at most ${MAX_MESSAGE_BYTES} bytes. Send a longer body over HTTP, to the proxy_path of the service.`;
  return new ApiError('payload_too_large', message);
}

/** The header lines of the protocol's handler that matter to a client; the gateway writes its own framing. */
function handlerLines(response: Response): string {
  let lines = '';
  for (const name of ['content-type', 'cache-control', 'x-accel-buffering', 'mcp-protocol-version']) {
    const value = response.headers.get(name);
    if (value !== null) lines += `\r\n${name}: ${value}`;
  }
  return lines;
}
