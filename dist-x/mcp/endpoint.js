import { ApiError } from '../errors.js';
import { unknownRate } from '../gate/answer.js';
import { isOwnOrigin } from '../http/own-origin.js';
import { getHead, headerOf } from '../http/request-head.js';
import { argumentCheck } from '../http/validation.js';
import { uuidv7 } from '../platform/ids.js';
import { ByteBudget } from './byte-budget.js';
import { callService } from './call-service.js';
import { Protocol } from './protocol.js';
import { plainToolError, toolResult } from './tool-result.js';
import { TOOLS } from './tools.js';
import { Visit } from './visit.js';
/** The path of the endpoint. */
export const MCP_PATH = '/mcp';
/**
 * Maximum bytes of messages and answers that all requests of a worker may keep at a time; a request beyond it gets 503. Enough for
 * 500 calls at once with small messages. What the protocol's package makes of these bytes comes on top, a few times as much.
 */
const MAX_KEPT_BYTES = 134_217_728;
/** Services or calls on a page if the model does not say. */
const PAGE = 20;
/**
 * `POST /mcp`: the marketplace as five tools of the Model Context Protocol, without sessions.
 *
 *   origin, method ──► who asks? ──► one token ──► message ──► protocol ──► tool ──► API, or a call
 *
 * Every request takes one token. For `call_service` it is the one that the call's own admission takes, so that a call costs the
 * same here and through the proxy.
 *
 * Tested by test/integration/mcp-tools.test.ts.
 */
export class McpEndpoint {
    #options;
    #protocol;
    #budget = new ByteBudget(MAX_KEPT_BYTES);
    #checks = new Map();
    /**
     * When a key whose call was refused for its rate limit has a token again, in ms of `performance.now()`. Until then its requests
     * take a token before their message is read: 429s must be cheap, and parsing a message is not. Not a moment longer, or a call would
     * take two tokens: this one and its own.
     */
    #exhausted = new WeakMap();
    constructor(options) {
        this.#options = options;
        this.#protocol = new Protocol((name, args, visit, context) => this.#run(name, args, visit, context), options.log);
        for (const { name, inputSchema } of TOOLS)
            this.#checks.set(name, argumentCheck(inputSchema));
    }
    /**
     * Answers one request, unless the caller has left. Preflights come here only from pages that may not use this. Never throws and
     * never rejects.
     */
    async handle(head, stream) {
        const { gate } = this.#options;
        const requestId = uuidv7();
        let key = null;
        try {
            key = await gate.identify(head.authorization, stream);
        }
        catch (error) {
            const visit = new Visit(head, stream, null, requestId, this.#budget);
            visit.refuse(this.#asApiError(error, requestId), unknownRate(gate.limitOf(null)));
            return;
        }
        const who = key ?? stream.address;
        // The caller has left: there is no address to count the request by, and nobody to answer.
        if (who === null || stream.aborted)
            return;
        await this.#serve(new Visit(head, stream, key, requestId, this.#budget), new Token(gate, who));
    }
    async #serve(visit, token) {
        try {
            this.#checkPage(visit.head);
            checkMethod(visit.head);
            if (visit.key === null || this.#isExhausted(visit.key))
                await token.take();
            const { message, isCall } = await this.#read(visit);
            if (!isCall)
                await token.take();
            const response = await this.#protocol.handle(visit, message, isCall);
            await visit.send(response, async () => {
                return visit.hasCalled ? (visit.callRate ?? this.#unknownRate(visit)) : token.take();
            });
        }
        catch (error) {
            await this.#refuse(error, visit, token);
        }
    }
    /** Answers with an error. The request still takes a token, unless it has taken one. */
    async #refuse(error, visit, token) {
        let known = this.#asApiError(error, visit.requestId);
        if (!visit.hasCalled) {
            try {
                await token.take();
            }
            catch (refusal) {
                known = this.#asApiError(refusal, visit.requestId);
            }
        }
        visit.refuse(known, visit.callRate ?? token.rate ?? this.#unknownRate(visit));
    }
    /**
     * Whether a page of the origin that the request states may use this endpoint. Programs state none. The protocol demands this check
     * against DNS rebinding; isOwnOrigin says how a rebound page is told from our own.
     */
    allowsPage({ headers }) {
        const origin = headerOf(headers, 'origin');
        if (origin === undefined || this.#options.allowedOrigins.includes(origin))
            return true;
        return isOwnOrigin(origin, headerOf(headers, 'host') ?? '');
    }
    #checkPage(head) {
        if (this.allowsPage(head))
            return;
        throw new ApiError('forbidden', 'Pages of this origin may not use /mcp. ALLOWED_ORIGINS of this gateway does not name it.');
    }
    /**
     * Reads the message. If it is a call that its own admission will count, with arguments that make a call possible, the visit gets the
     * arguments, and the message loses them. Else the protocol's package would keep them until the call has ended.
     */
    async #read(visit) {
        const message = parseMessage(await visit.readMessage());
        if (visit.key === null || message.method !== 'tools/call')
            return { message, isCall: false };
        const { name, arguments: args } = (message.params ?? {});
        if (name !== 'call_service')
            return { message, isCall: false };
        try {
            this.#checks.get(name)?.(args);
        }
        catch {
            // The tool says what is wrong.
            return { message, isCall: false };
        }
        visit.arguments = args;
        return { message: { ...message, params: { ...message.params, arguments: {} } }, isCall: true };
    }
    async #run(name, args, visit, context) {
        try {
            // The arguments of a call were checked when its message was read.
            if (visit.arguments === null)
                this.#checks.get(name)?.(args);
            if (name === 'call_service')
                return await this.#call(visit, context);
            const { path, query } = pageOf(name, args);
            const { key, address, requestId } = visit;
            const body = bodyOf(await this.#options.ask({ head: getHead(path, query), key, address, requestId }));
            // A year of days would fill a model's context with numbers that it did not ask for.
            delete body.by_day;
            return toolResult(body);
        }
        catch (error) {
            return plainToolError(this.#asApiError(error, visit.requestId));
        }
    }
    async #call(visit, context) {
        const result = await callService(this.#options.startCall, visit, context);
        if (visit.key !== null && result.structuredContent?.error === 'rate_limited') {
            this.#exhausted.set(visit.key, performance.now() + visit.msUntilToken);
        }
        return result;
    }
    #isExhausted(key) {
        return (this.#exhausted.get(key) ?? 0) > performance.now();
    }
    #unknownRate({ key }) {
        return unknownRate(this.#options.gate.limitOf(key));
    }
    #asApiError(error, requestId) {
        if (error instanceof ApiError)
            return error;
        this.#options.log.error({ err: error, request_id: requestId }, 'request failed');
        return new ApiError('internal');
    }
}
/** The one token that a request takes. */
class Token {
    #gate;
    #who;
    #taken = null;
    /** The rate limit after the token was taken; null before. */
    rate = null;
    constructor(gate, who) {
        this.#gate = gate;
        this.#who = who;
    }
    /** Takes the token if that has not been done. Throws the refusal if there was none. */
    async take() {
        this.#taken ??= new Promise((resolve) => this.#gate.take(this.#who, resolve));
        const { rate, refusal } = await this.#taken;
        this.rate = rate;
        if (refusal !== null)
            throw refusal;
        return rate;
    }
}
/** Without sessions there is no stream to GET and nothing to DELETE. Also throws what is wrong with the HTTP message. */
function checkMethod({ method, fault }) {
    if (fault !== null && fault.code !== 'method_not_allowed')
        throw new ApiError(fault.code, fault.message);
    if (method !== 'POST')
        throw new ApiError('method_not_allowed', undefined, { headers: { Allow: 'POST' } });
}
/** Throws `invalid_json`, or `invalid_request` if this is not one message. Revisions since 2025-06-18 know no batches. */
function parseMessage(bytes) {
    let value;
    try {
        value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    }
    catch {
        throw new ApiError('invalid_json');
    }
    if (Array.isArray(value))
        throw new ApiError('invalid_request', 'body: batches are not supported. Send one message.');
    if (typeof value !== 'object' || value === null)
        throw new ApiError('invalid_request', 'body: must be a JSON-RPC message.');
    return value;
}
/** The page of the API that a tool shows. */
function pageOf(name, args) {
    switch (name) {
        case 'discover_services':
            return { path: '/api/v1/discover', query: parameters({ limit: PAGE, ...args }) };
        case 'get_service':
            return { path: `/api/v1/discover/${args.service_id}` };
        case 'get_usage':
            return { path: '/api/v1/usage/me', query: parameters({ limit: PAGE, ...args }) };
        case 'get_balance':
            return { path: '/api/v1/balance/me' };
    }
}
function parameters(args) {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(args))
        query.set(name, String(value));
    return query.toString();
}
/** A page that keeps its answers keeps them as text. */
function bodyOf({ body }) {
    return (typeof body === 'string' ? JSON.parse(body) : body);
}
//# sourceMappingURL=endpoint.js.map