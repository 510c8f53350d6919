/** Maximum addresses remembered. Beyond it the address refused longest ago is forgotten, and its keys are looked up again. */
const MAX_ADDRESSES = 10_000;

type Exhausted = {
  /** When one request from this address would pass again, in ms of `performance.now()`. */
  until: number;
  /** The last place promised to a caller at this address (refill-places.ts). */
  lastPlace: number;
};

/** Maximum look-ups per second for all remembered addresses. Beyond it, a key that is not in memory counts as invalid. */
const LOOK_UPS_PER_SECOND = 50;

/**
 * Remembers the addresses that are over their rate limit, each until one request from it would pass again. A made-up key costs
 * its sender nothing but the gateway a look-up in Postgres, so keys from these addresses are looked up at a bounded rate. The
 * rate is not zero: a valid key that this gateway has not seen yet has a bucket of its own, whatever address it comes from.
 */
export class ExhaustedAddresses {
  readonly #known = new Map<string, Exhausted>();
  #second = 0;
  #lookUps = 0;

  /**
   * @param seconds  until one request from the address would pass
   * @returns the address's entry
   */
  add(address: string, seconds: number): Exhausted {
    // An entry whose time is over is used again: its callers may have been promised places that are still to come.
    const exhausted = this.#known.get(address) ?? { until: 0, lastPlace: 0 };
    exhausted.until = performance.now() + seconds * 1000;
    this.#known.delete(address);
    this.#known.set(address, exhausted);
    if (this.#known.size > MAX_ADDRESSES) {
      const [oldest] = this.#known.keys();
      this.#known.delete(oldest as string);
    }
    return exhausted;
  }

  /** Whether a key that is not in memory may be looked up for this address now. A look-up for an exhausted address is counted. */
  mayLookUp(address: string): boolean {
    if (!this.has(address)) return true;
    const second = Math.floor(performance.now() / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#lookUps = 0;
    }
    return this.#lookUps++ < LOOK_UPS_PER_SECOND;
  }

  has(address: string): boolean {
    const exhausted = this.#known.get(address);
    return exhausted !== undefined && exhausted.until > performance.now();
  }
}
