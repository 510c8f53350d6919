import type { Call } from './call.ts';
import { Connection } from './connection.ts';
import type { ConnectorTools } from './connector.ts';
import type { Origin } from './endpoint.ts';
import type { Failure } from './upstream-error.ts';

export type PoolLimits = {
  readonly maxConnections: number;
  readonly maxWaiting: number;
  readonly maxWaitMs: number;
  readonly keepAliveMs: number;
  readonly maxHeadBytes: number;
};

/** What a pool tells its client, which keeps track of all pools together. */
export interface PoolOwner {
  readonly tools: ConnectorTools;
  readonly limits: PoolLimits;
  readonly isClosing: boolean;
  opened(connection: Connection): void;
  closed(connection: Connection): void;
  becameIdle(connection: Connection): void;
  leftIdle(connection: Connection): void;
  /** The pool has no connection and no waiting call left. */
  emptied(pool: Pool): void;
}

/**
 * The connections of all destinations with one `poolKey`: those of a listing to its origin, or all connections to an origin.
 *
 * A call takes the idle connection that was used last, so that the others stay unused and close. If none is idle, the call gets a
 * new connection made for it; if that cannot be made, only this call fails. When the pool has as many connections as it may, the
 * call waits in line until one is released. There are never idle connections and waiting calls at the same time.
 */
export class Pool {
  readonly key: string;
  readonly origin: Origin;
  readonly #owner: PoolOwner;
  readonly #idle: Connection[] = [];
  readonly #waiting: Call[] = [];
  #open = 0;

  constructor(key: string, origin: Origin, owner: PoolOwner) {
    this.key = key;
    this.origin = origin;
    this.#owner = owner;
  }

  /** Whether the pool has connections. If not, the client has forgotten it. */
  get isOpen(): boolean {
    return this.#open > 0;
  }

  get keepAliveMs(): number {
    return this.#owner.limits.keepAliveMs;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Whether all connections that the pool may have are taken, and its line is full. */
  get isFull(): boolean {
    const { maxConnections, maxWaiting } = this.#owner.limits;
    // The check for idle connections matters when `maxWaiting` is 0: the line then counts as full even while connections are idle.
    return this.#open >= maxConnections && this.#idle.length === 0 && this.#waiting.length >= maxWaiting;
  }

  dispatch(call: Call): void {
    const { maxConnections, maxWaiting } = this.#owner.limits;
    const idle = this.#idle.pop();
    if (idle !== undefined) {
      this.#owner.leftIdle(idle);
      idle.attach(call);
    } else if (this.#open < maxConnections) {
      this.#openFor(call);
    } else if (this.#waiting.length < maxWaiting) {
      call.waitingSinceTicks = this.#owner.tools.clock.ticks;
      this.#waiting.push(call);
    } else {
      // Fails in the next tick: the code that called `dispatch` does not have the call object yet.
      process.nextTick(failBusy, call, 'too many calls are waiting for a connection');
    }
  }

  /** The call was given up while it waited in line, or while its connection was being made. */
  cancel(call: Call): void {
    if (call.reserved !== null) {
      // The connection is still being made. Another call will use it.
      call.reserved.reserved = null;
      call.reserved = null;
      return;
    }
    const at = this.#waiting.indexOf(call);
    if (at >= 0) this.#waiting.splice(at, 1);
  }

  sweep(): void {
    const { tools, limits } = this.#owner;
    for (;;) {
      const first = this.#waiting[0];
      if (first === undefined || tools.clock.elapsedMs(first.waitingSinceTicks) < limits.maxWaitMs) return;
      this.#waiting.shift();
      failBusy(first, `no connection became free within ${limits.maxWaitMs} ms`);
    }
  }

  // The methods below are for connections.

  connected(connection: Connection): void {
    const call = connection.reserved;
    connection.reserved = null;
    if (call !== null) connection.attach(call);
    else this.release(connection);
  }

  connectFailed(connection: Connection, failure: Failure): void {
    const call = connection.reserved;
    this.closed(connection);
    call?.fail(failure);
  }

  /** The connection is free for another call. */
  release(connection: Connection): void {
    const next = this.#waiting.shift();
    if (next !== undefined) {
      connection.attach(next);
    } else if (this.#owner.isClosing) {
      connection.close();
    } else {
      this.#idle.push(connection);
      this.#owner.becameIdle(connection);
    }
  }

  closed(connection: Connection): void {
    this.#forget(connection);
    const next = this.#open < this.#owner.limits.maxConnections ? this.#waiting.shift() : undefined;
    if (next !== undefined) this.#openFor(next);
    if (this.#open === 0) this.#owner.emptied(this);
  }

  /** A stale connection has closed under `call`. The call gets a new connection, because an idle one may be just as stale. */
  replace(connection: Connection, call: Call): void {
    this.#forget(connection);
    this.#openFor(call);
  }

  #openFor(call: Call): void {
    const connection = new Connection(this, this.#owner.tools, this.#owner.limits.maxHeadBytes);
    this.#open++;
    connection.reserved = call;
    call.reserved = connection;
    this.#owner.opened(connection);
    connection.start();
  }

  #forget(connection: Connection): void {
    this.#open--;
    this.#owner.closed(connection);
    const at = this.#idle.indexOf(connection);
    if (at < 0) return;
    this.#idle.splice(at, 1);
    this.#owner.leftIdle(connection);
  }
}

function failBusy(call: Call, message: string): void {
  if (call.state === 'waiting') call.fail({ code: 'busy', message });
}
