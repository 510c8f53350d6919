import type { Origin } from './endpoint.ts';
import type { Pool } from './pool.ts';

/** Where requests go, and over whose connections. Made once for many requests. */
export class Destination {
  readonly origin: Origin;
  /** Routes with the same one share their connections and the bound on them; so it has to name the origin, too. */
  readonly poolKey: string;
  /** For the client: the pool it found last, as long as that has connections. Looking it up took 0.1 µs a call. */
  pool: Pool | null = null;

  /** @param poolKey without it: all destinations to the origin that have none */
  constructor(origin: Origin, poolKey: string = origin.key) {
    this.origin = origin;
    this.poolKey = poolKey;
  }

  /** Whether a request would be 'busy' at once now. */
  get isFull(): boolean {
    return this.pool?.isFull ?? false;
  }
}
