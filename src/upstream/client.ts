import { AddressBook } from './address-book.ts';
import { AddressPolicy } from './address-policy.ts';
import { CoarseClock } from './coarse-clock.ts';
import type { Connection } from './connection.ts';
import type { ConnectorTools } from './connector.ts';
import type { Destination, DestinationPool } from './destination.ts';
import { assertRequest } from './head-writer.ts';
import { IdleList } from './idle-list.ts';
import { Pool, type PoolLimits, type PoolOwner } from './pool.ts';
import { Counts, Quota } from './shares.ts';
import { TlsSessions } from './tls-sessions.ts';
import type { UpstreamCall, UpstreamHandler, UpstreamOptions, UpstreamRequest, UpstreamStats } from './types.ts';

const DEFAULT_SWEEP_INTERVAL_MS = 250;
/**
 * Minimum of the default bound on idle connections over all pools; the default is larger when one pool may have more
 * connections than this. Beyond the bound, the connection that has been idle for longest is closed. If a busy pool could keep
 * fewer idle connections than it uses, each burst of calls would open again what the last burst closed: with 8 192 callers,
 * seven in eight got a new connection, which took a quarter of the gateway's time.
 */
const LEAST_MAX_IDLE_CONNECTIONS = 1024;

/**
 * An HTTP/1.1 client for any number of origins, over pooled connections. A process has one.
 *
 * It has no socket and no timer before the first call, and its timer does not keep the process alive.
 */
export class UpstreamClient implements PoolOwner {
  readonly tools: ConnectorTools;
  readonly limits: PoolLimits;
  isClosing = false;
  readonly #pools = new Map<string, Pool>();
  readonly #connections = new Set<Connection>();
  readonly #idle = new IdleList<Connection>();
  readonly #maxIdleConnections: number;
  readonly #maxConnections: number;
  readonly #quota: Quota;
  /** Quota of each account's connections, over all pools. */
  #taken = 0;
  /** Number of connections by account. Null while the process is not nearly full, and has not been since the last sweep. */
  #held: Counts | null = null;
  readonly #clock: CoarseClock;
  #timer: NodeJS.Timeout | null = null;
  #onLastClosed: (() => void) | null = null;
  #closed: Promise<void> | null = null;

  /** @throws RangeError when a bound is too small, or `allowCidrs` contains something that is not a range. */
  constructor(options: UpstreamOptions) {
    this.#clock = new CoarseClock(options.sweepIntervalMs ?? DEFAULT_SWEEP_INTERVAL_MS);
    this.#maxIdleConnections =
      options.maxIdleConnections ?? Math.max(LEAST_MAX_IDLE_CONNECTIONS, options.maxConnectionsPerOrigin);
    this.#maxConnections = options.maxConnections ?? Number.MAX_SAFE_INTEGER;
    this.#quota = new Quota(this.#maxConnections);
    this.limits = limitsOf(options);
    this.tools = {
      addressBook: new AddressBook(new AddressPolicy(options.allowCidrs), options.lookup),
      clock: this.#clock,
      sessions: new TlsSessions(),
      connectTimeoutMs: options.connectTimeoutMs,
      tlsCa: options.tlsCa,
    };
  }

  /**
   * Starts a call. The handler is not called back before this returns.
   * @throws AssertionError when the request breaks the contract of `UpstreamRequest`: a programming error.
   */
  dispatch(request: UpstreamRequest, handler: UpstreamHandler): UpstreamCall {
    assertRequest(request);
    return this.#poolOf(request.destination).start(request, handler);
  }

  #poolOf(destination: Destination): DestinationPool {
    if (destination.pool?.isInUse) return destination.pool;
    const pool = this.#pools.get(destination.poolKey) ?? new Pool(destination.poolKey, destination.origin, this);
    if (this.isClosing) return pool;
    this.#pools.set(destination.poolKey, pool);
    destination.pool = pool;
    return pool;
  }

  stats(): UpstreamStats {
    let connecting = 0;
    let active = 0;
    for (const { state } of this.#connections) {
      if (state === 'connecting') connecting++;
      else if (state === 'active') active++;
    }
    let waiting = 0;
    for (const pool of this.#pools.values()) waiting += pool.waiting;
    const { size: origins } = this.#pools;
    return { origins, open: this.#connections.size, connecting, idle: this.#idle.size, active, waiting };
  }

  /** Lets calls finish, also those that wait in a queue; new calls fail as 'busy'. Resolves when the last connection is closed. */
  close(): Promise<void> {
    this.#closed ??= new Promise((resolve) => {
      this.isClosing = true;
      while (this.#idle.oldest !== null) this.#idle.oldest.close();
      if (this.#connections.size === 0) resolve();
      else this.#onLastClosed = resolve;
    });
    return this.#closed;
  }

  // The methods below are for pools.

  makeRoom(): boolean {
    if (this.#connections.size >= this.#maxConnections) this.#idle.oldest?.close();
    return this.#connections.size < this.#maxConnections;
  }

  mayTake(account: string): boolean {
    const taken = this.#taken;
    return taken < this.#quota.nearlyFull || this.#counted().of(account) < this.#quota.limitWith(taken);
  }

  took(account: string): void {
    this.#taken++;
    this.#held?.add(account);
  }

  left(account: string): void {
    this.#taken--;
    this.#held?.subtract(account);
  }

  opened(connection: Connection): void {
    this.#connections.add(connection);
    this.#timer ??= setInterval(this.#sweep, this.#clock.intervalMs).unref();
  }

  closed(connection: Connection): void {
    this.#connections.delete(connection);
  }

  becameIdle(connection: Connection): void {
    this.#idle.add(connection);
    if (this.#idle.size > this.#maxIdleConnections) this.#idle.oldest?.close();
  }

  leftIdle(connection: Connection): void {
    this.#idle.remove(connection);
  }

  emptied(pool: Pool): void {
    // By now a later pool may use its key.
    if (this.#pools.get(pool.key) === pool) this.#pools.delete(pool.key);
    // A pool without connections may have waiting calls: the timer serves them, or ends their wait.
    if (this.#connections.size > 0 || this.#pools.size > 0) return;
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    this.#onLastClosed?.();
  }

  /** Checks all timeouts of connections and waiting calls in one pass, which takes 0.12 µs per connection. */
  readonly #sweep = (): void => {
    this.#clock.ticks++;
    for (const connection of this.#connections) connection.sweep();
    for (const pool of this.#pools.values()) pool.sweep();
    if (this.#taken < this.#quota.nearlyFull) this.#held = null;
  };

  #counted(): Counts {
    if (this.#held !== null) return this.#held;
    const held = new Counts();
    for (const { account } of this.#connections) if (account !== '') held.add(account);
    this.#held = held;
    return held;
  }
}

function limitsOf(options: UpstreamOptions): PoolLimits {
  const { maxConnectionsPerOrigin, maxWaitingPerOrigin, maxWaitMs, keepAliveMs, maxHeadBytes } = options;
  if (!(maxConnectionsPerOrigin >= 1)) throw new RangeError('maxConnectionsPerOrigin must be at least 1');
  if (!(maxHeadBytes >= 1024)) throw new RangeError('maxHeadBytes must be at least 1024');
  return {
    maxConnections: maxConnectionsPerOrigin,
    maxWaiting: maxWaitingPerOrigin,
    maxWaitMs,
    keepAliveMs,
    maxHeadBytes,
  };
}
