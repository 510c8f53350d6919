import { Breaker, TICK_MS } from './breaker.js';
/**
 * Maximum number of breakers kept here. Beyond it, the breaker made first is dropped: `open` no longer counts it. Its service
 * keeps using it (`Offers` has it) until its listing changes, and then gets a new, closed one.
 */
const MAX_SERVICES = 10_000;
/**
 * The breakers of all services, in this process's memory. Each process judges a service by its own calls only.
 *
 * There is one breaker per service, not per origin. Services of several providers can share an origin, and a provider who lists
 * another provider's host must not be able to have calls to that other provider refused.
 */
export class Breakers {
    #byService = new Map();
    #ticks = { now: 0 };
    #maxServices;
    #timer = null;
    constructor({ maxServices = MAX_SERVICES } = {}) {
        this.#maxServices = maxServices;
    }
    start() {
        this.#timer ??= setInterval(() => this.tick(), TICK_MS);
        this.#timer.unref();
    }
    stop() {
        if (this.#timer !== null)
            clearInterval(this.#timer);
        this.#timer = null;
    }
    /** Advances the clock by one tick. However long the process was blocked counts as one tick, so no service is blamed for it. */
    tick() {
        this.#ticks.now++;
    }
    /** The breaker of a service. It stays the same when the listing changes, but a new endpoint gets a new breaker. */
    of(serviceId, endpoint) {
        const known = this.#byService.get(serviceId);
        if (known?.endpoint === endpoint)
            return known.breaker;
        const breaker = new Breaker(this.#ticks);
        this.#byService.delete(serviceId);
        this.#byService.set(serviceId, { endpoint, breaker });
        if (this.#byService.size > this.#maxServices) {
            const [oldest] = this.#byService.keys();
            this.#byService.delete(oldest);
        }
        return breaker;
    }
    /** How many services have their calls refused now, and were called within the last 30 s. */
    get open() {
        let open = 0;
        for (const { breaker } of this.#byService.values())
            if (breaker.isInTheWay)
                open++;
        return open;
    }
    get size() {
        return this.#byService.size;
    }
}
//# sourceMappingURL=breakers.js.map