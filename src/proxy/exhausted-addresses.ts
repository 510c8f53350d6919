/** Addresses remembered at once; when more are over their limit together, the oldest are forgotten. */
const MAX_ADDRESSES = 10_000;

/**
 * Addresses that are over their rate limit, until one request of theirs would pass again. A made-up key costs its sender
 * nothing and us a look-up in Postgres; from these addresses it is not looked up.
 */
export class ExhaustedAddresses {
  readonly #until = new Map<string, number>();

  add(address: string, seconds: number): void {
    this.#until.delete(address);
    this.#until.set(address, performance.now() + seconds * 1000);
    if (this.#until.size <= MAX_ADDRESSES) return;
    for (const oldest of this.#until.keys()) {
      this.#until.delete(oldest);
      return;
    }
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
