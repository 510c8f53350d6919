import { performance } from 'node:perf_hooks';
/** Says when the gateway's leases have to be renewed. */
export class LeaseClock {
    #everyMs;
    #monotonic = Number.NEGATIVE_INFINITY;
    #wall = Number.NEGATIVE_INFINITY;
    constructor(everyMs) {
        this.#everyMs = everyMs;
    }
    /** Whether the leases have to be renewed now. After it has returned true, they count as renewed. */
    renew() {
        const monotonic = performance.now();
        const wall = Date.now();
        // Renew when either clock says so: the monotonic clock stands still while the host is suspended, and the wall clock may be
        // set back.
        if (monotonic - this.#monotonic < this.#everyMs && wall - this.#wall < this.#everyMs)
            return false;
        this.#monotonic = monotonic;
        this.#wall = wall;
        return true;
    }
    /** Makes the next `renew` return true. */
    expire() {
        this.#monotonic = Number.NEGATIVE_INFINITY;
    }
}
//# sourceMappingURL=lease-clock.js.map