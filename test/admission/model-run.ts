import { expect } from 'vitest';
import { CallTerms } from '../../src/admission/call-terms.ts';
import type { Claim } from '../../src/admission/claims.ts';
import {
  AdmitCommand,
  type AdmitResult,
  CancelCommand,
  type Command,
  LeaseCommand,
  SettleCommand,
  TakeCommand,
  type TakeResult,
} from '../../src/admission/commands.ts';
import { applyCreditScript } from '../../src/ledger/scripts.ts';
import type { Sweeper } from '../../src/ledger/sweep/sweeper.ts';
import { CANCELLED, chargedMicros, decodeUsageEvent } from '../../src/ledger/usage-event.ts';
import { fillWallet } from '../../src/ledger/wallets/fill-wallet.ts';
import { freeField } from '../../src/platform/redis-keys.ts';
import { eventsIn, hostOf, openIn, SHARDS, type Store, type StoredEvent } from '../support/store.ts';
import { COMPLETED, encodedKeys, listener, REFUNDED } from './calls.ts';
import { type Bucket, LEASE_MS, Model, type Moment, REQUEST } from './model.ts';
import type { DamageStep, Part, Step } from './model-steps.ts';

type Range = { least: number; most: number; touched?: boolean };
/** By bucket: how many tokens it may have at this point of the script. */
type Tokens = ReadonlyMap<string, Range>;

/** A hash as a script gets it. */
function hashOf(reply: unknown): Record<string, string> {
  const list = reply as readonly string[];
  return Object.fromEntries(list.flatMap((field, at) => (at % 2 === 0 ? [[field, list[at + 1] as string]] : [])));
}

const uuid = (kind: string, n: number): string => `00000000-0000-7000-${kind}-${String(n).padStart(12, '0')}`;
const accountOf = (id: number): number => id % 3;
/** Half of the calls of each account have its one idempotency key; one of these three calls has another target. */
const CLAIMS: readonly (Claim | null)[] = [null, null, null, 'target', 'target', 'another target'].map((target) =>
  target === null ? null : { name: 'claim', target },
);
const claimOf = (id: number): Claim | null => CLAIMS[Math.floor(id / 3)] ?? null;
const INSTANCES = ['gateway-0', 'gateway-1'];
const START_BALANCE = 4_000;

/** The account whose data are damaged. Replies to it depend on the damage, but holds and events of its calls are still exact. */
const VICTIM = 2;
const KEPT_OUT = ['call_in_progress', 'charged_before', 'idempotency_mismatch'];
const ALLOWED = [
  'admitted',
  'taken',
  'rate_limited',
  'revoked',
  'suspended',
  'insufficient_balance',
  'unavailable',
  ...KEPT_OUT,
];

/** One sequence of steps, carried out in Redis and in the model side by side. */
export class Run {
  readonly model = new Model();
  readonly totals = { admitted: 0, swept: 0, damaged: 0, unchanged: 0, keptOut: 0 };
  #isDamaged = false;
  readonly #store: Store;
  readonly #sweeper: Sweeper;
  readonly #freeCalls: number;
  readonly #terms = new Map<string, CallTerms>();
  /** What Postgres would hold: all credits, in order. The first is the start balance. */
  readonly #credits = new Map<string, number[]>([0, 1, 2].map((n) => [uuid('aaaa', n), [START_BALANCE]]));

  constructor(store: Store, sweeper: Sweeper, freeCalls: number) {
    this.#store = store;
    this.#sweeper = sweeper;
    this.#freeCalls = freeCalls;
  }

  async start(): Promise<void> {
    const now = await this.#store.now();
    await Promise.all([
      ...[0, 1, 2].flatMap((account) =>
        [0, 1].map((key) => this.#setKey(account, key, { limit: 300, active: true, tokens: null, ts: 0 })),
      ),
      ...INSTANCES.map((name) => this.#setLease(name, now)),
      // The third account's wallet is not loaded at first.
      ...[0, 1].map((account) => this.#hydrate(uuid('aaaa', account))),
    ]);
  }

  async take(step: Step | DamageStep): Promise<void> {
    if (step.op === 'damage') return this.#damage(step);
    if (this.#isDamaged && step.op === 'hydrate' && step.account === VICTIM) return;
    const account = 'account' in step ? uuid('aaaa', step.account) : '';
    switch (step.op) {
      case 'batch':
        return this.#batch(step);
      case 'sweep':
        return this.#sweep();
      case 'loseClaims':
        await this.#store.command('del', this.#claimsName(account));
        await this.#store.command('del', this.#timesName(account));
        this.model.claims.delete(account);
        return;
      case 'age':
        return this.#setLease(INSTANCES[step.instance] as string, (await this.#store.now()) - LEASE_MS - 5_000);
      case 'hydrate':
        return this.#hydrate(account);
      case 'addCredit':
        this.#credits.get(account)?.push(step.amount);
        return;
      case 'applyCredit':
        return this.#applyCredit(account, step.back);
      case 'key': {
        const ts = (await this.#store.now()) - step.agoMs;
        return this.#setKey(step.account, step.key, {
          limit: step.limit,
          active: step.active,
          tokens: step.tokens,
          ts,
        });
      }
    }
  }

  /** Checks that Redis has exactly the data that the model has. */
  async compare(): Promise<void> {
    const { keys } = this.#store;
    const everybody = Array.from(this.#credits.keys());
    const accounts = everybody.filter((account) => !this.#isVictim(account));
    const shards = Array.from({ length: SHARDS }, (_, shard) => shard);
    const found = await this.#store.replies([
      ...accounts.map((account) => ['hgetall', this.#store.walletName(account)]),
      ...everybody.map((account) => ['hgetall', this.#claimsName(account)]),
      ...everybody.map((account) => ['zrange', this.#timesName(account), '0', '-1']),
      ...shards.map((shard) => ['hgetall', keys.open[shard] as string]),
      ...shards.map((shard) => ['xrange', keys.usage[shard] as string, '-', '+']),
    ]);
    for (const account of accounts) this.#compareWallet(account, hashOf(found.shift()));
    const claims = everybody.map(() => hashOf(found.shift()));
    for (const [i, account] of everybody.entries()) this.#compareClaims(account, claims[i] ?? {}, found.shift());
    const open = shards.map(() => openIn(hashOf(found.shift())));
    for (const shard of shards) {
      const events = eventsIn(found.shift() as Parameters<typeof eventsIn>[0]);
      this.#compareShard(shard, open[shard] as Record<string, string>, events);
    }
    expect(found).toEqual([]);
  }

  #compareWallet(account: string, found: unknown): void {
    const wallet = this.model.wallets.get(account);
    const expected: Record<string, string> = {};
    if (wallet !== undefined) {
      expected.balance = String(wallet.balance);
      expected.credit_seq = String(wallet.creditSeq);
      Object.assign(expected, { debit_seq: '0', debited: '0' });
      for (const [service, used] of wallet.free) expected[freeField(service)] = String(used);
      expect(wallet.balance, 'a wallet is never overdrawn').toBeGreaterThanOrEqual(0);
      for (const used of wallet.free.values()) {
        expect(used, 'free slots are never exceeded').toBeLessThanOrEqual(this.#freeCalls);
        expect(used).toBeGreaterThanOrEqual(0);
      }
    }
    expect(found).toEqual(expected);
  }

  #compareClaims(account: string, found: Readonly<Record<string, string>>, times: unknown): void {
    const texts = Array.from(this.model.claims.get(account) ?? [], ([name, { state, id, target }]) => [
      name,
      [state, id, target, state === 'o' ? '-' : 'digest'],
    ]);
    const real = Object.entries(found).map(([name, text]) => [name, text.split('\t').toSpliced(2, 1).slice(0, 4)]);
    expect(real).toEqual(texts);
    expect(times).toEqual(Object.keys(found));
  }

  /** All gateways die. After the sweep, each admission must have exactly one event, and the money must add up. */
  async finish(): Promise<void> {
    const stale = (await this.#store.now()) - LEASE_MS - 5_000;
    await Promise.all(INSTANCES.map((name) => this.#setLease(name, stale)));
    await this.#sweep();
    await this.compare();
    expect(this.model.holds.size).toBe(0);
    for (const [id, times] of this.model.admitted) {
      expect(this.model.events.filter((event) => event.id === id)).toHaveLength(times);
    }
    for (const [account, wallet] of this.model.wallets) {
      const charged = this.model.events
        .filter((event) => event.account === account)
        .reduce((sum, event) => sum + event.charged, 0);
      const credited = (this.#credits.get(account) ?? []).slice(0, wallet.creditSeq).reduce((sum, a) => sum + a, 0);
      expect(wallet.balance + charged).toBe(credited);
    }
  }

  #compareShard(shard: number, open: Readonly<Record<string, string>>, events: readonly StoredEvent[]): void {
    const { keys } = this.#store;
    const here = (id: string) => keys.shardOf(uuid('aaaa', accountOf(Number(id.slice(-12))))) === shard;
    const holds = Object.entries(open).filter(([, hold]) => !hold.startsWith('x'));
    const expected = Array.from(this.model.holds).filter(([id]) => here(id));
    expect(Object.fromEntries(holds.map(([id, hold]) => [id, hold.split('\t').toSpliced(3, 1).slice(0, 7)]))).toEqual(
      Object.fromEntries(
        expected.map(([id, h]) => [
          id,
          ['v1', String(h.amount), h.free ? '1' : '0', h.instance, h.account, expect.any(String), h.service],
        ]),
      ),
    );
    const tombstones = Object.entries(open).filter(([, hold]) => hold.startsWith('x'));
    expect(tombstones.map(([id]) => id).sort()).toEqual(Array.from(this.model.tombstones).filter(here).sort());
    // Sorted: a sweep settles in the order in which Redis happens to scan.
    const real = events.map(({ usageId, hold, settlement }) =>
      decodeUsageEvent([usageId, hold, settlement].join('\t')),
    );
    expect(
      real.map((one) => `${one.usageId} ${one.outcome} ${chargedMicros(one)} ${one.capturedMicros}`).sort(),
    ).toEqual(
      this.model.events
        .filter(({ id }) => here(id))
        .map(({ id, outcome, charged, reported }) => `${id} ${outcome} ${charged} ${reported}`)
        .sort(),
    );
  }

  async #batch(step: Step & { op: 'batch' }): Promise<void> {
    const instance = INSTANCES[step.instance] as string;
    const results: (AdmitResult | TakeResult | 'key' | 'wallet' | undefined)[] = [];
    const parts = step.parts.map((part, i) => this.#commands(part, instance, (result) => (results[i] = result)));
    const host = hostOf(this.#store.keys, instance, {
      reloadAndRetry: (command, what) => (results[parts.findIndex((of) => of.includes(command))] = what),
      foundDamage: (what, accountId) => {
        expect(['wallet', 'key']).toContain(what);
        expect(this.#isVictim(accountId)).toBe(true);
        this.totals.damaged++;
      },
    });
    const victimBefore = this.#isDamaged ? await this.#victimsWallet() : null;
    const earliest = await this.#store.now();
    await this.#store.run(parts.flat(), host);
    if (this.#isDamaged && !step.parts.some((part, i) => mayMoveVictimsMoney(part, results[i]))) {
      expect(await this.#victimsWallet(), 'what was refused has changed nothing').toEqual(victimBefore);
      this.totals.unchanged++;
    }
    const at = { earliest, latest: await this.#store.now() };
    const tokens = new Map(Array.from(this.model.buckets, ([name, bucket]) => [name, this.model.tokens(bucket, at)]));
    for (const [i, part] of step.parts.entries()) this.#expect(part, instance, results[i], at, tokens);
    await this.#adoptBuckets(at, tokens);
  }

  #commands(part: Part, instance: string, done: (result: AdmitResult | TakeResult) => void): Command[] {
    if (part.op === 'lease') return Array.from({ length: SHARDS }, (_, shard) => new LeaseCommand(shard, instance));
    if (part.op === 'take') {
      return [new TakeCommand(keyName(part.account, part.key), uuid('aaaa', part.account), 0, done)];
    }
    const usageId = uuid('bbbb', part.id);
    const accountId = uuid('aaaa', accountOf(part.id));
    const claim = claimOf(part.id);
    if (part.op === 'cancel') return [new CancelCommand(usageId, accountId, CANCELLED, () => {}, claim)];
    if (part.op === 'settle') {
      const buyer = encodedKeys.buyer(keyName(accountOf(part.id), 0), accountId);
      const refund = part.end === 'refunded';
      const captured = typeof part.end === 'number' ? part.end : null;
      const charged = { bodyDigest: 'digest', keeps: captured === null, amountMicros: captured ?? 0 };
      const ended = claim && { name: claim.name, charged };
      return [new SettleCommand(usageId, buyer, refund, refund ? REFUNDED : COMPLETED, () => {}, captured, ended)];
    }
    const call = {
      usageId,
      buyer: encodedKeys.buyer(keyName(accountOf(part.id), part.key), accountId),
      terms: this.#termsOf(part),
      method: 'GET',
      path: `/by/${instance}`,
      tag: null,
      claim,
    };
    return [new AdmitCommand(call, listener(done))];
  }

  #expect(
    part: Part,
    instance: string,
    result: AdmitResult | TakeResult | string | undefined,
    at: Moment,
    tokens: Tokens,
  ) {
    const { model } = this;
    if (part.op === 'lease') model.leases.set(instance, at.latest);
    if (part.op === 'settle') {
      model.close(uuid('bbbb', part.id), part.end, part.end === 'refunded' ? 'refunded:upstream_error' : 'completed');
    }
    if (part.op === 'cancel') model.cancel(uuid('bbbb', part.id), 'refunded:unavailable');
    if (part.op !== 'admit' && part.op !== 'take') return;
    const key = keyName(part.op === 'take' ? part.account : accountOf(part.id), part.key);
    if (this.#isDamaged && key.startsWith(`key_${VICTIM}`)) {
      this.#adopt(part, instance, result);
      return;
    }
    const outcome = typeof result === 'object' ? result.outcome : result;
    if (!(model.buckets.get(key) as Bucket).active) {
      expect(outcome).toBe('revoked');
      return;
    }
    const range = tokens.get(key) as Range;
    if (outcome === 'rate_limited') {
      expect(range.least, 'a whole token passes').toBeLessThan(REQUEST);
      return;
    }
    expect(range.most, 'only a whole token passes').toBeGreaterThanOrEqual(REQUEST);
    if (part.op === 'take') expect(outcome).toBe('taken');
    else this.#expectAdmission(part, instance, result, outcome);
    // A refusal for lack of money, or for a claim, takes a token; a duplicate and 'not loaded' do not.
    if (![...KEPT_OUT, 'taken', 'admitted', 'insufficient_balance'].includes(outcome ?? '')) return;
    range.least = Math.max(range.least, REQUEST) - REQUEST;
    range.most -= REQUEST;
    range.touched = true;
  }

  /** Checks the reply to a command of the damaged account: nothing was done but what the reply says. */
  #adopt(part: Part, instance: string, result: AdmitResult | TakeResult | string | undefined): void {
    if (typeof result !== 'object') {
      expect(['key', 'wallet']).toContain(result);
      return;
    }
    expect([...ALLOWED, 'damaged']).toContain(result.outcome);
    if ('rate' in result) expect(Object.values(result.rate).every(Number.isFinite)).toBe(true);
    if (part.op !== 'admit' || result.outcome !== 'admitted') return;
    const { model } = this;
    const id = uuid('bbbb', part.id);
    expect(model.holds.has(id) || model.tombstones.has(id)).toBe(false);
    expect(Number.isSafeInteger(result.balanceMicros)).toBe(true);
    const hold = { amount: result.amountMicros, free: result.freeTier, instance };
    model.holds.set(id, { ...hold, account: uuid('aaaa', VICTIM), service: uuid('cccc', part.service) });
    model.admitted.set(id, (model.admitted.get(id) ?? 0) + 1);
    const claim = claimOf(part.id);
    if (claim !== null) model.claim(uuid('aaaa', VICTIM), claim, id);
  }

  /** The same object for the same terms, because a batch sends equal terms once for calls that follow each other. */
  #termsOf({ service, price, use, isFreeOnly }: Part & { op: 'admit' }): CallTerms {
    const name = `${service} ${price} ${use?.max} ${use?.ceiling} ${isFreeOnly}`;
    const known = this.#terms.get(name);
    if (known !== undefined) return known;
    const maxPriceMicros = use?.max ?? null;
    const listing = { id: uuid('cccc', service), providerId: uuid('dddd', 0), priceMicros: price, maxPriceMicros };
    const terms = new CallTerms({ ...listing, freeCalls: this.#freeCalls });
    const ceiled = use?.ceiling == null ? terms : terms.upTo(use.ceiling);
    const asked = isFreeOnly && ceiled.heldMicros > 0 ? ceiled.freeOnly() : ceiled;
    this.#terms.set(name, asked);
    return asked;
  }

  #expectAdmission(part: Part & { op: 'admit' }, instance: string, result: unknown, outcome: string | undefined): void {
    const account = accountOf(part.id);
    const call = {
      id: uuid('bbbb', part.id),
      account: uuid('aaaa', account),
      key: keyName(account, part.key),
      service: uuid('cccc', part.service),
      price: heldOf(part),
      quota: this.#freeCalls,
      isFreeOnly: part.isFreeOnly,
      instance,
      claim: claimOf(part.id),
    };
    const expected = this.model.admit(call);
    expect(outcome).toBe(expected === 'duplicate' ? 'unavailable' : expected);
    if (KEPT_OUT.includes(expected)) this.totals.keptOut++;
    if (expected !== 'admitted') return;
    this.totals.admitted++;
    const { amount, free } = this.model.holds.get(uuid('bbbb', part.id)) as { amount: number; free: boolean };
    const authorizedMicros = part.use === null ? null : free ? heldOf(part) : amount;
    expect(result).toMatchObject({
      amountMicros: amount,
      freeTier: free,
      freeLeft: this.model.freeLeft(call),
      authorizedMicros,
    });
  }

  /** Copies the real contents of the buckets into the model, after they were found to be within bounds. */
  async #adoptBuckets(at: Moment, tokens: Tokens): Promise<void> {
    for (const [name, bucket] of this.model.buckets) {
      const { least, most, touched } = tokens.get(name) as Range;
      if (touched !== true || (this.#isDamaged && name.startsWith(`key_${VICTIM}`))) continue;
      const account = uuid('aaaa', Number(name[4]));
      const real = await this.#store.hash(this.#store.keys.key(this.#store.keys.shardOf(account), name));
      bucket.tokens = Number(real.tokens);
      bucket.ts = Number(real.ts);
      expect(bucket.tokens).toBeGreaterThanOrEqual(least);
      expect(bucket.tokens).toBeLessThanOrEqual(most);
      expect(bucket.ts).toBeGreaterThanOrEqual(at.earliest);
      expect(bucket.ts).toBeLessThanOrEqual(at.latest);
    }
  }

  async #sweep(): Promise<void> {
    const now = await this.#store.now();
    // Leases are per shard; a sweep gives one to an instance that has none where it has holds.
    const swept = await this.#sweeper.sweepOnce();
    expect(swept).toBe(this.model.sweep(now));
    this.totals.swept += swept;
  }

  async #hydrate(account: string): Promise<void> {
    // Postgres knows all credits, and here nothing settled: only wallets that were never loaded are loaded.
    const credits = this.#credits.get(account) as number[];
    const balance = credits.reduce((sum, amount) => sum + amount, 0);
    const inTime = (await this.#store.now()) + 60_000;
    const content = { balance, creditSeq: credits.length, debitSeq: 0, debited: 0, free: null, budgets: null };
    const filled = await fillWallet(this.#store, account, content, { untilMs: inTime, seen: '', lastFlush: '' });
    expect(filled).toBe(this.model.wallets.has(account) ? 'was there' : 'filled');
    this.model.hydrate(account, balance, credits.length, new Map());
  }

  async #applyCredit(account: string, back: number): Promise<void> {
    const credits = this.#credits.get(account) as number[];
    const seq = Math.max(1, credits.length - back);
    const amount = credits[seq - 1] as number;
    const args = [this.#store.walletName(account), String(seq), String(amount), ''];
    const [outcome] = (await this.#store.redis.script(applyCreditScript, 1, args)) as number[];
    if (this.#isVictim(account)) expect([0, 1, 2, 3]).toContain(outcome);
    else expect(outcome).toBe(this.model.credit(account, seq, amount));
  }

  #claimsName(account: string): string {
    return this.#store.keys.claims(this.#store.keys.shardOf(account), account);
  }

  #timesName(account: string): string {
    return this.#store.keys.claimTimes(this.#store.keys.shardOf(account), account);
  }

  #isVictim(account: string): boolean {
    return this.#isDamaged && account === uuid('aaaa', VICTIM);
  }

  async #victimsWallet(): Promise<unknown> {
    const name = this.#store.walletName(uuid('aaaa', VICTIM));
    const isText = (await this.#store.command('type', name)) === 'string';
    return isText ? this.#store.command('get', name) : this.#store.hash(name);
  }

  async #damage({ what, key, value }: DamageStep): Promise<void> {
    const { keys } = this.#store;
    const account = uuid('aaaa', VICTIM);
    this.#isDamaged = true;
    this.model.wallets.delete(account);
    const name =
      what.of === 'wallet' ? this.#store.walletName(account) : keys.key(keys.shardOf(account), keyName(VICTIM, key));
    if (what.field === null || (await this.#store.command('type', name)) === 'string') {
      await this.#store.command('del', name);
      if (what.field === null && value !== null) await this.#store.command('set', name, value);
      if (what.field === null) return;
    }
    const service = /^free:(\d)$/.exec(what.field)?.[1];
    const field = service === undefined ? what.field : freeField(uuid('cccc', Number(service)));
    if (value === null) await this.#store.command('hdel', name, field);
    else await this.#store.command('hset', name, field, value);
  }

  async #setKey(account: number, key: number, bucket: Bucket): Promise<void> {
    const name = keyName(account, key);
    const accountId = uuid('aaaa', account);
    const redisName = this.#store.keys.key(this.#store.keys.shardOf(accountId), name);
    const tokens = bucket.tokens === null ? [] : ['tokens', bucket.tokens, 'ts', bucket.ts];
    // One connection, so in this order.
    await Promise.all([
      this.#store.command('del', redisName),
      this.#store.loadKey(name, accountId, bucket.limit, bucket.active ? 'active' : 'revoked'),
      ...(tokens.length === 0 ? [] : [this.#store.command('hset', redisName, ...tokens)]),
    ]);
    this.model.buckets.set(name, { ...bucket });
  }

  async #setLease(name: string, at: number): Promise<void> {
    await Promise.all(this.#store.keys.lease.map((lease) => this.#store.command('hset', lease, name, at)));
    this.model.leases.set(name, at);
  }
}

/** An admission, or the refund of a call. */
function mayMoveVictimsMoney(part: Part, result: AdmitResult | TakeResult | 'key' | 'wallet' | undefined): boolean {
  if (part.op === 'lease' || part.op === 'take' || accountOf(part.id) !== VICTIM) return false;
  if (part.op === 'admit') return typeof result === 'object' && result.outcome === 'admitted';
  return part.op === 'cancel' || part.end !== 'charged';
}

const heldOf = ({ price, use }: Part & { op: 'admit' }): number =>
  use === null ? price : Math.min(use.max, use.ceiling ?? use.max);

const keyName = (account: number, key: number): string => `key_${account}_${key}`;
