import { ApiError, expiredError, olderPostgresError, tooLargeError } from '../errors.ts';
import {
  closedHeaderLines,
  commonHeaderLines,
  type RateState,
  renderError,
  suspendedError,
  unauthorizedError,
  unavailableError,
  unknownRate,
  untouchedRate,
} from '../gate/answer.ts';
import { type CallerStream, isClosedToPages, type RequestHead } from '../gate/caller-io.ts';
import type { Gate, KeyBucket, Passage } from '../gate/gate.ts';
import { type Caller, isExpired, type KeyRecord } from '../keys/caller.ts';
import { showsBearer } from '../keys/credentials.ts';
import type { Log } from '../observability/log.ts';
import { systemClock } from '../platform/clock.ts';
import { uuidv7 } from '../platform/ids.ts';
import { isOlderPostgres, isPostgresUnavailable } from '../platform/postgres.ts';
import { isRedisUnavailable } from '../platform/redis.ts';
import { BodyBudget, readBody } from './body.ts';
import { IN_MEMORY, PagePermits } from './page-permits.ts';
import { headerOf } from './request-head.ts';
import { type ApiResponse, BodyInPieces, type Method, type Route } from './route.ts';
import { Router } from './router.ts';
import { validatorsOf, validBody, validQuery } from './validation.ts';

/** Maximum request body for a route without its own bound; a longer one gets 413. */
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
 * Maximum time for sending a body in pieces; then it is cut. Its pieces may refer to data that the gateway has since replaced, and
 * would keep these in memory for as long as the slowest caller reads. 46 MB need 77 KB/s.
 */
const MAX_SENDING_MS = 600_000;
/** Maximum time a route's handler may take; after that the caller gets 503. */
const ANSWER_MS = 5_000;
/** A request whose caller was identified. */
type Asked = {
  readonly head: RequestHead;
  /** The source of the request's body; null if there is none. */
  readonly stream: CallerStream | null;
  readonly key: KeyRecord | null;
  /** As `CallerStream.address`. */
  readonly address: string | null;
  readonly requestId: string;
};

/** Answers every request except calls: identify → rate limit → route → permission → validation → handler → JSON. */
export class Api {
  readonly #gate: Gate;
  readonly #permits: PagePermits;
  readonly #permitsInMemory = new PagePermits(IN_MEMORY);
  readonly #log: Log;
  readonly #router: Router;
  readonly #bodies = new BodyBudget({
    freeBytes: MAX_JSON_BODY_BYTES,
    maxBytes: MAX_LONG_BODIES_BYTES,
    maxMs: MAX_ARRIVING_MS,
  });
  readonly #maxSendingMs: number;
  readonly #errorPage: (error: ApiError, head: RequestHead) => ApiResponse | null;

  constructor(options: {
    gate: Gate;
    permits: PagePermits;
    routes: readonly Route[];
    log: Log;
    /** Default MAX_SENDING_MS. */
    maxSendingMs?: number;
    /** Makes the page that is sent for an error instead of JSON; null: send the JSON. */
    errorPage?: ((error: ApiError, head: RequestHead) => ApiResponse | null) | undefined;
  }) {
    this.#errorPage = options.errorPage ?? (() => null);
    this.#maxSendingMs = options.maxSendingMs ?? MAX_SENDING_MS;
    this.#gate = options.gate;
    this.#permits = options.permits;
    this.#log = options.log;
    this.#router = new Router(options.routes);
  }

  /** Answers one request, unless the caller has left. Never throws and never rejects. */
  async handle(head: RequestHead, stream: CallerStream): Promise<void> {
    const requestId = uuidv7();
    const headerLines = isClosedToPages(head.path) ? closedHeaderLines : commonHeaderLines;
    let key: KeyRecord | null = null;
    let rate: RateState | null = null;
    let bucket: KeyBucket | undefined;
    const match = this.#router.match(head.method, head.path);
    const route = match.kind === 'route' ? match.route : undefined;
    const { accessEntry } = stream;
    if (accessEntry !== undefined) Object.assign(accessEntry, { requestId, route: this.#nameOf(route) });
    try {
      const unmetered = match.kind === 'route' && match.route.unmetered === true && head.fault === null;
      if (unmetered) {
        rate = untouchedRate(this.#gate.limitOf(null));
      } else {
        key = await this.#identify(route, head, stream);
        if (accessEntry !== undefined && key !== null) accessEntry.keyId = key.keyId;
        // Redis has no tokens for a suspended account, but its keys may still read.
        const who = key === null || (route?.forSuspended && isSuspended(key)) ? stream.address : key;
        // The caller has left: there is no address to count the request by, and nobody to answer.
        if (who === null) return;
        bucket = bucketOf(route, key, head);
        const passage = await this.#take(who, bucket);
        rate = passage.rate;
        if (passage.refusal !== null) throw passage.refusal;
        // Redis was not asked about the key of a suspended account.
        if (who !== key && key !== null && isExpired(key)) throw expiredError();
      }
      // A method that the gateway does not know is refused further down, because a 405 must list the methods of its path in
      // `Allow`.
      if (head.fault !== null && head.fault.code !== 'method_not_allowed') {
        throw new ApiError(head.fault.code, head.fault.message);
      }
      if (match.kind === 'not_found') throw new ApiError('not_found');
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
      } else send(stream, head.method, response, lines);
    } catch (error) {
      const known = this.#asApiError(error, requestId);
      const common = headerLines(rate ?? unknownRate(this.#gate.limitOf(key, bucket)), requestId);
      const page = this.#pageOf(known, head, requestId);
      if (page !== null) return send(stream, head.method, page, common);
      const { lines, body } = renderError(known, common);
      stream.respond(known.status, lines, body);
    }
  }

  /**
   * Answers a request that begins inside this process and has no body. The calling code has identified the caller and taken a token
   * for it. Rejects only with `ApiError`.
   */
  async ask(asked: Omit<Asked, 'stream'>): Promise<ApiResponse> {
    const match = this.#router.match(asked.head.method, asked.head.path);
    if (match.kind !== 'route') throw new ApiError('not_found');
    try {
      return await this.#run(match.route, match.params, { ...asked, stream: null });
    } catch (error) {
      throw this.#asApiError(error, asked.requestId);
    }
  }

  async #run(route: Route, params: Readonly<Record<string, string>>, asked: Asked): Promise<ApiResponse> {
    const { head, stream, key, address, requestId } = asked;
    checkAccess(route, key, head.authorization);
    const validators = validatorsOf(route);
    const query = validQuery(validators.query, head.query);
    const maxBytes = route.maxBodyBytes ?? MAX_JSON_BODY_BYTES;
    if (head.bodyLength > maxBytes) throw tooLargeError(maxBytes);
    const bytes =
      head.bodyLength === 0 || stream === null ? Buffer.alloc(0) : await readBody(stream, maxBytes, this.#bodies);
    if (bytes === 'too_large') throw tooLargeError(maxBytes);
    if (bytes === 'too_slow') throw new ApiError('body_too_slow');
    if (bytes === 'no_room') throw unavailableError();
    const body = route.rawBody !== undefined ? bytes : validBody(validators.body, bytes);
    const caller: Caller = key === null ? { kind: 'ip' } : { kind: 'key', key };
    const request = {
      method: head.method as Method,
      params,
      query,
      body,
      header: (name: string) => headerOf(head.headers, name),
      caller,
      address,
      requestId,
    };
    if (route.unmetered || route.asksApi) return answeredInTime(route.handle(request));
    // A long body stays in memory while its request waits for a permit, and until its handler has ended.
    if (!this.#bodies.grow(0, bytes.length)) throw unavailableError();
    const permits = route.fromMemory ? this.#permitsInMemory : this.#permits;
    const handled = permits
      .run(key?.accountId ?? address ?? '', () => {
        // The caller left while its request waited for a permit.
        if (stream?.aborted) throw unavailableError();
        return route.handle(request);
      })
      .finally(() => this.#bodies.release(bytes.length));
    return answeredInTime(handled);
  }

  /** The path of a route as the API describes it; '' for a path that the gateway does not have. */
  #nameOf(route: Route | undefined): string {
    return route === undefined ? '' : `${route.method} ${route.path.replace(/:(\w+)/g, '{$1}')}`;
  }

  #identify(
    route: Route | undefined,
    head: RequestHead,
    stream: CallerStream,
  ): KeyRecord | null | Promise<KeyRecord | null> {
    if (route?.holder === undefined) return this.#gate.identify(head.authorization, stream);
    const { holder } = route;
    const request = { method: head.method as Method, header: (name: string) => headerOf(head.headers, name) };
    return this.#gate.identifyHolder((mayLoad) => holder(request, mayLoad), stream);
  }

  #take(who: KeyRecord | string, bucket: KeyBucket | undefined): Promise<Passage> {
    return new Promise((resolve) => {
      this.#gate.take(who, resolve, bucket);
    });
  }

  /** Never rejects: the response has begun, so an error can only cut it. */
  async #sendPieces(
    stream: CallerStream,
    method: string,
    { status, headers }: ApiResponse,
    { pieces }: BodyInPieces,
    common: string,
    requestId: string,
  ): Promise<void> {
    let isGone = false;
    let proceed = (): void => {};
    const onCallerGone = (): void => {
      isGone = true;
      proceed();
    };
    stream.attach({ onCallerBody() {}, onCallerGone, onCallerWritable: () => proceed() });
    const timer = setTimeout(() => {
      stream.abort();
      onCallerGone();
    }, this.#maxSendingMs);
    const hasBody = method !== 'HEAD';
    stream.begin(status, withHeaders(common, headers), true, -1, hasBody);
    try {
      for await (const piece of hasBody ? pieces : []) {
        if (isGone) return;
        const written = new Promise<void>((resolve) => {
          proceed = resolve;
        });
        if (!stream.write(piece)) await written;
        if (isGone) return;
      }
      stream.end();
    } catch (error) {
      this.#log.error({ err: error, request_id: requestId }, 'a response was cut off');
      stream.abort();
    } finally {
      clearTimeout(timer);
    }
  }

  /** A page that cannot be made must not end the process: the JSON is sent instead. */
  #pageOf(error: ApiError, head: RequestHead, requestId: string): ApiResponse | null {
    try {
      return this.#errorPage(error, head);
    } catch (cause) {
      this.#log.error(
        { err: cause, request_id: requestId },
        'cannot make the page of an error: its JSON is sent instead',
      );
      return null;
    }
  }

  #asApiError(error: unknown, requestId: string): ApiError {
    if (error instanceof ApiError) return error;
    if (isOlderPostgres(error)) return olderPostgresError(error);
    if (isPostgresUnavailable(error) || isRedisUnavailable(error)) return unavailableError();
    this.#log.error({ err: error, request_id: requestId }, 'request failed');
    return new ApiError('internal');
  }
}

/**
 * Rejects with 503 when a handler takes longer than ANSWER_MS. When a store or the network to it falls silent, it can take minutes
 * until the handler gets an error. As after any 503, the handler's work may still be completed.
 */
async function answeredInTime(handled: Promise<ApiResponse>): Promise<ApiResponse> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(unavailableError()), ANSWER_MS);
  });
  try {
    return await Promise.race([handled, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** A program that uses up the requests of its key must not take the console from the person who is signed in with it. */
function bucketOf(route: Route | undefined, key: KeyRecord | null, head: RequestHead): KeyBucket | undefined {
  if (route === undefined || key === null || route.bucket === 'control') return route?.bucket;
  return showsBearer(key, head.authorization, systemClock) ? 'person' : route.bucket;
}

const isSuspended = ({ accountStatus }: KeyRecord): boolean => accountStatus !== 'active';

function checkAccess(route: Route, key: KeyRecord | null, authorization: string | undefined): void {
  if (route.access === 'anyone' || route.access === 'cookie') return;
  if (route.access === 'optional') {
    if (key === null && authorization !== undefined) throw unauthorizedError();
  } else {
    if (key === null) throw unauthorizedError();
    if (key.role !== 'admin' && !route.access.includes(key.role)) {
      const roles = route.access.join(' or ');
      throw new ApiError(
        'forbidden',
        `This request needs an API key with the role ${roles}. Yours has the role ${key.role}.`,
      );
    }
    if (key.ancestors.length > 0 && !route.forChildren) {
      throw new ApiError(
        'forbidden',
        'This request needs an API key without a parent, because it shows or changes the whole account.',
      );
    }
  }
  if (key !== null && isSuspended(key) && !route.forSuspended) throw suspendedError(key.suspensionReason);
}

function send(stream: CallerStream, method: string, response: ApiResponse, common: string): void {
  const { body: value = '' } = response;
  const isReady = typeof value === 'string' || value instanceof Uint8Array;
  const json = isReady ? '' : '\r\nContent-Type: application/json; charset=utf-8';
  const lines = withHeaders(common + json, response.headers);
  const body = isReady ? value : JSON.stringify(value);
  if (Buffer.byteLength(body) < MIN_STREAMED_BODY || method === 'HEAD') stream.respond(response.status, lines, body);
  else sendStreamed(stream, response.status, lines, typeof body === 'string' ? Buffer.from(body) : body);
}

function withHeaders(common: string, headers: ApiResponse['headers'] = {}): string {
  return Object.entries(headers).reduce((lines, [name, value]) => `${lines}\r\n${name}: ${value}`, common);
}

/**
 * Sends a long body in chunks, in the same way as a proxied body. So a caller that stalls is cut by the idle timeout here too, and
 * for a slow caller the addon copies at most one chunk, not the whole body.
 */
function sendStreamed(stream: CallerStream, status: number, lines: string, body: Uint8Array): void {
  let at = 0;
  const pump = (): void => {
    while (at < body.length) {
      const chunk = body.subarray(at, at + STREAMED_CHUNK);
      at += chunk.length;
      if (!stream.write(chunk)) return;
    }
    stream.end();
  };
  stream.attach({ onCallerBody() {}, onCallerGone() {}, onCallerWritable: pump });
  stream.begin(status, lines, true, body.length, true);
  pump();
}
