import { type BudgetPeriod, nextPeriodMs, periodAt } from '../../src/keys/budget-period.ts';

/**
 * What batch.lua and sweep.lua are supposed to do with one account's tree of keys, in plain TypeScript: small enough to be read and
 * believed. The test gives Redis its time, so everything is known exactly.
 */

const REQUEST = 60_000;

export type Budget = { amount: number; kind: BudgetPeriod; number: number };
export type Key = {
  readonly id: string;
  readonly parent: Key | null;
  limit: number;
  status: 'active' | 'revoked';
  expiresAtMs: number;
  budget: Budget | null;
  bucket: { tokens: number; ts: number } | null;
};
type Counter = { spent: number; period: number };
type Hold = { amount: number; free: boolean; from: readonly { id: string; period: number }[] };
type Asked = { readonly price: number; readonly least: number; readonly quota: number };
/** What is told of a call, besides its outcome. */
export type Told = {
  readonly outcome: string;
  readonly tokens?: number;
  readonly amount?: number;
  readonly balance?: number;
  readonly free?: boolean;
  readonly freeLeft?: number | null;
  readonly budget?: { keyId: string; leftMicros: number; resetsAtMs: number | null };
};

/** From below the root to the key itself; a root has none. */
export const chainOf = (key: Key): Key[] => (key.parent === null ? [] : [...chainOf(key.parent), key]);
const pathOf = (key: Key): Key[] => (key.parent === null ? [key] : [...pathOf(key.parent), key]);

export class BudgetModel {
  now: number;
  balance: number;
  freeUsed = 0;
  readonly counters = new Map<string, Counter>();
  readonly holds = new Map<string, Hold>();
  /** What was charged in each period of each budget, as Postgres has to know it. */
  readonly charged = new Map<string, number>();

  constructor(now: number, balance: number) {
    this.now = now;
    this.balance = balance;
  }

  tokensOf({ bucket, limit }: Key): number {
    if (bucket === null) return limit * REQUEST;
    return Math.min(limit * REQUEST, bucket.tokens + Math.max(0, this.now - bucket.ts) * limit);
  }

  #barrier(key: Key): string | null {
    for (const { status, expiresAtMs } of pathOf(key)) {
      if (status === 'revoked') return 'revoked';
      if (expiresAtMs > 0 && this.now >= expiresAtMs) return 'expired';
    }
    return null;
  }

  /** A token of every level, or none. */
  #takeTokens(keys: readonly Key[], own: Key): { passes: boolean; tokens: number } {
    const empty = keys.filter((key) => this.tokensOf(key) < REQUEST);
    if (empty.length > 0) {
      const waits = empty.map((key) => (REQUEST - this.tokensOf(key)) / key.limit);
      for (const key of empty) {
        if (key.bucket !== null && key.bucket.ts > this.now) key.bucket.ts = this.now;
      }
      return { passes: false, tokens: Math.floor(REQUEST - Math.max(...waits) * own.limit) };
    }
    return { passes: true, tokens: Math.min(...keys.map((key) => this.tokensOf(key))) };
  }

  #spend(keys: readonly Key[]): void {
    for (const key of keys) key.bucket = { tokens: this.tokensOf(key) - REQUEST, ts: this.now };
  }

  take(key: Key): Told {
    const barrier = this.#barrier(key);
    if (barrier !== null) return { outcome: barrier };
    const { passes, tokens } = this.#takeTokens([key], key);
    if (!passes) return { outcome: 'rate_limited', tokens };
    this.#spend([key]);
    return { outcome: 'taken', tokens: tokens - REQUEST };
  }

  counterOf({ id, budget }: Key & { budget: Budget }): Counter {
    const present = periodAt(budget.kind, budget.number, this.now);
    const counter = this.counters.get(id) ?? { spent: 0, period: 0 };
    return counter.period < present ? { spent: 0, period: present } : counter;
  }

  admit(id: string, key: Key, { price, least, quota }: Asked): Told {
    const barrier = this.#barrier(key);
    if (barrier !== null) return { outcome: barrier };
    const { passes, tokens } = this.#takeTokens(pathOf(key), key);
    if (!passes) return { outcome: 'rate_limited', tokens };
    const budgets = chainOf(key).filter((level): level is Key & { budget: Budget } => level.budget !== null);
    const left = budgets.map((level) => {
      const { spent, period } = this.counterOf(level);
      const leftMicros = Math.max(0, level.budget.amount - spent);
      return { keyId: level.id, leftMicros, resetsAtMs: nextPeriodMs(level.budget.kind, period) };
    });
    const free = price > 0 && this.freeUsed < quota;
    const leastLeft = Math.min(...left.map(({ leftMicros }) => leftMicros));
    const amount = free ? 0 : Math.min(price, leastLeft);
    if (!free && amount < least) {
      this.#spend(pathOf(key));
      const short = left.filter(({ leftMicros }) => leftMicros < least);
      const last = Math.max(...short.map(({ resetsAtMs }) => resetsAtMs ?? Number.POSITIVE_INFINITY));
      const budget = short.find(({ resetsAtMs }) => (resetsAtMs ?? Number.POSITIVE_INFINITY) === last);
      return { outcome: 'budget_exceeded', tokens: tokens - REQUEST, ...(budget && { budget }) };
    }
    if (amount > 0 && amount > this.balance) {
      this.#spend(pathOf(key));
      return { outcome: 'insufficient_balance', tokens: tokens - REQUEST, balance: this.balance };
    }
    if (this.holds.has(id)) return { outcome: 'unavailable' };
    this.#spend(pathOf(key));
    const from = amount === 0 ? [] : budgets.map((level) => ({ id: level.id, period: this.counterOf(level).period }));
    if (amount > 0) {
      for (const level of budgets) {
        const { spent, period } = this.counterOf(level);
        this.counters.set(level.id, { spent: spent + amount, period });
      }
    }
    this.holds.set(id, { amount, free, from });
    this.balance -= amount;
    if (free) this.freeUsed++;
    const balance = Math.min(this.balance, leastLeft - amount);
    const freeLeft = price > 0 && quota > 0 ? Math.max(0, quota - this.freeUsed) : null;
    return { outcome: 'admitted', tokens: tokens - REQUEST, amount, balance, free, freeLeft };
  }

  /** @param reported  null: the whole hold is charged, or nothing if `refund` */
  close(id: string, refund: boolean, reported: number | null): void {
    const hold = this.holds.get(id);
    if (hold === undefined) return;
    this.holds.delete(id);
    const charged = refund ? 0 : Math.min(hold.amount, reported ?? hold.amount);
    this.balance += hold.amount - charged;
    if (hold.free && refund) this.freeUsed--;
    for (const { id: key, period } of hold.from) {
      const counter = this.counters.get(key);
      if (counter?.period === period) counter.spent -= hold.amount - charged;
      const name = `${key}.${period}`;
      if (charged > 0) this.charged.set(name, (this.charged.get(name) ?? 0) + charged);
    }
  }
}
