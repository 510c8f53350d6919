import type { CallerEvents, CallerStream, RequestHead } from '../gate/caller-io.ts';
import type { AccessEntry } from '../observability/access-log.ts';
import { addressOf } from './address.ts';
import { type BodyOwner, CallerBody } from './caller-body.ts';
import { afterRest } from './close-connection.ts';
import { type ResponseOwner, ResponseWriter } from './response-writer.ts';
import { UploadPace } from './upload-pace.ts';
import type { HttpResponse } from './uws.ts';
import { renewTimeout } from './uws-response.ts';

/** The server, seen from one of its streams. */
export interface StreamOwner {
  /** The server is draining: responses must say `Connection: close`. */
  readonly draining: boolean;
  /** The server is closing: it cuts every connection. */
  readonly closing: boolean;
  /** How many proxies in front of the gateway are trusted to write `X-Forwarded-For`. */
  readonly trustedProxyHops: number;
  /** Maximum bytes of a request that are read and dropped after its response. */
  readonly maxRequestBodyBytes: number;
  /** Tells the server that the stream has ended: the response was sent to the last byte or cut, or the caller left. */
  onFinished(stream: UwsCallerStream): void;
}

/**
 * The connection of one caller on uWebSockets.js ("the addon"), for one request: its body comes in (CallerBody), and the response
 * goes out (ResponseWriter). The stream checks that the caller keeps sending or reading. It ends when the whole response was sent,
 * when abort() cuts the connection, or when the caller leaves (`aborted`).
 *
 * Tested by test/http/caller-stream.test.ts, early-answers.test.ts, slow-callers.test.ts and slow-bodies.test.ts.
 */
export class UwsCallerStream implements CallerStream, BodyOwner, ResponseOwner {
  /** The index of this stream in the server's list of open streams. */
  index = 0;
  readonly #response: HttpResponse;
  readonly #writer: ResponseWriter;
  readonly #owner: StreamOwner;
  readonly #head: RequestHead;
  /** The request is chunked or has a fault: no other request is served on its connection. */
  readonly #isLastRequest: boolean;
  #events: CallerEvents | null = null;
  /** The body of the request, or null if it has none. */
  readonly #body: CallerBody | null;
  /** Whether bytes have come from the caller since the last tick. */
  #hasReceived = false;
  #idleTicks = 0;
  /** Null until the first tick that finds the body incomplete: most bodies need no check. */
  #pace: UploadPace | null = null;
  aborted = false;
  /** The server sets it if there is an access log. */
  accessEntry: AccessEntry | undefined = undefined;
  #address: string | null = null;

  /** @param secondHandle  see `ResponseWriter`, or null. The server has one only for chunked requests and during a drain */
  constructor(response: HttpResponse, head: RequestHead, owner: StreamOwner, secondHandle: HttpResponse | null = null) {
    this.#response = response;
    this.#writer = new ResponseWriter(response, this, secondHandle);
    this.#head = head;
    this.#owner = owner;
    this.#isLastRequest = head.bodyLength < 0 || head.fault !== null;
    response.onAborted(() => this.#onAborted());
    this.#body = head.bodyLength === 0 ? null : new CallerBody(response, this);
  }

  /** The addon is asked only when somebody reads this, because asking takes 0.5 µs. A call with a known key never reads it. */
  get address(): string | null {
    // Nobody read the address before the response ended, and now the addon can no longer tell it.
    if (this.#address === null && this.#writer.isFinished) return null;
    this.#address ??= addressOf(this.#response, this.#head.headers, this.#owner.trustedProxyHops);
    return this.#address;
  }

  get wasCut(): boolean {
    return this.#owner.closing;
  }

  attach(events: CallerEvents): void {
    this.#events = events;
    if (this.aborted) {
      events.onCallerGone();
      return;
    }
    this.#body?.attach(events);
    this.resumeBody();
  }

  /**
   * Does nothing once the response has begun: the addon's pause() also stops the socket's writable event, and a resume() after a
   * failed write does not bring it back. The body then arrives unpaused; the maximum size of request bodies bounds it.
   */
  pauseBody(): void {
    if (!this.#writer.isFinished && !this.#writer.hasBegun) this.#body?.pause();
  }

  resumeBody(): void {
    if (!this.#writer.isFinished) this.#body?.resume();
  }

  respond(status: number, headerLines: string, body: string | Uint8Array): void {
    this.resumeBody();
    if (this.accessEntry !== undefined) this.accessEntry.status = status;
    this.#writer.respond(status, headerLines, body, this.#head.method === 'HEAD');
  }

  /** Does nothing while part of the request has not arrived: the socket of a paused request cannot report that it is writable. */
  interim(status: number, headerLines: string, isAscii: boolean): void {
    if (!this.#awaitsBody()) this.#writer.interim(status, headerLines, isAscii);
  }

  begin(status: number, headerLines: string, isAscii: boolean, contentLength: number, hasBody: boolean): void {
    // pauseBody() says why the body must not stay paused from here on.
    this.resumeBody();
    if (this.accessEntry !== undefined) this.accessEntry.status = status;
    this.#writer.begin(status, headerLines, isAscii, contentLength, hasBody);
  }

  write(chunk: Uint8Array): boolean {
    return this.#writer.write(chunk);
  }

  end(): void {
    this.#writer.end();
  }

  abort(): void {
    this.#writer.abort();
  }

  /** CallerBody calls this. After respond() or end(), nobody wants the rest of the request. */
  onBodyBytes(): boolean {
    this.#hasReceived = true;
    return !this.#writer.isFinished && !this.#writer.isEnding;
  }

  // The interface for the response.

  mustClose(): boolean {
    return this.#isLastRequest || this.#owner.draining || this.#awaitsBody();
  }

  afterRest(then: () => void): void {
    afterRest(this.#body, this.#owner.maxRequestBodyBytes, then);
  }

  onWritable(): void {
    this.#events?.onCallerWritable();
  }

  onFinished(): void {
    this.#owner.onFinished(this);
  }

  /**
   * The server calls this every few seconds. It restarts the addon's timeout, so that the gateway and not the addon decides when
   * a caller is idle. The addon would cut a caller that takes nothing for 10 s, that sends less than 16 KB/s, or that waits
   * because the service does not read its upload.
   *
   * @param maxIdleTicks a caller that should send or take bytes, and has done neither for more ticks than this, is cut
   */
  tick(maxIdleTicks: number): void {
    if (this.#writer.isFinished || !(this.#writer.isStalled || this.#awaitsBody())) return;
    if (this.#body !== null && this.#isTooSlow(this.#body)) this.#events?.onCallerTooSlow?.();
    if (this.#writer.isFinished) return;
    if (this.#body?.isPaused) {
      // The caller waits for the service to read its upload. The timeouts of the upstream client bound this wait.
      renewTimeout(this.#response, true);
      return;
    }
    this.#idleTicks = this.#hasReceived || this.#writer.hasMoved ? 0 : this.#idleTicks + 1;
    this.#hasReceived = false;
    this.#writer.hasMoved = false;
    // close() makes the addon call onAborted, as if the caller had left.
    if (this.#idleTicks > maxIdleTicks) this.#response.close();
    else renewTimeout(this.#response, false);
  }

  #isTooSlow(body: CallerBody): boolean {
    const { isDone, isPaused, wasPaused, bytes } = body;
    if (isDone || this.#writer.isEnding) return false;
    body.wasPaused = isPaused;
    this.#pace ??= new UploadPace();
    return this.#pace.tick(bytes, wasPaused);
  }

  /** Whether part of the request has not arrived yet. */
  #awaitsBody(): boolean {
    return this.#body !== null && !this.#body.isDone;
  }

  #onAborted(): void {
    if (this.#writer.isFinished) return;
    this.aborted = true;
    this.#writer.onCallerGone();
    this.#events?.onCallerGone();
    this.onFinished();
  }
}
