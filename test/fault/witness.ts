// Looks at the stores while the load runs: checks what must be true at all times, and records which calls were admitted.

import { setTimeout as sleep } from 'node:timers/promises';
import { isRedisUnavailable } from '../../src/platform/redis.ts';
import { freeField } from '../../src/platform/redis-keys.ts';
import { readSpent } from './budgets.ts';
import type { Buyer, Listing } from './market.ts';
import type { Stack } from './stack.ts';

const EVERY_MS = 10;

export class Witness {
  /** The calls whose hold was seen: usage id to account. */
  readonly held = new Map<string, string>();
  /** What must never happen, and the account where it was seen. */
  readonly #faults = new Map<string, string>();
  looks = 0;
  readonly #stack: Stack;
  readonly #buyers: readonly Buyer[];
  readonly #listings: readonly Listing[];
  readonly #mayLose: boolean;
  readonly #over: Promise<void>;
  #stopped = false;

  /** @param mayLose whether a wallet may have too much for a while, so that it is spent, and so may free calls */
  constructor(stack: Stack, buyers: readonly Buyer[], listings: readonly Listing[], mayLose = false) {
    this.#mayLose = mayLose;
    this.#stack = stack;
    this.#buyers = buyers;
    this.#listings = listings;
    this.#over = this.#run();
  }

  /** @param isForgiven  accounts whose calls a failover may have lost: their wallets had too much, and were then set to what Postgres has */
  faults(isForgiven: (accountId: string) => boolean = () => false): string[] {
    return Array.from(this.#faults).flatMap(([fault, accountId]) => (isForgiven(accountId) ? [] : [fault]));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#over;
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      try {
        await this.#look();
        this.looks++;
      } catch (error) {
        // A Redis that is dead or stopped cannot be looked at.
        if (!isRedisUnavailable(error)) throw error;
      }
      await sleep(EVERY_MS);
    }
  }

  async #look(): Promise<void> {
    const { redis, keys } = this.#stack.stores;
    const holds = await Promise.all(keys.open.map((open) => redis.command('hgetall', [open])));
    for (const [usageId, hold] of holds.flatMap((of) => Object.entries(of as Record<string, string>))) {
      // A tombstone is no hold.
      if (!hold.startsWith('x')) this.held.set(usageId, hold.split('\t', 6)[5] as string);
    }
    if (this.#mayLose) return;
    await Promise.all(
      this.#buyers.flatMap((buyer) => [this.#lookAt(buyer.key.account_id), this.#lookAtBudgets(buyer)]),
    );
  }

  async #lookAt(accountId: string): Promise<void> {
    const { redis, keys } = this.#stack.stores;
    const wallet = keys.wallet(keys.shardOf(accountId), accountId);
    const fields = ['balance', ...this.#listings.map(({ id }) => freeField(id))];
    const [balance, ...used] = (await redis.command('hmget', [wallet, ...fields])) as (string | null)[];
    if (Number(balance) < 0) this.#faults.set(`wallet ${accountId} was at ${balance}`, accountId);
    this.#listings.forEach(({ id, freeCalls }, i) => {
      const calls = Number(used[i]);
      if (calls < 0 || calls > freeCalls)
        this.#faults.set(`${accountId} had used ${calls} of ${freeCalls} free calls of ${id}`, accountId);
    });
  }

  async #lookAtBudgets({ key, children }: Buyer): Promise<void> {
    if (children.length === 0) return;
    const spending = await readSpent(this.#stack, key.account_id);
    for (const { key: its, budget } of children) {
      const { spentMicros = 0 } = spending?.get(its.key_id) ?? {};
      const most = budget?.micros ?? 0;
      if (spentMicros >= 0 && spentMicros <= most) continue;
      this.#faults.set(`the budget of ${its.key_id} had spent ${spentMicros} of ${most}`, key.account_id);
    }
  }
}
