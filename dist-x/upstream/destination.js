/** Where requests go, and which pool's connections they use. Made once for many requests. */
export class Destination {
    origin;
    /**
     * Destinations with the same key share a pool and its bound on connections. A pool has one origin, so the key must include it.
     */
    poolKey;
    /** Set by the client: the pool that it found last, valid while that pool has connections. Finding it by key took 0.1 µs. */
    pool = null;
    /** @param poolKey by default the origin's key: all destinations without a key of their own share the origin's pool */
    constructor(origin, poolKey = origin.key) {
        this.origin = origin;
        this.poolKey = poolKey;
    }
    /** Whether a new request of this account would fail as 'busy' at once. */
    isFullFor(account) {
        return this.pool?.isFullFor(account) ?? false;
    }
}
//# sourceMappingURL=destination.js.map