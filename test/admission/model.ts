/**
 * What batch.lua, sweep.lua, hydrate-wallet.lua and apply-credit.lua are supposed to do, in plain TypeScript: small
 * enough to be read and believed. Redis's time is the only thing that it cannot know; replies are checked against the earliest and
 * the latest moment at which the script may have run.
 */

export const REQUEST = 60_000;
export const LEASE_MS = 15_000;

type Wallet = { balance: number; creditSeq: number; free: Map<string, number> };
type Hold = { amount: number; free: boolean; instance: string; account: string; service: string };
/** Who has an idempotency key. `o`: the call is open; `k`, `n`: it was charged, and its answer is kept or not. */
type Claim = { state: 'o' | 'k' | 'n'; id: string; target: string };
export type Bucket = { limit: number; active: boolean; tokens: number | null; ts: number };
export type Moment = { readonly earliest: number; readonly latest: number };

export type End = 'charged' | 'refunded' | number;

type Admission = {
  readonly id: string;
  readonly account: string;
  readonly key: string;
  readonly service: string;
  /** What its hold takes: the price, or what a call priced by use is authorised. */
  readonly price: number;
  readonly quota: number;
  /** Nothing but a free call may serve it. */
  readonly isFreeOnly: boolean;
  readonly instance: string;
  readonly claim: { readonly name: string; readonly target: string } | null;
};

type Refusal = 'wallet' | 'insufficient_balance' | 'duplicate';
type ClaimRefusal = 'call_in_progress' | 'charged_before' | 'idempotency_mismatch';

export class Model {
  /** Absent: not loaded. */
  readonly wallets = new Map<string, Wallet>();
  readonly buckets = new Map<string, Bucket>();
  readonly holds = new Map<string, Hold>();
  readonly tombstones = new Set<string>();
  /** By account and name. */
  readonly claims = new Map<string, Map<string, Claim>>();
  /** In the order of the stream, per account's shard; the test compares shard by shard. */
  readonly events: { id: string; account: string; charged: number; outcome: string; reported: number | null }[] = [];
  readonly leases = new Map<string, number>();
  /** Admissions carried out, by usage id. */
  readonly admitted = new Map<string, number>();

  /** Tokens the bucket may hold at some moment of the script's run: least and most. */
  tokens(bucket: Bucket, at: Moment): { least: number; most: number } {
    const capacity = bucket.limit * REQUEST;
    const { tokens, ts } = bucket;
    if (tokens === null) return { least: capacity, most: capacity };
    const after = (now: number) => Math.min(capacity, tokens + Math.max(0, now - ts) * bucket.limit);
    return { least: after(at.earliest), most: after(at.latest) };
  }

  /** What an admission does, given that it has a token. */
  admit(call: Admission): 'admitted' | Refusal | ClaimRefusal {
    const { claim, account, id } = call;
    const found = claim === null ? undefined : this.claims.get(account)?.get(claim.name);
    if (found !== undefined && found.target !== claim?.target) return 'idempotency_mismatch';
    if (found !== undefined) return found.state === 'o' ? 'call_in_progress' : 'charged_before';
    const outcome = this.#open(call);
    if (outcome === 'admitted' && claim !== null) this.claim(account, claim, id);
    return outcome;
  }

  claim(account: string, { name, target }: { readonly name: string; readonly target: string }, id: string): void {
    const its = this.claims.get(account) ?? new Map<string, Claim>();
    this.claims.set(account, its.set(name, { state: 'o', id, target }));
  }

  /** Ends the claim of a call that has ended: a call that cost nothing frees its key. */
  #endClaim(account: string, id: string, end: End): void {
    for (const [name, claim] of this.claims.get(account) ?? []) {
      if (claim.id !== id) continue;
      if (end === 'refunded') this.claims.get(account)?.delete(name);
      else claim.state = end === 'charged' ? 'k' : 'n';
    }
  }

  #open(call: Admission): 'admitted' | Refusal {
    const wallet = this.wallets.get(call.account);
    if (wallet === undefined) return 'wallet';
    const used = wallet.free.get(call.service) ?? 0;
    const free = call.quota > 0 && call.price > 0 && used < call.quota;
    const amount = free ? 0 : call.price;
    if (amount > 0 && (call.isFreeOnly || amount > wallet.balance)) return 'insufficient_balance';
    if (this.holds.has(call.id) || this.tombstones.has(call.id)) return 'duplicate';
    const { account, service, instance } = call;
    this.holds.set(call.id, { amount, free, account, service, instance });
    this.admitted.set(call.id, (this.admitted.get(call.id) ?? 0) + 1);
    if (free) wallet.free.set(service, used + 1);
    wallet.balance -= amount;
    return 'admitted';
  }

  /** What is told of the free calls that the account has left. */
  freeLeft({ account, service, quota, price }: Admission): number | null {
    if (quota === 0 || price === 0) return null;
    return Math.max(0, quota - (this.wallets.get(account)?.free.get(service) ?? 0));
  }

  /**
   * Ends a hold.
   *
   * @param end  'charged' charges the whole hold, a number what was reported
   * @returns whether there was one
   */
  close(id: string, end: End, outcome: string): boolean {
    const hold = this.holds.get(id);
    if (hold === undefined) return false;
    this.holds.delete(id);
    const { account, amount, free, service } = hold;
    const reported = typeof end === 'number' ? end : null;
    const charged = end === 'refunded' ? 0 : Math.min(amount, reported ?? amount);
    const wallet = this.wallets.get(account);
    if (wallet !== undefined) {
      wallet.balance += amount - charged;
      if (free && end === 'refunded') wallet.free.set(service, (wallet.free.get(service) ?? 0) - 1);
    }
    this.events.push({ id, account, charged, outcome, reported });
    this.#endClaim(account, id, end);
    return true;
  }

  cancel(id: string, outcome: string): void {
    if (!this.close(id, 'refunded', outcome)) this.tombstones.add(id);
  }

  /** Sweeps as of `now`; leases in the tests are so old or so young that a moment more does not matter. */
  sweep(now: number): number {
    let swept = 0;
    for (const [id, hold] of Array.from(this.holds)) {
      const seen = this.leases.get(hold.instance);
      if (seen === undefined) this.leases.set(hold.instance, now);
      else if (now - seen > LEASE_MS && this.close(id, 'refunded', 'abandoned')) swept++;
    }
    return swept;
  }

  hydrate(account: string, balance: number, creditSeq: number, free: ReadonlyMap<string, number>): void {
    if (!this.wallets.has(account)) this.wallets.set(account, { balance, creditSeq, free: new Map(free) });
  }

  /** @returns the outcome of apply-credit.lua: 0 applied, 1 gap, 2 not loaded */
  credit(account: string, seq: number, amount: number): number {
    const wallet = this.wallets.get(account);
    if (wallet === undefined) return 2;
    if (wallet.creditSeq >= seq) return 0;
    if (wallet.creditSeq + 1 !== seq) return 1;
    wallet.balance += amount;
    wallet.creditSeq = seq;
    return 0;
  }
}
