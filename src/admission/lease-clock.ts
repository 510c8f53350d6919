import { performance } from 'node:perf_hooks';
/** Says when this gateway's lease has to be renewed. */
export class LeaseClock {
  readonly #everyMs: number;
  #monotonic = Number.NEGATIVE_INFINITY;
  #wall = Number.NEGATIVE_INFINITY;

  constructor(everyMs: number) {
    this.#everyMs = everyMs;
  }

  /** Whether to renew now; if so, counts as renewed. */
  renew(): boolean {
    const monotonic = performance.now();
    const wall = Date.now();
    // The monotonic clock stands still while the host is suspended, the wall clock may be set back: either may say so.
    if (monotonic - this.#monotonic < this.#everyMs && wall - this.#wall < this.#everyMs) return false;
    this.#monotonic = monotonic;
    this.#wall = wall;
    return true;
  }

  expire(): void {
    this.#monotonic = Number.NEGATIVE_INFINITY;
  }
}
