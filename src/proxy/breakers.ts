import { Breaker, TICK_MS } from './breaker.ts';

/** Services remembered at once; beyond it the one seen first is forgotten, and begins anew with a closed breaker. */
const MAX_SERVICES = 10_000;

/**
 * The breakers of all services, in this process's memory: what this process sees of a service is what it acts upon.
 *
 * One for each service, not for each origin: services of several providers may share an origin, and a listing that points at
 * another provider's host must not be able to close it for that provider's callers.
 */
export class Breakers {
  readonly #byService = new Map<string, { readonly endpoint: string; readonly breaker: Breaker }>();
  readonly #ticks = { now: 0 };
  readonly #maxServices: number;
  #timer: NodeJS.Timeout | null = null;

  constructor({ maxServices = MAX_SERVICES }: { readonly maxServices?: number } = {}) {
    this.#maxServices = maxServices;
  }

  start(): void {
    this.#timer ??= setInterval(() => this.tick(), TICK_MS);
    this.#timer.unref();
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  /** One step of time: a process that was blocked meanwhile takes it for one step, and judges nobody for it. */
  tick(): void {
    this.#ticks.now++;
  }

  /** Kept over other changes of a listing; a service that moved begins anew. */
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

  /** Services whose calls are being refused. */
  get open(): number {
    let open = 0;
    for (const { breaker } of this.#byService.values()) if (breaker.isInTheWay) open++;
    return open;
  }

  get size(): number {
    return this.#byService.size;
  }
}
