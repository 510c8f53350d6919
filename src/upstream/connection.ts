import type { Socket } from 'node:net';
import { assert } from '../assert.ts';
import type { Call, Carrier } from './call.ts';
import { Connector, type ConnectorOwner, type ConnectorTools, READ_BUFFER } from './connector.ts';
import type { Origin } from './endpoint.ts';
import { serialiseHead } from './head-writer.ts';
import type { Idle } from './idle-list.ts';
import type { ParsedHead } from './response-head.ts';
import { ResponseParser, type ResponseSink } from './response-parser.ts';
import type { Failure, UpstreamErrorCode } from './upstream-error.ts';

/**
 * An idle connection is closed this long before the upstream's `Keep-Alive: timeout`: the upstream may have started to count
 * before the gateway read the response.
 */
const KEEP_ALIVE_MARGIN_MS = 1000;

/** What a connection needs from its pool. */
export interface ConnectionPool {
  readonly origin: Origin;
  readonly keepAliveMs: number;
  connected(connection: Connection): void;
  connectFailed(connection: Connection, failure: Failure): void;
  /** The connection is free for another call. */
  release(connection: Connection): void;
  closed(connection: Connection): void;
  /** A stale connection has closed under `call`. The call gets a new connection, because an idle one may be just as stale. */
  replace(connection: Connection, call: Call): void;
}

/**
 * One connection to an upstream, and the call that it carries.
 *
 *   connecting ──onConnected──► idle ◄──────────────┐
 *       │                        │ attach           │ reusable
 *       │                        ▼                  │
 *       │                      active ──────────────┘
 *       ▼                        ▼
 *     closed ◄───────────────────┘
 *
 * It is reusable after a call if the response is complete, the request was sent whole, nothing arrived after the response, the
 * socket is still open both ways, the response allows keep-alive, and its idle limit is above 0 (an upstream's `Keep-Alive:
 * timeout=1` leaves 0). In every other case, and when an idle connection times out, ends or receives bytes, it is closed.
 *
 * Tested by test/upstream/reuse.test.ts, backpressure.test.ts and timeouts.test.ts.
 */
export class Connection implements Carrier, ConnectorOwner, ResponseSink, Idle<Connection> {
  state: 'connecting' | 'idle' | 'active' | 'closed' = 'connecting';
  reserved: Call | null = null;
  account = '';
  idleBefore: Connection | null = null;
  idleAfter: Connection | null = null;
  readonly #pool: ConnectionPool;
  readonly #tools: ConnectorTools;
  readonly #connector: Connector;
  readonly #parser: ResponseParser;
  #socket: Socket | null = null;
  #call: Call | null = null;
  #exchanges = 0;
  /** At least one octet of the current response has arrived. */
  #responseStarted = false;
  #keepAlive = false;
  #idleLimitMs = 0;
  /** When the upstream last made progress, or when the connection became idle. */
  #progressTicks = 0;
  /** Octets of the request that the kernel had taken at the last sweep. If the number has changed since, the upload is moving. */
  #sentBytes = 0;
  /** Octets that were read but not parsed because the call was paused; at most two reads' worth. */
  #unread: Buffer | null = null;
  #isReadStopped = false;
  /**
   * How the connection ended, if unread octets or a paused call must come first; handled after the resume. (A connection error
   * with nothing unread fails a paused call at once, unless its response is complete.)
   */
  #pendingEnd: Failure | null = null;

  constructor(pool: ConnectionPool, tools: ConnectorTools, maxHeadBytes: number) {
    this.#pool = pool;
    this.#tools = tools;
    this.#parser = new ResponseParser(this, maxHeadBytes);
    this.#connector = new Connector(pool.origin, tools, this);
  }

  start(): void {
    this.#connector.start();
  }

  get isRequestSent(): boolean {
    const call = this.#call;
    if (call === null || this.#socket === null || !call.requestStarted) return false;
    return (call.body === null || call.body.complete) && this.#socket.writableLength === 0;
  }

  attach(call: Call): void {
    assert(this.state === 'idle');
    const socket = this.#socket as Socket;
    this.state = 'active';
    this.#call = call;
    this.#exchanges++;
    this.#responseStarted = false;
    this.#progressTicks = this.#tools.clock.ticks;
    this.#sentBytes = 0;
    this.#parser.begin(call.request.method === 'HEAD', call.request.wantsTrailers);
    call.attached(this);
    if (call.isPaused) this.pause();
    const head = serialiseHead(call.request);
    if (call.body === null) {
      socket.write(head, 'latin1');
      // If the kernel refused the write at once, `errored` is set, and not one octet was sent.
      if (!socket.errored) call.started();
    } else {
      call.body.attach(socket, head);
      if (call.body.takeWritable()) call.deliverWritable();
    }
  }

  pause(): void {
    this.#parser.paused = true;
    this.#isReadStopped = true;
    (this.#socket as Socket).pause();
  }

  /** Unread octets are delivered in the next tick, so that `onData` never runs before `resume` has returned. */
  resume(): void {
    this.#parser.paused = false;
    process.nextTick(this.#afterResume);
  }

  abandon(): void {
    this.#detach();
    this.close();
  }

  close(): void {
    if (this.state === 'closed') return;
    this.#shut();
    this.#pool.closed(this);
  }

  /** Called at every sweep: checks the timeouts of this connection. */
  sweep(): void {
    if (this.state === 'connecting') this.#connector.sweep();
    else if (this.state === 'active') this.#sweepActive();
    else if (this.state === 'idle' && this.#tools.clock.elapsedMs(this.#progressTicks) >= this.#idleLimitMs)
      this.close();
  }

  // Callbacks of the connector.

  onConnected(socket: Socket): void {
    assert(this.state === 'connecting');
    this.#socket = socket;
    this.state = 'idle';
    socket.on('drain', this.#onDrain);
    socket.on('end', this.#onEnd);
    socket.on('error', this.#onError);
    socket.on('close', this.#onClose);
    this.#becomeIdle(this.#pool.keepAliveMs);
    this.#pool.connected(this);
  }

  onConnectFailed(failure: Failure): void {
    assert(this.state === 'connecting');
    this.state = 'closed';
    this.#pool.connectFailed(this, failure);
  }

  onRead(length: number): void {
    if (this.state === 'active') {
      if (this.#parser.paused || this.#unread !== null) this.#keepUnread(READ_BUFFER, 0, length);
      else this.#feed(READ_BUFFER, 0, length);
    } else if (this.state === 'idle') {
      // No request is open. These octets would be taken for the response to the next request.
      this.close();
    }
  }

  // Callbacks of the parser.

  onParsedInterim(head: ParsedHead): void {
    (this.#call as Call).deliverInterim(head);
  }

  onParsedHead(head: ParsedHead): void {
    const call = this.#call as Call;
    this.#keepAlive = head.keepAlive;
    this.#idleLimitMs = this.#pool.keepAliveMs;
    if (head.keepAliveSeconds >= 0) {
      this.#idleLimitMs = Math.min(this.#idleLimitMs, head.keepAliveSeconds * 1000 - KEEP_ALIVE_MARGIN_MS);
    }
    this.#progressTicks = this.#tools.clock.ticks;
    const isRefused = head.status >= 400 && !head.keepAlive && call.body !== null && !call.body.complete;
    // RFC 9112, section 9.5: an upstream that sends an error response and closes does not want the rest of the request.
    if (isRefused) call.body?.discard();
    call.deliverHead(head);
    if (isRefused && call.state === 'active' && call.body?.takeWritable()) call.deliverWritable();
  }

  onParsedBody(chunk: Buffer): void {
    (this.#call as Call).deliverData(chunk);
  }

  #feed(bytes: Buffer, start: number, end: number): void {
    const parser = this.#parser;
    this.#responseStarted = true;
    // Octets of the head do not count as progress: an upstream gains no time by sending its head drop by drop.
    if ((this.#call as Call).headReceived) this.#progressTicks = this.#tools.clock.ticks;
    const used = parser.execute(bytes, start, end);
    if (this.state !== 'active') return;
    if (parser.state === 'failed') {
      this.#fail('malformed_response', `malformed response: ${parser.malformed}`);
    } else if (parser.paused) {
      if (used < end) this.#keepUnread(bytes, used, end);
    } else if (parser.state === 'done') {
      this.#finish(used < end);
    }
  }

  #keepUnread(bytes: Buffer, start: number, end: number): void {
    const rest = bytes.subarray(start, end);
    this.#unread = this.#unread === null ? Buffer.from(rest) : Buffer.concat([this.#unread, rest]);
  }

  readonly #afterResume = (): void => {
    if (this.state !== 'active' || this.#parser.paused) return;
    const unread = this.#unread;
    if (unread !== null) {
      this.#unread = null;
      this.#feed(unread, 0, unread.length);
    } else if (this.#parser.state === 'done') {
      this.#finish(false);
    }
    // Both branches call the handler. It may have ended the call or paused it again, or another call has begun.
    if (this.state !== 'active' || this.#parser.paused) return;
    if (this.#pendingEnd !== null) this.#inputEnded(this.#pendingEnd);
    else this.#startReading();
  };

  #startReading(): void {
    if (!this.#isReadStopped) return;
    this.#isReadStopped = false;
    (this.#socket as Socket).resume();
  }

  #finish(hasSurplus: boolean): void {
    const isRequestSent = this.isRequestSent;
    // Another call may begin on this connection before this one is told.
    const { trailers } = this.#parser;
    const call = this.#detach();
    const socket = this.#socket as Socket;
    const isClean = isRequestSent && !hasSurplus && this.#pendingEnd === null && !socket.destroyed && socket.writable;
    if (isClean && this.#keepAlive && this.#idleLimitMs > 0) {
      this.#startReading();
      this.#becomeIdle(this.#idleLimitMs);
      this.#pool.release(this);
    } else {
      this.close();
    }
    call.complete(trailers);
  }

  #becomeIdle(limitMs: number): void {
    this.state = 'idle';
    this.#idleLimitMs = limitMs;
    this.#progressTicks = this.#tools.clock.ticks;
  }

  #detach(): Call {
    const call = this.#call as Call;
    call.detached(this.isRequestSent);
    this.#call = null;
    return call;
  }

  #shut(): void {
    if (this.state === 'connecting') this.#connector.cancel();
    this.state = 'closed';
    // If a handler ends the call from within `execute`, this makes `execute` return.
    this.#parser.paused = true;
    this.#unread = null;
    this.#socket?.destroy();
  }

  #fail(code: UpstreamErrorCode, message: string): void {
    const call = this.#detach();
    this.close();
    call.fail({ code, message });
  }

  /**
   * The connection broke. If it was stale (used before, and dead before the first octet of this response), the call goes on to
   * a new connection, unless repeating its request could make something happen twice (`mayRepeat`). A call is repeated at most
   * once, because a new connection is never stale.
   */
  #died(failure: Failure): void {
    const isStale = this.#exchanges > 1 && !this.#responseStarted;
    const call = this.#detach();
    if (isStale && mayRepeat(call)) {
      call.unsent();
      this.#shut();
      this.#pool.replace(this, call);
    } else {
      this.close();
      call.fail(failure);
    }
  }

  #inputEnded(failure: Failure): void {
    this.#parser.finish();
    if (this.#parser.state === 'done' && failure === CUT) {
      this.#finish(false);
    } else {
      this.#died(failure);
    }
  }

  #inputStops(failure: Failure): void {
    if (this.state === 'idle') this.close();
    if (this.state !== 'active' || this.#pendingEnd !== null) return;
    const isWaitingForResume =
      this.#unread !== null || (this.#parser.paused && (failure === CUT || this.#parser.state === 'done'));
    if (isWaitingForResume) this.#pendingEnd = failure;
    else this.#inputEnded(failure);
  }

  readonly #onEnd = (): void => this.#inputStops(CUT);
  readonly #onClose = (): void => this.#inputStops(CUT);
  readonly #onError = (cause: Error): void => {
    this.#inputStops({ code: 'reset', message: `connection lost: ${cause.message}`, cause });
  };

  readonly #onDrain = (): void => {
    if (this.state !== 'active') return;
    const call = this.#call as Call;
    if (call.body?.drained()) call.deliverWritable();
  };

  /**
   * Fails the call when the upstream has been silent for too long. The time starts again from zero at each sweep that finds
   * that the upload has moved, that the call is paused, or that the upload waits for the caller.
   */
  #sweepActive(): void {
    const { clock } = this.#tools;
    const call = this.#call as Call;
    const sentBytes = (call.body?.givenBytes ?? 0) - (this.#socket as Socket).writableLength;
    const isMoving = sentBytes !== this.#sentBytes;
    this.#sentBytes = sentBytes;
    if (isMoving || call.isPaused || call.body?.awaitsCaller) {
      this.#progressTicks = clock.ticks;
      return;
    }
    const { headTimeoutMs, idleBodyTimeoutMs } = call.request;
    const limitMs = call.headReceived ? idleBodyTimeoutMs : headTimeoutMs;
    if (clock.elapsedMs(this.#progressTicks) < limitMs) return;
    if (call.headReceived) this.#fail('body_timeout', `no response data for ${limitMs} ms`);
    else this.#fail('head_timeout', `no response within ${limitMs} ms`);
  }
}

const CUT: Failure = { code: 'reset', message: 'connection closed before the response was complete' };

function mayRepeat(call: Call): boolean {
  if (!call.requestStarted) return true;
  const { method } = call.request;
  return call.body === null && (method === 'GET' || method === 'HEAD' || method === 'PUT' || method === 'DELETE');
}
