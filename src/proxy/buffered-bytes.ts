/** A call whose response has begun, and which holds request body that its service has not taken yet. */
export interface BodyHolder {
  readonly heldBytes: number;
  /** Ends it as if the caller had overrun its own bound, and lets go of what it holds. */
  overflow(): void;
}

/**
 * Request body that services have not taken yet, over all calls that cannot be made to wait. A body cannot be paused once its
 * response has begun (see http/caller-stream.ts), and a call may then hold all it may send: this bounds what all of them
 * hold together. At the bound the call that holds most ends: others who fill it do not end one that holds little. Before
 * its response a call is paused, and holds what was read at once.
 */
export class HeldBytes {
  readonly #max: number;
  readonly #holders = new Set<BodyHolder>();
  #held = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get full(): boolean {
    return this.#held > this.#max;
  }

  /** @param before  what it held up to now */
  changed(holder: BodyHolder, before: number): void {
    const { heldBytes } = holder;
    this.#held += heldBytes - before;
    if (heldBytes === 0) this.#holders.delete(holder);
    else if (before === 0) this.#holders.add(holder);
  }

  /** Ends calls until the bound is kept. */
  makeRoom(): void {
    while (this.full) {
      const [first] = this.#holders;
      let largest = first as BodyHolder;
      for (const holder of this.#holders) if (holder.heldBytes > largest.heldBytes) largest = holder;
      largest.overflow();
    }
  }
}
