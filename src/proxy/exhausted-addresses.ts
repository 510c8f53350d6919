/** Addresses remembered at once; when more are over their limit together, the oldest are forgotten. */
const MAX_ADDRESSES = 10_000;

/** Look-ups a second that all of them together may cause. */
const LOOK_UPS_PER_SECOND = 50;

/**
 * Addresses that are over their rate limit, until one request of theirs would pass again. A made-up key costs its sender
 * nothing and us a look-up in Postgres; from these addresses only so many are looked up. Not none: a valid key that this
 * gateway has not seen yet counts by itself, wherever it comes from.
 */
export class ExhaustedAddresses {
  readonly #until = new Map<string, number>();
  #second = 0;
  #lookUps = 0;

  add(address: string, seconds: number): void {
    this.#until.delete(address);
    this.#until.set(address, performance.now() + seconds * 1000);
    if (this.#until.size <= MAX_ADDRESSES) return;
    for (const oldest of this.#until.keys()) {
      this.#until.delete(oldest);
      return;
    }
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
    if (this.#until.size === 0) return false;
    const until = this.#until.get(address);
    if (until === undefined) return false;
    if (until > performance.now()) return true;
    this.#until.delete(address);
    return false;
  }
}
