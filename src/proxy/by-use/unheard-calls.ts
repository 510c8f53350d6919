import type { Bound, UnheardCall } from './unheard-call.ts';

/**
 * All calls of this process that are read on without a caller. Each keeps a connection to its service, and nobody waits for it, so
 * their number is bounded. Beyond the bound, the oldest call of the account with the most of them is given up: an account that
 * leaves many calls behind pays their whole holds, and others do not.
 *
 * Tested by test/proxy/by-use/unheard-calls.test.ts.
 */
export class UnheardCalls {
  readonly #max: number;
  /** By account, each set oldest first. */
  readonly #open = new Map<string, Set<UnheardCall>>();
  size = 0;
  /** Bytes read on and dropped since the process began. */
  bytes = 0;
  /** How often the whole hold was captured, and why. */
  readonly holdsCaptured = new Map<Bound, number>([
    ['time', 0],
    ['bytes', 0],
    ['number', 0],
    ['cut', 0],
  ]);

  constructor(max: number) {
    this.#max = max;
  }

  add(call: UnheardCall): void {
    const { account } = call;
    const ofAccount = this.#open.get(account);
    if (ofAccount === undefined) this.#open.set(account, new Set([call]));
    else ofAccount.add(call);
    this.size++;
    if (this.size > this.#max) this.#oldestOfMost().makeRoom();
  }

  remove(call: UnheardCall): void {
    const { account } = call;
    const ofAccount = this.#open.get(account);
    if (!ofAccount?.delete(call)) return;
    if (ofAccount.size === 0) this.#open.delete(account);
    this.size--;
  }

  reached(bound: Bound): void {
    this.holdsCaptured.set(bound, (this.holdsCaptured.get(bound) ?? 0) + 1);
  }

  stop(): void {
    for (const ofAccount of this.#open.values()) for (const call of ofAccount) call.stop();
  }

  #oldestOfMost(): UnheardCall {
    let most: Set<UnheardCall> = new Set();
    for (const ofAccount of this.#open.values()) if (ofAccount.size > most.size) most = ofAccount;
    const [oldest] = most;
    return oldest as UnheardCall;
  }
}
