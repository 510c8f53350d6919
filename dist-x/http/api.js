import { ApiError, tooLargeError } from '../errors.js';
import { adminHeaderLines, commonHeaderLines, renderError, suspendedError, unauthorizedError, unavailableError, unknownRate, untouchedRate, } from '../gate/answer.js';
import { ADMIN_PREFIX } from '../gate/caller-io.js';
import { uuidv7 } from '../platform/ids.js';
import { isPostgresUnavailable } from '../platform/postgres.js';
import { isRedisUnavailable } from '../platform/redis.js';
import { BodyBudget, readBody } from './body.js';
import { IN_MEMORY, PagePlaces } from './page-places.js';
import { headerOf } from './request-head.js';
import { BodyInPieces } from './route.js';
import { Router } from './router.js';
import { compileValidators, validBody, validQuery } from './validation.js';
/** Maximum body of a request to a route that states no bound of its own; a longer one gets 413. */
const MAX_JSON_BODY_BYTES = 65_536;
/** Maximum bytes of all longer bodies that are arriving or not yet handled: 32 of the longest. Beyond it a request gets 503. */
const MAX_LONG_BODIES_BYTES = 67_108_864;
/** Maximum time in which a body must arrive; then it gets 408. */
const MAX_ARRIVING_MS = 30_000;
/**
 * Bodies of this size or more (long lists, exports) are sent in chunks, as fast as the caller reads them. Shorter ones are sent
 * at once.
 */
const MIN_STREAMED_BODY = 65_536;
const STREAMED_CHUNK = 65_536;
/**
 * Maximum time in which a body in pieces must be sent; then it is cut. Its pieces may be made of what the gateway has replaced since,
 * and would keep in memory for as long as the slowest caller reads. 46 MB need 77 KB/s.
 */
const MAX_SENDING_MS = 600_000;
/** Maximum time a route's handler may take; after that the caller gets 503. */
const ANSWER_MS = 5_000;
/** Answers every request except calls: identify → rate limit → route → permission → validation → handler → JSON. */
export class Api {
    #gate;
    #places;
    #placesInMemory = new PagePlaces(IN_MEMORY);
    #log;
    #router;
    #bodies = new BodyBudget({
        freeBytes: MAX_JSON_BODY_BYTES,
        maxBytes: MAX_LONG_BODIES_BYTES,
        maxMs: MAX_ARRIVING_MS,
    });
    #validators = new Map();
    #maxSendingMs;
    #errorPage;
    constructor(options) {
        this.#errorPage = options.errorPage ?? (() => null);
        this.#maxSendingMs = options.maxSendingMs ?? MAX_SENDING_MS;
        this.#gate = options.gate;
        this.#places = options.places;
        this.#log = options.log;
        this.#router = new Router(options.routes);
        for (const route of options.routes)
            this.#validators.set(route, compileValidators(route));
    }
    /** Answers one request, unless the caller has left. Never throws and never rejects. */
    async handle(head, stream) {
        const requestId = uuidv7();
        const headerLines = head.path.startsWith(ADMIN_PREFIX) ? adminHeaderLines : commonHeaderLines;
        let key = null;
        let rate = null;
        try {
            const match = this.#router.match(head.method, head.path);
            const unmetered = match.kind === 'route' && match.route.unmetered === true && head.fault === null;
            if (unmetered) {
                rate = untouchedRate(this.#gate.limitOf(null));
            }
            else {
                key = await this.#gate.identify(head.authorization, stream);
                const who = key ?? stream.address;
                // The caller has left: there is no address to count the request by, and nobody to answer.
                if (who === null)
                    return;
                const passage = await this.#take(who);
                rate = passage.rate;
                if (passage.refusal !== null)
                    throw passage.refusal;
            }
            // A method that the gateway does not know is refused further down, because a 405 must list the methods of its path in
            // `Allow`.
            if (head.fault !== null && head.fault.code !== 'method_not_allowed') {
                throw new ApiError(head.fault.code, head.fault.message);
            }
            if (match.kind === 'not_found')
                throw new ApiError('not_found');
            if (match.kind === 'method_not_allowed') {
                throw new ApiError('method_not_allowed', undefined, { headers: { Allow: match.allow } });
            }
            const response = await this.#run(match.route, match.params, {
                head,
                stream,
                key,
                address: stream.address,
                requestId,
            });
            const lines = headerLines(rate, requestId);
            if (response.body instanceof BodyInPieces) {
                await this.#sendPieces(stream, head.method, response, response.body, lines, requestId);
            }
            else
                send(stream, head.method, response, lines);
        }
        catch (error) {
            const known = this.#asApiError(error, requestId);
            const common = headerLines(rate ?? unknownRate(this.#gate.limitOf(key)), requestId);
            const page = this.#pageOf(known, head, requestId);
            if (page !== null)
                return send(stream, head.method, page, common);
            const { lines, body } = renderError(known, common);
            stream.respond(known.status, lines, body);
        }
    }
    /**
     * Answers a request that begins inside this process and has no body. The code that asks has identified the caller and taken a token
     * for it. Rejects only with `ApiError`.
     */
    async ask(asked) {
        const match = this.#router.match(asked.head.method, asked.head.path);
        if (match.kind !== 'route')
            throw new ApiError('not_found');
        try {
            return await this.#run(match.route, match.params, { ...asked, stream: null });
        }
        catch (error) {
            throw this.#asApiError(error, asked.requestId);
        }
    }
    async #run(route, params, asked) {
        const { head, stream, key, address, requestId } = asked;
        checkAccess(route, key, head.authorization);
        const validators = this.#validators.get(route);
        const query = validQuery(validators.query, head.query);
        const maxBytes = route.maxBodyBytes ?? MAX_JSON_BODY_BYTES;
        if (head.bodyLength > maxBytes)
            throw tooLargeError(maxBytes);
        const bytes = head.bodyLength === 0 || stream === null ? Buffer.alloc(0) : await readBody(stream, maxBytes, this.#bodies);
        if (bytes === 'too_large')
            throw tooLargeError(maxBytes);
        if (bytes === 'too_slow')
            throw new ApiError('body_too_slow');
        if (bytes === 'no_room')
            throw unavailableError();
        const body = route.rawBody ? bytes : validBody(validators.body, bytes);
        const caller = key === null ? { kind: 'ip' } : { kind: 'key', key };
        const request = {
            method: head.method,
            params,
            query,
            body,
            header: (name) => headerOf(head.headers, name),
            caller,
            address,
            requestId,
        };
        if (route.unmetered || route.asksApi)
            return answeredInTime(route.handle(request));
        // A long body stays in memory while its request waits for a place, and until its handler has ended.
        if (!this.#bodies.grow(0, bytes.length))
            throw unavailableError();
        const places = route.fromMemory ? this.#placesInMemory : this.#places;
        const handled = places
            .run(key?.accountId ?? address ?? '', () => {
            // The caller left while its request waited for a place.
            if (stream?.aborted)
                throw unavailableError();
            return route.handle(request);
        })
            .finally(() => this.#bodies.release(bytes.length));
        return answeredInTime(handled);
    }
    #take(who) {
        return new Promise((resolve) => {
            this.#gate.take(who, resolve);
        });
    }
    /** Never rejects: the response has begun, so an error can only cut it. */
    async #sendPieces(stream, method, { status, headers }, { pieces }, common, requestId) {
        let isGone = false;
        let proceed = () => { };
        const onCallerGone = () => {
            isGone = true;
            proceed();
        };
        stream.attach({ onCallerBody() { }, onCallerGone, onCallerWritable: () => proceed() });
        const timer = setTimeout(() => {
            stream.abort();
            onCallerGone();
        }, this.#maxSendingMs);
        const hasBody = method !== 'HEAD';
        stream.begin(status, withHeaders(common, headers), true, -1, hasBody);
        try {
            for await (const piece of hasBody ? pieces : []) {
                if (isGone)
                    return;
                const written = new Promise((resolve) => {
                    proceed = resolve;
                });
                if (!stream.write(piece))
                    await written;
                if (isGone)
                    return;
            }
            stream.end();
        }
        catch (error) {
            this.#log.error({ err: error, request_id: requestId }, 'response was cut');
            stream.abort();
        }
        finally {
            clearTimeout(timer);
        }
    }
    /** A page that cannot be made must not be the end of the process: then the JSON is sent. */
    #pageOf(error, head, requestId) {
        try {
            return this.#errorPage(error, head);
        }
        catch (cause) {
            this.#log.error({ err: cause, request_id: requestId }, 'page of an error failed');
            return null;
        }
    }
    #asApiError(error, requestId) {
        if (error instanceof ApiError)
            return error;
        if (isPostgresUnavailable(error) || isRedisUnavailable(error))
            return unavailableError();
        this.#log.error({ err: error, request_id: requestId }, 'request failed');
        return new ApiError('internal');
    }
}
/**
 * Rejects with 503 when a handler takes longer than ANSWER_MS. When a store or the network to it falls silent, it can take
 * minutes until the handler gets an error. What the handler has begun may still be completed, as after any 503.
 */
async function answeredInTime(handled) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(unavailableError()), ANSWER_MS);
    });
    try {
        return await Promise.race([handled, late]);
    }
    finally {
        clearTimeout(timer);
    }
}
function checkAccess(route, key, authorization) {
    if (route.access === 'anyone')
        return;
    if (route.access === 'optional') {
        if (key === null && authorization !== undefined)
            throw unauthorizedError();
    }
    else {
        if (key === null)
            throw unauthorizedError();
        if (key.role !== 'admin' && !route.access.includes(key.role)) {
            const roles = route.access.join(' or ');
            throw new ApiError('forbidden', `This takes an API key with the role ${roles}. Yours has the role ${key.role}.`);
        }
    }
    if (key !== null && key.accountStatus !== 'active')
        throw suspendedError();
}
function send(stream, method, response, common) {
    const { body: value = '' } = response;
    const isReady = typeof value === 'string' || value instanceof Uint8Array;
    const json = isReady ? '' : '\r\nContent-Type: application/json; charset=utf-8';
    const lines = withHeaders(common + json, response.headers);
    const body = isReady ? value : JSON.stringify(value);
    if (Buffer.byteLength(body) < MIN_STREAMED_BODY || method === 'HEAD')
        stream.respond(response.status, lines, body);
    else
        sendStreamed(stream, response.status, lines, typeof body === 'string' ? Buffer.from(body) : body);
}
function withHeaders(common, headers = {}) {
    return Object.entries(headers).reduce((lines, [name, value]) => `${lines}\r\n${name}: ${value}`, common);
}
/**
 * Sends a long body in chunks, as a proxied body is sent. So a caller that stalls is cut by the idle timeout here too, and for
 * a slow caller the addon copies at most one chunk, not the whole body.
 */
function sendStreamed(stream, status, lines, body) {
    let at = 0;
    const pump = () => {
        while (at < body.length) {
            const chunk = body.subarray(at, at + STREAMED_CHUNK);
            at += chunk.length;
            if (!stream.write(chunk))
                return;
        }
        stream.end();
    };
    stream.attach({ onCallerBody() { }, onCallerGone() { }, onCallerWritable: pump });
    stream.begin(status, lines, true, body.length, true);
    pump();
}
//# sourceMappingURL=api.js.map