import { assert } from '../assert.ts';

/** One account may always have this many connections, and as many calls in line, even if a quarter is less. */
const LEAST_SHARE = 8;

/** How many of `total` connections, or of the calls in an equally long line, one account may have while others need them. */
export const shareOf = (total: number): number => Math.min(total, Math.max(LEAST_SHARE, Math.floor(total / 4)));

/**
 * How many of `max` connections one account may have. Accounts are not counted until three quarters are taken, so the rule costs
 * most calls one comparison. From then on, an account may have a quarter of all, and three times as many as are free.
 *
 * Tested by test/upstream/shares.test.ts.
 */
export class Quota {
  /** Accounts are counted once this many connections are taken. */
  readonly nearlyFull: number;
  readonly #max: number;
  readonly #share: number;

  constructor(max: number) {
    this.#max = max;
    this.#share = shareOf(max);
    this.nearlyFull = Math.max(this.#share, max - Math.floor(max / 4));
  }

  /** While this many connections are taken, an account that has fewer than this may have one more. */
  limitWith(taken: number): number {
    return taken < this.nearlyFull ? Number.POSITIVE_INFINITY : Math.min(this.#share, 3 * (this.#max - taken));
  }
}

/** How many connections each account has. */
export class Counts {
  readonly #counts = new Map<string, number>();

  of(account: string): number {
    return this.#counts.get(account) ?? 0;
  }

  add(account: string): void {
    this.#counts.set(account, this.of(account) + 1);
  }

  subtract(account: string): void {
    const left = this.of(account) - 1;
    assert(left >= 0);
    if (left === 0) this.#counts.delete(account);
    else this.#counts.set(account, left);
  }
}
