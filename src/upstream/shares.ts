import { assert } from '../assert.ts';
import type { Call } from './call.ts';

/** One account may always have so many connections, and places in line, however few a quarter would be. */
const LEAST_SHARE = 8;

/** What one account may have of `total` connections, or of as many places in line, while others need them. */
export const shareOf = (total: number): number => Math.min(total, Math.max(LEAST_SHARE, Math.floor(total / 4)));

/**
 * How many of `max` connections one account may have. Nobody is counted until three quarters are taken: so the rule costs most calls
 * one comparison. From then on, an account may have a quarter of all, and three times as many as are free.
 */
export class Quota {
  /** With so many connections taken, accounts count. */
  readonly nearlyFull: number;
  readonly #max: number;
  readonly #share: number;

  constructor(max: number) {
    this.#max = max;
    this.#share = shareOf(max);
    this.nearlyFull = Math.max(this.#share, max - Math.floor(max / 4));
  }

  /** While so many connections are taken, an account that has fewer than this may have one more. */
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

type Account = { readonly name: string; held: number; readonly waiting: Set<Call> };

/**
 * Who has how many connections of a pool, and who waits for one. A pool keeps it only while it is nearly full: counting takes about
 * 0.1 µs for each call, which all other calls are spared.
 *
 *   accounts with waiting calls, in turn:   a ──► b ──► c ──► a …      of each, the call that came first
 *
 * Tested by test/upstream/shares.test.ts.
 */
export class Shares {
  readonly #maxWaiting: number;
  readonly #maxWaitingOfOne: number;
  /** Those that have a connection or wait for one. */
  readonly #accounts = new Map<string, Account>();
  /** Those with waiting calls, in the order of their turns. */
  readonly #turns = new Set<Account>();
  /** All waiting calls, oldest first. */
  readonly #waiting = new Set<Call>();

  constructor(maxWaiting: number) {
    this.#maxWaiting = maxWaiting;
    this.#maxWaitingOfOne = shareOf(maxWaiting);
  }

  /** Waiting calls. */
  get size(): number {
    return this.#waiting.size;
  }

  get oldest(): Call | undefined {
    const [oldest] = this.#waiting;
    return oldest;
  }

  took(name: string): void {
    this.#account(name).held++;
  }

  left(name: string): void {
    const account = this.#account(name);
    assert(account.held > 0);
    account.held--;
    this.#forgetIfDone(account);
  }

  heldBy(name: string): number {
    return this.#accounts.get(name)?.held ?? 0;
  }

  hasRoomFor(name: string): boolean {
    const ofOne = this.#accounts.get(name)?.waiting.size ?? 0;
    return this.#waiting.size < this.#maxWaiting && ofOne < this.#maxWaitingOfOne;
  }

  wait(call: Call): void {
    const account = this.#account(call.request.account);
    account.waiting.add(call);
    this.#waiting.add(call);
    this.#turns.add(account);
  }

  /** The call no longer waits. @returns whether it did */
  remove(call: Call): boolean {
    const account = this.#accounts.get(call.request.account);
    if (account === undefined || !this.#waiting.delete(call)) return false;
    account.waiting.delete(call);
    if (account.waiting.size === 0) this.#turns.delete(account);
    this.#forgetIfDone(account);
    return true;
  }

  /**
   * The call whose turn it is. It stays in line until `served`.
   *
   * @param limit  accounts that hold as many connections have no turn. Skipping them is cheap: few can hold many
   * @param mayTake  whether the account may have one more connection of the process
   */
  next(limit: number, mayTake: (account: string) => boolean): Call | undefined {
    for (const { name, held, waiting } of this.#turns) {
      if (held >= limit || !mayTake(name)) continue;
      const [call] = waiting;
      return call;
    }
    return undefined;
  }

  /** The call leaves the line. Its account has its next turn after the others. */
  served(call: Call): void {
    const account = this.#account(call.request.account);
    this.remove(call);
    if (this.#turns.delete(account)) this.#turns.add(account);
  }

  #account(name: string): Account {
    let account = this.#accounts.get(name);
    if (account === undefined) {
      account = { name, held: 0, waiting: new Set() };
      this.#accounts.set(name, account);
    }
    return account;
  }

  #forgetIfDone(account: Account): void {
    if (account.held === 0 && account.waiting.size === 0) this.#accounts.delete(account.name);
  }
}
