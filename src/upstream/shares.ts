import { assert } from '../assert.ts';
import type { Call } from './call.ts';

/** One account may always have so many connections, and places in line, however few a quarter would be. */
const LEAST_SHARE = 8;

/** What one account may have of `total` connections, or of as many places in line, while others need them. */
export const shareOf = (total: number): number => Math.min(total, Math.max(LEAST_SHARE, Math.floor(total / 4)));

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

  /** The call no longer waits. Harmless if it did not. */
  remove(call: Call): void {
    const account = this.#accounts.get(call.request.account);
    if (account === undefined || !this.#waiting.delete(call)) return;
    account.waiting.delete(call);
    if (account.waiting.size === 0) this.#turns.delete(account);
    this.#forgetIfDone(account);
  }

  /**
   * Takes the call whose turn it is out of the line.
   *
   * @param limit  accounts that hold as many connections have no turn. Skipping them is cheap: few can hold many
   */
  next(limit: number): Call | undefined {
    for (const account of this.#turns) {
      if (account.held >= limit) continue;
      const [call] = account.waiting;
      this.remove(call as Call);
      // To the end of the turns, if it has more calls.
      if (this.#turns.delete(account)) this.#turns.add(account);
      return call;
    }
    return undefined;
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
