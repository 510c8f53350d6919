/**
 * Maximum addresses remembered. Beyond it, the address that was refused longest ago is forgotten. Look-ups of keys sent from it are
 * then unbounded until it is refused again.
 */
const MAX_ADDRESSES = 10_000;

type Exhausted = {
  /** When one request from this address would pass again, in ms of `performance.now()`. */
  until: number;
  /** The last refill that a caller at this address was promised; RefillTimes says what a refill is. */
  lastRefill: number;
};

/**
 * Maximum look-ups in Postgres per second, for all remembered addresses together. Beyond it, a key that is not in memory counts
 * as invalid.
 */
const LOOK_UPS_PER_SECOND = 50;

/**
 * Remembers the addresses that are over their rate limit, each until one request from it would pass again. A made-up key is free
 * for its sender, but makes the gateway look it up in Postgres. So keys sent from these addresses are looked up at a bounded
 * rate. The rate is not zero, because a valid key that this gateway has not seen yet has its own rate limit, whatever address it
 * comes from.
 *
 * Tested by test/gate/gate.test.ts.
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
    // The entry is kept after its time has passed: callers at the address may have been promised refills that are still to come.
    const exhausted = this.#known.get(address) ?? { until: 0, lastRefill: 0 };
    exhausted.until = performance.now() + seconds * 1000;
    this.#known.delete(address);
    this.#known.set(address, exhausted);
    if (this.#known.size > MAX_ADDRESSES) {
      const [oldest] = this.#known.keys();
      this.#known.delete(oldest as string);
    }
    return exhausted;
  }

  /**
   * Whether a key that is not in memory may be looked up in Postgres for this address now. If the address is exhausted, this
   * counts as a look-up.
   */
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
