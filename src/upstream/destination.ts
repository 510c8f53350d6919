import type { Origin } from './endpoint.ts';
import type { UpstreamCall, UpstreamHandler, UpstreamRequest } from './types.ts';

/** The pool of a destination, as the client and the destination see it. */
export interface DestinationPool {
  /** Whether the pool has connections or waiting calls. If not, the client has forgotten it. */
  readonly isInUse: boolean;
  /** Whether the account can get no connection now, and may not wait for one. */
  isFullFor(account: string): boolean;
  start(request: UpstreamRequest, handler: UpstreamHandler): UpstreamCall;
}

/** Where requests go, and which pool's connections they use. Made once for many requests. */
export class Destination {
  readonly origin: Origin;
  /**
   * Destinations with the same key share a pool and its bound on connections. A pool has one origin, so the key must include it.
   */
  readonly poolKey: string;
  /** Set by the client: the pool that it found last, valid while that pool has connections. Finding it by key took 0.1 µs. */
  pool: DestinationPool | null = null;

  /** @param poolKey by default the origin's key: all destinations without their own key share the origin's pool */
  constructor(origin: Origin, poolKey: string = origin.key) {
    this.origin = origin;
    this.poolKey = poolKey;
  }

  /** Whether a new request of this account would fail as 'busy' at once. */
  isFullFor(account: string): boolean {
    return this.pool?.isFullFor(account) ?? false;
  }
}
