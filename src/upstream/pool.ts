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

/** What a pool tells the client, which counts over all pools. */
export interface PoolOwner {
  readonly tools: ConnectorTools;
  readonly limits: PoolLimits;
  readonly isClosing: boolean;
  opened(connection: Connection): void;
  closed(connection: Connection): void;
  becameIdle(connection: Connection): void;
  leftIdle(connection: Connection): void;
  /** No connection and no waiting call is left. */
  emptied(pool: Pool): void;
}

/**
 * The connections to one origin, or of one listing to it.
 *
 * A call takes the idle connection that was used last, so that the others can grow old and close. Without one it gets a new
 * connection of its own, up to the bound: what goes wrong with that is this call's failure and nobody else's. At the bound it
 * waits in line for a released one. Idle connections and waiting calls never exist together.
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

  /** It has connections, and so the client knows it. */
  get isOpen(): boolean {
    return this.#open > 0;
  }

  get keepAliveMs(): number {
    return this.#owner.limits.keepAliveMs;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** All its connections are taken, and so is every place in its line. */
  get isFull(): boolean {
    const { maxConnections, maxWaiting } = this.#owner.limits;
    // Without a line it is never shorter than it may be, whether connections are free or not.
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
      // Not from within `dispatch`: its caller does not hold the call yet.
      process.nextTick(failBusy, call, 'too many calls are waiting for a connection');
    }
  }

  /** The call was given up while it waited. */
  cancel(call: Call): void {
    if (call.reserved !== null) {
      // Goes on connecting, for whoever comes next.
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

  // What follows is for connections.

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

  /** A stale connection has closed under `call`: a new one takes its place, not one that may be just as stale. */
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
