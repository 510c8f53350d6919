import { assert } from '../assert.ts';
import { RequestBody } from './request-body.ts';
import type { ParsedHead } from './response-head.ts';
import type { UpstreamCall, UpstreamHandler, UpstreamRequest } from './types.ts';
import { type Failure, surface, UpstreamError } from './upstream-error.ts';

/** A connection, seen from the call that waits for it or uses it. */
export interface Carrier {
  /** The call for which this connection is being made; null if the call was abandoned. */
  reserved: Call | null;
  /** The account of the call that has this connection, kept by the pool; empty if there is none. */
  account: string;
  /** Whether the kernel has taken the whole current request, body included. */
  readonly isRequestSent: boolean;
  pause(): void;
  resume(): void;
  /** The call was abandoned. Closes the connection, because the rest of the response may still come. */
  abandon(): void;
}

/** What a call needs from its pool. */
export interface CallPool {
  /** The call was abandoned while it waited in line, or while its connection was being made. */
  cancel(call: Call): void;
}

/**
 * One request with its response, independent of the connection that carries it: if a reused connection turns out to be dead, the
 * call goes on to a new one.
 *
 *   waiting ──attached──► active ──complete / fail / destroy──► over
 *      ▲ ╲                  │                                    ▲
 *      │  ╲─────────fail / destroy───────────────────────────────┘
 *      └───detached─────────┘ (then complete, fail or destroy; or attached once more)
 *
 * Tested by test/upstream/client.test.ts, reuse.test.ts and pool.test.ts.
 */
export class Call implements UpstreamCall {
  readonly request: UpstreamRequest;
  readonly body: RequestBody | null;
  state: 'waiting' | 'active' | 'over' = 'waiting';
  isPaused = false;
  headReceived = false;
  /** When the call joined its pool's queue. */
  waitingSinceTicks = 0;
  /** The connection that the pool is making for this call; null when there is none. */
  reserved: Carrier | null = null;
  readonly #pool: CallPool;
  #handler: UpstreamHandler;
  #connection: Carrier | null = null;
  /** Whether a request without a body was given to a socket. For a request with a body, see `RequestBody.started`. */
  #started = false;
  #sent = false;

  constructor(request: UpstreamRequest, handler: UpstreamHandler, pool: CallPool) {
    this.request = request;
    this.body = request.bodyLength === 0 ? null : new RequestBody(request.bodyLength);
    this.#pool = pool;
    this.#handler = handler;
  }

  get requestStarted(): boolean {
    return this.#started || (this.body?.started ?? false);
  }

  get requestSent(): boolean {
    return this.#connection === null ? this.#sent : this.#connection.isRequestSent;
  }

  write(chunk: Uint8Array): boolean {
    if (this.state === 'over') return true;
    assert(this.body !== null, 'a body for a request without one');
    return this.body.write(chunk);
  }

  end(): void {
    if (this.state === 'over') return;
    this.body?.end();
  }

  pause(): void {
    if (this.state === 'over' || this.isPaused) return;
    this.isPaused = true;
    this.#connection?.pause();
  }

  resume(): void {
    if (this.state === 'over' || !this.isPaused) return;
    this.isPaused = false;
    this.#connection?.resume();
  }

  destroy(): void {
    if (this.state === 'over') return;
    if (this.state === 'waiting') {
      this.state = 'over';
      this.#pool.cancel(this);
      return;
    }
    assert(this.#connection !== null);
    this.#connection.abandon();
    this.state = 'over';
  }

  handTo(handler: UpstreamHandler): void {
    this.#handler = handler;
  }

  // The methods below are for the pool and the connection.

  attached(connection: Carrier): void {
    assert(this.state === 'waiting');
    this.state = 'active';
    this.#connection = connection;
    this.reserved = null;
  }

  started(): void {
    this.#started = true;
  }

  /** The connection no longer carries the call. `complete`, `fail`, another `attached`, or the end of `destroy` follows. */
  detached(isRequestSent: boolean): void {
    assert(this.state === 'active');
    this.state = 'waiting';
    this.#sent = isRequestSent;
    this.#connection = null;
    this.body?.detach();
  }

  /** The request will be sent again: what was sent on the dead connection no longer counts as sent. */
  unsent(): void {
    this.#sent = false;
  }

  deliverInterim(head: ParsedHead): void {
    try {
      this.#handler.onInterim?.(head);
    } catch (error) {
      this.#crashed(error);
    }
  }

  deliverHead(head: ParsedHead): void {
    assert(this.state === 'active' && !this.headReceived);
    this.headReceived = true;
    try {
      this.#handler.onHead(head);
    } catch (error) {
      this.#crashed(error);
    }
  }

  deliverData(chunk: Buffer): void {
    try {
      this.#handler.onData(chunk);
    } catch (error) {
      this.#crashed(error);
    }
  }

  deliverWritable(): void {
    try {
      this.#handler.onWritable();
    } catch (error) {
      this.#crashed(error);
    }
  }

  complete(trailers: readonly string[]): void {
    assert(this.state === 'waiting' && this.headReceived);
    this.state = 'over';
    try {
      this.#handler.onEnd(trailers);
    } catch (error) {
      surface(error);
    }
  }

  fail(failure: Failure): void {
    assert(this.state === 'waiting');
    this.state = 'over';
    try {
      this.#handler.onError(new UpstreamError(failure, this.headReceived, this.requestStarted));
    } catch (error) {
      surface(error);
    }
  }

  #crashed(error: unknown): void {
    surface(error);
    this.destroy();
  }
}
