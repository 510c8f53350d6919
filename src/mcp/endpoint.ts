import { ApiError, suspendedError } from '../errors.ts';
import { type ShownRate, unknownRate } from '../gate/answer.ts';
import type { CallerStream, RequestHead } from '../gate/caller-io.ts';
import type { Gate, Passage } from '../gate/gate.ts';
import { isOwnOrigin } from '../http/own-origin.ts';
import { headerOf } from '../http/request-head.ts';
import type { ApiResponse } from '../http/route.ts';
import { argumentCheck } from '../http/validation.ts';
import type { KeyRecord } from '../keys/caller.ts';
import type { Log } from '../observability/log.ts';
import { uuidv7 } from '../platform/ids.ts';
import { ByteBudget } from './byte-budget.ts';
import type { CallArguments } from './call-request.ts';
import { callService } from './call-service.ts';
import { pageOf, shownBy } from './page-tools.ts';
import { Protocol, type RunTool } from './protocol.ts';
import { callError, fieldsOf, plainToolError, type ToolResult, toolResult } from './tool-result.ts';
import { TOOLS, type ToolName } from './tools.ts';
import { type StartCall, Visit } from './visit.ts';

/** The path of the endpoint. */
export const MCP_PATH = '/mcp';
/**
 * Maximum bytes of messages and answers that all requests of a worker may keep at the same time; a request beyond it gets 503.
 * Enough for 500 simultaneous calls with small messages. The objects that the protocol's package makes from these bytes take
 * several times as much in addition.
 */
const MAX_KEPT_BYTES = 134_217_728;

type McpOptions = {
  readonly gate: Gate;
  /** Answers a request to the API from inside this process. */
  readonly ask: (asked: {
    readonly head: RequestHead;
    readonly key: KeyRecord | null;
    readonly address: string | null;
    readonly requestId: string;
  }) => Promise<ApiResponse>;
  /** Begins a call, or answers it at once if it is shed. */
  readonly startCall: StartCall;
  /** Origins such as `https://app.example.com` whose pages may use the endpoint, in addition to the gateway's own pages. */
  readonly allowedOrigins: readonly string[];
  readonly log: Log;
};

/**
 * `POST /mcp`: the marketplace as five tools of the Model Context Protocol, without sessions.
 *
 *   origin, method ──► who asks? ──► one token ──► message ──► protocol ──► tool ──► API, or a call
 *
 * Every request takes one token. For `call_service`, the call's own admission takes it, so that a call costs the same here and
 * through the proxy.
 *
 * Tested by test/integration/mcp-tools.test.ts.
 */
export class McpEndpoint {
  readonly #options: McpOptions;
  readonly #protocol: Protocol;
  readonly #budget = new ByteBudget(MAX_KEPT_BYTES);
  readonly #checks = new Map<ToolName, (args: unknown) => void>();
  /**
   * When a key whose call was refused for its rate limit will have a token again, in ms of `performance.now()`. Until then its
   * requests take a token before their message is read: parsing a message is expensive, and 429s must be cheap. After that they
   * must not, or a call would take two tokens: this one and its own.
   */
  readonly #exhausted = new WeakMap<KeyRecord, number>();

  constructor(options: McpOptions) {
    this.#options = options;
    this.#protocol = new Protocol((name, args, visit, context) => this.#run(name, args, visit, context), options.log);
    for (const { name, inputSchema } of TOOLS) this.#checks.set(name, argumentCheck(inputSchema));
  }

  /**
   * Answers one request, unless the caller has left. The only preflights here come from pages that may not use this endpoint. Never
   * throws and never rejects.
   */
  async handle(head: RequestHead, stream: CallerStream): Promise<void> {
    const { gate } = this.#options;
    const requestId = uuidv7();
    const { accessEntry } = stream;
    if (accessEntry !== undefined) {
      accessEntry.requestId = requestId;
      accessEntry.route = head.fault === null ? `${head.method} ${MCP_PATH}` : MCP_PATH;
    }
    let key: KeyRecord | null = null;
    try {
      key = await gate.identify(head.authorization, stream);
      if (accessEntry !== undefined && key !== null) accessEntry.keyId = key.keyId;
    } catch (error) {
      const visit = new Visit(head, stream, null, requestId, this.#budget);
      visit.refuse(this.#asApiError(error, requestId), unknownRate(gate.limitOf(null)));
      return;
    }
    const who = key ?? stream.address;
    // The caller has left: there is no address to count the request by, and nobody to answer.
    if (who === null || stream.aborted) return;
    await this.#serve(new Visit(head, stream, key, requestId, this.#budget), new Token(gate, who));
  }

  async #serve(visit: Visit, token: Token): Promise<void> {
    try {
      this.#checkPage(visit.head);
      checkMethod(visit.head);
      const { key } = visit;
      // This refusal takes no token, so nothing else would bound how many messages are read and parsed for such a key.
      if (key !== null && key.accountStatus !== 'active') throw suspendedError(key.suspensionReason);
      if (key === null || this.#isExhausted(key)) await token.take();
      const { message, isCall } = await this.#read(visit);
      if (!isCall) await token.take();
      const response = await this.#protocol.handle(visit, message, isCall);
      if (response.status >= 500) {
        this.#options.log.error(
          { request_id: visit.requestId, status: response.status },
          'MCP: the protocol package failed to handle a message',
        );
      }
      await visit.send(response, async () => {
        return visit.hasCalled ? (visit.callRate ?? this.#unknownRate(visit)) : token.take();
      });
    } catch (error) {
      await this.#refuse(error, visit, token);
    }
  }

  /** Answers with an error. The request still takes a token, unless it has taken one. */
  async #refuse(error: unknown, visit: Visit, token: Token): Promise<void> {
    let known = this.#asApiError(error, visit.requestId);
    if (!visit.hasCalled) {
      try {
        await token.take();
      } catch (refusal) {
        known = this.#asApiError(refusal, visit.requestId);
      }
    }
    visit.refuse(known, visit.callRate ?? token.rate ?? this.#unknownRate(visit));
  }

  /**
   * Whether a page of the request's `Origin` may use this endpoint. Programs send no `Origin`. The protocol demands this check
   * against DNS rebinding; isOwnOrigin explains how a rebound page is distinguished from our own.
   */
  allowsPage({ headers }: RequestHead): boolean {
    const origin = headerOf(headers, 'origin');
    if (origin === undefined || this.#options.allowedOrigins.includes(origin)) return true;
    return isOwnOrigin(origin, headerOf(headers, 'host') ?? '');
  }

  #checkPage(head: RequestHead): void {
    if (this.allowsPage(head)) return;
    throw new ApiError(
      'forbidden',
      'Pages of this origin may not use /mcp. ALLOWED_ORIGINS of this gateway does not name it.',
    );
  }

  /**
   * Reads the message. If it is a call that its own admission will count, and its arguments are usable, the arguments move from the
   * message to the visit. Otherwise the protocol's package would keep them in memory until the call has ended.
   */
  async #read(visit: Visit): Promise<{ readonly message: Message; readonly isCall: boolean }> {
    const message = parseMessage(await visit.readMessage());
    if (visit.key === null || message.method !== 'tools/call') return { message, isCall: false };
    const { name, arguments: args } = (message.params ?? {}) as { name?: unknown; arguments?: unknown };
    if (name !== 'call_service') return { message, isCall: false };
    try {
      this.#checks.get(name)?.(args);
    } catch {
      // The tool will say what is wrong.
      return { message, isCall: false };
    }
    visit.arguments = args as CallArguments;
    return { message: { ...message, params: { ...(message.params as object), arguments: {} } }, isCall: true };
  }

  async #run(
    name: ToolName,
    args: Readonly<Record<string, unknown>>,
    visit: Visit,
    context: ToolContext,
  ): Promise<ToolResult> {
    try {
      // The arguments of a call were checked when its message was read.
      if (visit.arguments === null) this.#checks.get(name)?.(args);
      if (name === 'call_service') return await this.#call(visit, context);
      const { key, address, requestId } = visit;
      const head = pageOf(name, args, visit.head);
      return toolResult(shownBy(name, args, await this.#options.ask({ head, key, address, requestId })));
    } catch (error) {
      const known = this.#asApiError(error, visit.requestId);
      return name === 'call_service' ? callError(fieldsOf(known), { amount: 0 }) : plainToolError(known);
    }
  }

  async #call(visit: Visit, context: ToolContext): Promise<ToolResult> {
    const result = await callService(this.#options.startCall, visit, context);
    if (visit.key !== null && result.structuredContent?.error === 'rate_limited') {
      this.#exhausted.set(visit.key, performance.now() + visit.msUntilToken);
    }
    return result;
  }

  #isExhausted(key: KeyRecord): boolean {
    return (this.#exhausted.get(key) ?? 0) > performance.now();
  }

  #unknownRate({ key }: Visit): ShownRate {
    return unknownRate(this.#options.gate.limitOf(key));
  }

  #asApiError(error: unknown, requestId: string): ApiError {
    if (error instanceof ApiError) return error;
    this.#options.log.error({ err: error, request_id: requestId }, 'request failed');
    return new ApiError('internal');
  }
}

type ToolContext = Parameters<RunTool>[3];
type Message = { readonly method?: unknown; readonly params?: unknown };

/** The one token that a request takes. */
class Token {
  readonly #gate: Gate;
  readonly #who: KeyRecord | string;
  #taken: Promise<Passage> | null = null;
  /** The rate limit after the token was taken; null before that. */
  rate: ShownRate | null = null;

  constructor(gate: Gate, who: KeyRecord | string) {
    this.#gate = gate;
    this.#who = who;
  }

  /** Takes the token, unless it was already taken. Throws the refusal if there was none. */
  async take(): Promise<ShownRate> {
    this.#taken ??= new Promise((resolve) => this.#gate.take(this.#who, resolve));
    const { rate, refusal } = await this.#taken;
    this.rate = rate;
    if (refusal !== null) throw refusal;
    return rate;
  }
}

/**
 * Refuses methods other than POST: without sessions there is no stream to GET and nothing to DELETE. Also throws the fault of an
 * HTTP message.
 */
function checkMethod({ method, fault }: RequestHead): void {
  if (fault !== null && fault.code !== 'method_not_allowed') throw new ApiError(fault.code, fault.message);
  if (method !== 'POST') throw new ApiError('method_not_allowed', undefined, { headers: { Allow: 'POST' } });
}

/** Throws `invalid_json`, or `invalid_request` if this is not a single message. Revisions since 2025-06-18 have no batches. */
function parseMessage(bytes: Buffer): Message {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new ApiError('invalid_json');
  }
  if (Array.isArray(value)) throw new ApiError('invalid_request', 'body: batches are not supported. Send one message.');
  if (typeof value !== 'object' || value === null)
    throw new ApiError('invalid_request', 'body: must be a JSON-RPC message.');
  return value;
}
