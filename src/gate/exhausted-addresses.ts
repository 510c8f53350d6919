/** Addresses remembered at once; when more are over their limit together, the oldest are forgotten. */
const MAX_ADDRESSES = 10_000;

type Exhausted = {
  /** When one request would pass, ms of `performance.now`. */
  until: number;
  /** The place promised last to its callers (refill-places.ts). */
  lastPlace: number;
};

/** Look-ups a second that all of them together may cause. */
const LOOK_UPS_PER_SECOND = 50;

/**
 * Addresses that are over their rate limit, until one request of theirs would pass again. A made-up key costs its sender
 * nothing and us a look-up in Postgres; from these addresses only so many are looked up. Not none: a valid key that this
 * gateway has not seen yet counts by itself, wherever it comes from.
 */
export class ExhaustedAddresses {
  readonly #known = new Map<string, Exhausted>();
  #second = 0;
  #lookUps = 0;

  /** @returns what is kept of the address */
  add(address: string, seconds: number): Exhausted {
    // Stays when the address may ask again: its callers were promised later places.
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

  /** Whether an unknown key from this address may be looked up now; if so, it counts. */
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
