import { FairLine } from '../fair-line.ts';
import { Call, type CallPool, type Carrier } from './call.ts';
import { Connection, type ConnectionPool } from './connection.ts';
import type { ConnectorTools } from './connector.ts';
import type { DestinationPool } from './destination.ts';
import type { Origin } from './endpoint.ts';
import { Quota, shareOf } from './shares.ts';
import type { UpstreamHandler, UpstreamRequest } from './types.ts';
import type { Failure } from './upstream-error.ts';

export type PoolLimits = {
  readonly maxConnections: number;
  readonly maxWaiting: number;
  readonly maxWaitMs: number;
  readonly keepAliveMs: number;
  readonly maxHeadBytes: number;
};

/** The client, seen from a pool. It keeps track of all pools together. */
export interface PoolOwner {
  readonly tools: ConnectorTools;
  readonly limits: PoolLimits;
  readonly isClosing: boolean;
  /** Whether the process may have one more connection. Closes an idle one if necessary. */
  makeRoom(): boolean;
  /** Whether the account may have one more of the process's connections, new or idle. */
  mayTake(account: string): boolean;
  /** The account has one connection more, or one less. */
  took(account: string): void;
  left(account: string): void;
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
 * new connection made for it; if that cannot be made, only this call fails.
 *
 *   three quarters of the connections    first come, first served
 *   the last quarter                     accounts that have less than a quarter of all, and less than three times what is free
 *   then, and for all others             a line, in which accounts take turns
 *
 * So one account cannot lock the others out, whether its calls are slow uploads, silent streams or free of charge. An account keeps
 * the connections that it has when others come: a call that was begun is not cut. So a quarter must be kept free in advance; of the
 * connections that are then free, the second account leaves a quarter to the third, and so on (dynamic thresholds: Choudhury and
 * Hahne, 1998). Until three quarters are taken, all of this costs a call one comparison of integers. The connections of the process
 * are shared by the same rule: otherwise one account could take them all with calls of many listings.
 */
export class Pool implements CallPool, ConnectionPool, DestinationPool {
  readonly key: string;
  readonly origin: Origin;
  readonly #owner: PoolOwner;
  readonly #connections = new Set<Connection>();
  readonly #idle: Connection[] = [];
  readonly #quota: Quota;
  /**
   * Which account has how many connections, and which calls wait for one. Null while the pool is not nearly full, and has not been
   * since the last sweep: counting takes about 0.1 µs per call, which all other calls are spared.
   */
  #line: FairLine<Call> | null = null;

  constructor(key: string, origin: Origin, owner: PoolOwner) {
    this.key = key;
    this.origin = origin;
    this.#owner = owner;
    this.#quota = new Quota(owner.limits.maxConnections);
  }

  get isInUse(): boolean {
    return this.#connections.size > 0 || this.waiting > 0;
  }

  get keepAliveMs(): number {
    return this.#owner.limits.keepAliveMs;
  }

  get waiting(): number {
    return this.#line?.size ?? 0;
  }

  isFullFor(account: string): boolean {
    return !this.#mayTake(account) && !this.#mayWait(account);
  }

  start(request: UpstreamRequest, handler: UpstreamHandler): Call {
    const call = new Call(request, handler, this);
    if (this.#owner.isClosing) process.nextTick(failBusy, call, 'the gateway is shutting down');
    else this.#dispatch(call);
    return call;
  }

  #dispatch(call: Call): void {
    const { account } = call.request;
    if (this.#mayTake(account) && this.#hasConnection()) {
      this.#give(call);
    } else if (this.#mayWait(account)) {
      call.waitingSinceTicks = this.#owner.tools.clock.ticks;
      this.#counted().wait(account, call);
    } else {
      // Fails in the next tick: the code that called `start` does not have the call object yet.
      process.nextTick(failBusy, call, 'too many calls are waiting for a connection');
      this.#checkEmpty();
    }
  }

  cancel(call: Call): void {
    const { reserved } = call;
    if (reserved === null) {
      if (this.#line?.remove(call.request.account, call)) this.#checkEmpty();
      return;
    }
    // The connection is still being made. Another call will use it.
    reserved.reserved = null;
    call.reserved = null;
    this.#leave(reserved);
    this.#serve();
  }

  sweep(): void {
    const line = this.#line;
    if (line === null) return;
    const { tools, limits } = this.#owner;
    for (;;) {
      const { oldest } = line;
      if (oldest === undefined || tools.clock.elapsedMs(oldest.waitingSinceTicks) < limits.maxWaitMs) break;
      line.remove(oldest.request.account, oldest);
      failBusy(oldest, `no connection became free within ${limits.maxWaitMs} ms`);
    }
    // Another pool may have closed a connection, so that the process may have one more.
    this.#serve();
    if (line.size === 0 && this.#taken < this.#quota.nearlyFull) this.#line = null;
    this.#checkEmpty();
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

  release(connection: Connection): void {
    this.#leave(connection);
    // This connection is not among the idle ones yet, so it still counts as taken.
    const line = this.#line;
    const next = line?.next(this.#quota.limitWith(this.#taken - 1), this.#mayTakeOfProcess);
    if (next !== undefined) {
      line?.served(next.request.account, next);
      this.#take(connection, next);
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
    this.#serve();
    this.#checkEmpty();
  }

  replace(connection: Connection, call: Call): void {
    this.#forget(connection);
    this.#openFor(call);
  }

  /** Connections that are not idle: they carry a call, or are being made. */
  get #taken(): number {
    return this.#connections.size - this.#idle.length;
  }

  /** Whether the account may have one more connection of the pool and of the process. */
  #mayTake(account: string): boolean {
    const taken = this.#taken;
    const ofPool = taken < this.#quota.nearlyFull || this.#counted().takenBy(account) < this.#quota.limitWith(taken);
    return ofPool && this.#owner.mayTake(account);
  }

  readonly #mayTakeOfProcess = (account: string): boolean => this.#owner.mayTake(account);

  /** Whether the account may wait in line. Only the pool's own connections are waited for, so it must have one. */
  #mayWait(account: string): boolean {
    return this.#connections.size > 0 && this.#counted().hasRoomFor(account);
  }

  #counted(): FairLine<Call> {
    if (this.#line !== null) return this.#line;
    const { maxWaiting } = this.#owner.limits;
    const line = new FairLine<Call>(maxWaiting, shareOf(maxWaiting));
    for (const { account } of this.#connections) if (account !== '') line.took(account);
    this.#line = line;
    return line;
  }

  /** Gives connections to calls in line, as long as there are connections that they may have. */
  #serve(): void {
    const line = this.#line;
    while (line !== null && line.size > 0 && this.#taken < this.#owner.limits.maxConnections) {
      const next = line.next(this.#quota.limitWith(this.#taken), this.#mayTakeOfProcess);
      // Asked last, because it may close an idle connection of another pool.
      if (next === undefined || !this.#hasConnection()) return;
      line.served(next.request.account, next);
      this.#give(next);
    }
  }

  /** Whether there is an idle connection, or the process may have one more. */
  #hasConnection(): boolean {
    return this.#idle.length > 0 || this.#owner.makeRoom();
  }

  /** Gives the call an idle connection, or has one made. */
  #give(call: Call): void {
    const idle = this.#idle.pop();
    if (idle === undefined) {
      this.#openFor(call);
      return;
    }
    this.#owner.leftIdle(idle);
    this.#take(idle, call);
    idle.attach(call);
  }

  #openFor(call: Call): void {
    const connection = new Connection(this, this.#owner.tools, this.#owner.limits.maxHeadBytes);
    this.#connections.add(connection);
    this.#take(connection, call);
    connection.reserved = call;
    call.reserved = connection;
    this.#owner.opened(connection);
    connection.start();
  }

  #take(connection: Connection, call: Call): void {
    const { account } = call.request;
    connection.account = account;
    this.#line?.took(account);
    this.#owner.took(account);
  }

  #leave(connection: Carrier): void {
    const { account } = connection;
    if (account === '') return;
    this.#line?.left(account);
    this.#owner.left(account);
    connection.account = '';
  }

  #forget(connection: Connection): void {
    this.#connections.delete(connection);
    this.#leave(connection);
    this.#owner.closed(connection);
    const at = this.#idle.indexOf(connection);
    if (at < 0) return;
    this.#idle.splice(at, 1);
    this.#owner.leftIdle(connection);
  }

  #checkEmpty(): void {
    if (!this.isInUse) this.#owner.emptied(this);
  }
}

function failBusy(call: Call, message: string): void {
  if (call.state === 'waiting') call.fail({ code: 'busy', message });
}
