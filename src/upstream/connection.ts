import type { Socket } from 'node:net';
import { assert } from '../assert.ts';
import type { Call } from './call.ts';
import { Connector, type ConnectorOwner, type ConnectorTools, READ_BUFFER } from './connector.ts';
import { serialiseHead } from './head-writer.ts';
import type { Idle } from './idle-list.ts';
import type { Pool } from './pool.ts';
import type { ParsedHead } from './response-head.ts';
import { ResponseParser, type ResponseSink } from './response-parser.ts';
import type { Failure, UpstreamErrorCode } from './upstream-error.ts';

/** Kept back from an upstream's `Keep-Alive: timeout`: it may count from before our last byte arrived. */
const KEEP_ALIVE_MARGIN_MS = 1000;

/**
 * One connection and the exchange that is on it.
 *
 *   connecting ──onConnected──► idle ◄──────────────┐
 *       │                        │ attach           │ response complete, request sent, both sides willing, nothing to spare
 *       │                        ▼                  │
 *       │                      active ──────────────┘
 *       ▼                        ▼
 *     closed ◄───────────────────┘ (anything else; also from idle)
 */
export class Connection implements ConnectorOwner, ResponseSink, Idle<Connection> {
  state: 'connecting' | 'idle' | 'active' | 'closed' = 'connecting';
  /** The call this connection is being made for. */
  reserved: Call | null = null;
  idleBefore: Connection | null = null;
  idleAfter: Connection | null = null;
  readonly #pool: Pool;
  readonly #tools: ConnectorTools;
  readonly #connector: Connector;
  readonly #parser: ResponseParser;
  #socket: Socket | null = null;
  #call: Call | null = null;
  #exchanges = 0;
  /** An octet of the present response has arrived. */
  #responseStarted = false;
  #keepAlive = false;
  #idleLimitMs = 0;
  /** Last progress by the upstream, or the time of becoming idle. */
  #progressTicks = 0;
  /** What had left for the kernel at the last sweep: another number now means that the upload moves. */
  #sentBytes = 0;
  /** Read but not parsed, because the call was paused. At most a read or two. */
  #unread: Buffer | null = null;
  #isReadStopped = false;
  /** The end of the input, when it came behind unread bytes or a pause. */
  #pendingEnd: Failure | null = null;

  constructor(pool: Pool, tools: ConnectorTools, maxHeadBytes: number) {
    this.#pool = pool;
    this.#tools = tools;
    this.#parser = new ResponseParser(this, maxHeadBytes);
    this.#connector = new Connector(pool.origin, tools, this);
  }

  start(): void {
    this.#connector.start();
  }

  /** The present request has left for the kernel, body included. */
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
    this.#parser.begin(call.request.method === 'HEAD');
    call.attached(this);
    if (call.isPaused) this.pause();
    const head = serialiseHead(call.request);
    if (call.body === null) {
      socket.write(head, 'latin1');
      // Set when the kernel refused at once: not one octet left.
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

  /** What is unread is delivered in the next tick: a caller of `resume` does not expect `onData` within it. */
  resume(): void {
    this.#parser.paused = false;
    process.nextTick(this.#afterResume);
  }

  /** The caller gave up. */
  abandon(): void {
    this.#detach();
    this.close();
  }

  close(): void {
    if (this.state === 'closed') return;
    this.#shut();
    this.#pool.closed(this);
  }

  /** Called at every sweep. */
  sweep(): void {
    if (this.state === 'connecting') this.#connector.sweep();
    else if (this.state === 'active') this.#sweepActive();
    else if (this.state === 'idle' && this.#tools.clock.elapsedMs(this.#progressTicks) >= this.#idleLimitMs)
      this.close();
  }

  // The connector's owner

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
      // Nobody asked: an answer to this would be taken for the next request's.
      this.close();
    }
  }

  // The parser's sink

  onParsedHead(head: ParsedHead): void {
    const call = this.#call as Call;
    this.#keepAlive = head.keepAlive;
    this.#idleLimitMs = this.#pool.keepAliveMs;
    if (head.keepAliveSeconds >= 0) {
      this.#idleLimitMs = Math.min(this.#idleLimitMs, head.keepAliveSeconds * 1000 - KEEP_ALIVE_MARGIN_MS);
    }
    this.#progressTicks = this.#tools.clock.ticks;
    const isRefused = head.status >= 400 && !head.keepAlive && call.body !== null && !call.body.complete;
    // RFC 9112, section 9.6: an error that ends the connection means the rest of the request is not wanted.
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
    // An upstream that drips its head does not earn more time by it.
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
    // Either may have ended the exchange, begun another one, or paused again.
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
    call.complete();
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
    // Makes `execute` return when a handler has ended the exchange from within it.
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
   * The connection broke. A stale one is replaced when nothing can happen twice by it; and only once, because what takes its
   * place is new, and a new connection is never stale.
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

  /** Silence counts only while it is the upstream's turn to do something. */
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
