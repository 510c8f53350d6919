import { Breaker, TICK_MS } from './breaker.ts';

/**
 * Maximum number of breakers kept here. Beyond it, the breaker made first is dropped: `open` no longer counts it. Its service
 * keeps using it (`Offers` has it) until its listing changes, and then gets a new, closed one.
 */
const MAX_SERVICES = 10_000;
/**
 * After this many ticks in which no call asked for the time (2 s), the timer stops until one does: it would wake an idle process.
 */
const REST_AFTER_TICKS = 4;

/**
 * The clock of the breakers, driven by a timer. Any time for which the process was blocked counts as one tick, so no service is
 * blamed for it. While the timer is stopped nothing is judged, so that time counts in full.
 */
class Ticks {
  #ticks = 0;
  #timer: NodeJS.Timeout | null = null;
  #isStarted = false;
  #isAsked = false;
  #unasked = 0;
  #restsSinceMs = 0;

  get now(): number {
    this.#isAsked = true;
    if (this.#timer === null && this.#isStarted) this.#wake();
    return this.#ticks;
  }

  start(): void {
    this.#isStarted = true;
    this.#restsSinceMs = performance.now();
  }

  stop(): void {
    this.#isStarted = false;
    this.#rest();
  }

  tick(): void {
    this.#ticks++;
    this.#unasked = this.#isAsked ? 0 : this.#unasked + 1;
    this.#isAsked = false;
    if (this.#unasked >= REST_AFTER_TICKS) this.#rest();
  }

  #wake(): void {
    this.#ticks += Math.floor((performance.now() - this.#restsSinceMs) / TICK_MS);
    this.#unasked = 0;
    this.#timer = setInterval(() => this.tick(), TICK_MS);
    this.#timer.unref();
  }

  #rest(): void {
    if (this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
    this.#restsSinceMs = performance.now();
  }
}

/**
 * The breakers of all services, in this process's memory. Each process judges a service only by its own calls.
 *
 * There is one breaker per service, not per origin. Services of several providers can share an origin. A provider who lists another
 * provider's host must not be able to block calls to that other provider.
 */
export class Breakers {
  readonly #byService = new Map<string, { readonly endpoint: string; readonly breaker: Breaker }>();
  readonly #ticks = new Ticks();
  readonly #maxServices: number;

  constructor({ maxServices = MAX_SERVICES }: { readonly maxServices?: number } = {}) {
    this.#maxServices = maxServices;
  }

  start(): void {
    this.#ticks.start();
  }

  stop(): void {
    this.#ticks.stop();
  }

  /** Advances the clock by one tick, as its timer does. */
  tick(): void {
    this.#ticks.tick();
  }

  /** The breaker of a service. It stays the same when the listing changes, but a new endpoint gets a new breaker. */
  of(serviceId: string, endpoint: string): Breaker {
    const known = this.#byService.get(serviceId);
    if (known?.endpoint === endpoint) return known.breaker;
    const breaker = new Breaker(this.#ticks);
    this.#byService.delete(serviceId);
    this.#byService.set(serviceId, { endpoint, breaker });
    if (this.#byService.size > this.#maxServices) {
      const [oldest] = this.#byService.keys();
      this.#byService.delete(oldest as string);
    }
    return breaker;
  }

  /** Number of services that are blocked now and were called within the last 30 s. */
  get open(): number {
    let open = 0;
    for (const { breaker } of this.#byService.values()) if (breaker.isInTheWay) open++;
    return open;
  }

  get size(): number {
    return this.#byService.size;
  }
}
