import fc from 'fast-check';
import { CallTerms } from '../../src/admission/call-terms.ts';
import { AdmitCommand, type AdmitResult, CancelCommand, SettleCommand } from '../../src/admission/commands.ts';
import { batchScript } from '../../src/admission/scripts.ts';
import { BUDGET_PERIODS } from '../../src/keys/budget-period.ts';
import { CANCELLED } from '../../src/ledger/usage-event.ts';
import { uuidv7 } from '../../src/platform/ids.ts';
import { freeField } from '../../src/platform/redis-keys.ts';
import { defineScript, type Script } from '../../src/platform/script.ts';
import { readInText } from '../support/child-state.ts';
import { hostOf, type Store } from '../support/store.ts';
import { BudgetModel, chainOf, type Key, type Told } from './budget-model.ts';
import { COMPLETED, encodedKeys, INSTANCE, listener, newKeyId, REFUNDED, take } from './calls.ts';

const CLOCK = 'test:clock';
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const START_MS = Date.UTC(2028, 1, 27, 23, 59);
const SERVICE = { id: uuidv7(), providerId: uuidv7() };

/** A script whose time is what a test has written, instead of Redis's. */
export function clocked({ name, source }: Script): Script {
  const asked = /\b(redis\.)?call\('TIME'\)/g;
  if (!asked.test(source)) throw new Error(`${name} does not ask for the time`);
  const told = `(function(t) return t[1] and t or redis.call('TIME') end)(redis.call('LRANGE', '${CLOCK}', 0, 1))`;
  return defineScript(name, source.replace(asked, told));
}

export const clockedBatch = clocked(batchScript);

export async function setClock(store: Store, nowMs: number): Promise<void> {
  await store.command('del', CLOCK);
  await store.command('rpush', CLOCK, Math.floor(nowMs / 1000), (nowMs % 1000) * 1000);
}

/** Writes the state of a tree as the gateway that manages its keys does. */
export function stateOf(keys: readonly Key[]): string[] {
  return keys.flatMap((key) => {
    if (key.parent === null) return ['limit', String(key.limit), 'status', key.status];
    const { limit, status, expiresAtMs, budget } = key;
    const its = budget === null ? '- - 0' : `${budget.amount} ${budget.kind} ${budget.number}`;
    return [key.id, `${limit} ${status} ${expiresAtMs} ${its}`];
  });
}

const nth = fc.nat(39);
const amount = fc.constantFrom(0, 1, 10, 35, 100);
const budget = fc.option(
  fc.record({ amount: fc.constantFrom(0, 10, 100, 1_000), kind: fc.constantFrom(...BUDGET_PERIODS) }),
  { nil: null, freq: 4 },
);
const limit = fc.constantFrom(1, 2, 60, 300);

/** Each key is the child of an earlier one; deeper than four levels it hangs from the root. */
export const tree = fc.array(fc.record({ parent: nth, limit, budget }), { minLength: 1, maxLength: 39 });

const call = fc.record({
  op: fc.constant('admit' as const),
  key: nth,
  id: fc.nat(15),
  price: amount,
  /** How much more a call priced by use may cost. */
  more: fc.option(fc.constantFrom(5, 900), { nil: null }),
  quota: fc.constantFrom(0, 0, 2),
  isFreeOnly: fc.constantFrom(false, false, true),
});

export const step = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.array(call, { minLength: 1, maxLength: 4 }).map((calls) => ({ op: 'calls' as const, calls })),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      op: fc.constant('end' as const),
      id: fc.nat(15),
      how: fc.oneof(fc.constantFrom('charge' as const, 'refund' as const, 'cancel' as const), amount),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constant('clock' as const),
      byMs: fc.constantFrom(
        1,
        999,
        MINUTE_MS,
        3_600_000,
        DAY_MS,
        31 * DAY_MS,
        -1,
        -MINUTE_MS,
        -2 * DAY_MS,
        -40 * DAY_MS,
      ),
    }),
  },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('take' as const), key: nth }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('credit' as const), amount: fc.constantFrom(50, 5_000) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant('terms' as const),
      key: nth,
      limit,
      isRevoked: fc.constantFrom(false, false, false, true),
      expiresInMs: fc.option(fc.constantFrom(0, MINUTE_MS, DAY_MS), { nil: null, freq: 2 }),
      /** Undefined: as before. */
      budget: fc.option(budget, { nil: undefined, freq: 3 }),
    }),
  },
);

export type Tree = typeof tree extends fc.Arbitrary<infer T> ? T : never;
export type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;
type Call = typeof call extends fc.Arbitrary<infer T> ? T : never;

function plant(planted: Tree): Key[] {
  const root: Key = {
    id: newKeyId(),
    parent: null,
    limit: 300,
    status: 'active',
    expiresAtMs: 0,
    budget: null,
    bucket: null,
  };
  const keys = [root];
  for (const { parent, limit: its, budget: given } of planted) {
    const above = keys[parent % keys.length] as Key;
    keys.push({
      id: newKeyId(),
      parent: chainOf(above).length < 3 ? above : root,
      limit: its,
      status: 'active',
      expiresAtMs: 0,
      budget: given === null ? null : { ...given, number: 0 },
      bucket: null,
    });
  }
  return keys;
}

/** One account with a tree of keys, in Redis and in the model. */
export class BudgetRun {
  readonly model = new BudgetModel(START_MS, 2_000);
  readonly #store: Store;
  readonly #accountId = uuidv7();
  readonly #keys: readonly Key[];
  readonly #ids = Array.from({ length: 16 }, () => uuidv7());
  readonly #fields: { readonly root: string; readonly wallet: string };

  constructor(store: Store, planted: Tree) {
    this.#store = store;
    this.#keys = plant(planted);
    const shard = store.keys.shardOf(this.#accountId);
    const root = store.keys.key(shard, (this.#keys[0] as Key).id);
    this.#fields = { root, wallet: store.keys.wallet(shard, this.#accountId) };
  }

  async begin(): Promise<void> {
    await setClock(this.#store, this.model.now);
    await this.#store.command('hset', this.#fields.root, ...stateOf(this.#keys));
    await this.#store.loadWallet(this.#accountId, this.model.balance);
  }

  /** Takes a step on both sides. @returns what each tells of it, if it tells something */
  async take(step: Step): Promise<readonly (readonly [told: Told, expected: Told])[]> {
    switch (step.op) {
      case 'calls':
        return this.#admit(step.calls);
      case 'end':
        await this.#end(step.id, step.how);
        return [];
      case 'clock':
        this.model.now += step.byMs;
        await setClock(this.#store, this.model.now);
        return [];
      case 'take':
        return this.#takeToken(this.#child(step.key));
      case 'credit':
        this.model.balance += step.amount;
        await this.#store.command('hincrby', this.#fields.wallet, 'balance', step.amount);
        return [];
      case 'terms':
        await this.#change(this.#child(step.key), step);
        return [];
    }
  }

  /** Any key but the root, whose calls are no calls of a child key. */
  #child(nth: number): Key {
    return this.#keys[1 + (nth % (this.#keys.length - 1))] as Key;
  }

  #sceneOf(key: Key) {
    const ancestors = [
      (this.#keys[0] as Key).id,
      ...chainOf(key)
        .slice(0, -1)
        .map(({ id }) => id),
    ];
    return { accountId: this.#accountId, keyId: key.id, serviceId: SERVICE.id, ancestors };
  }

  async #admit(calls: readonly Call[]): Promise<[Told, Told][]> {
    const results: AdmitResult[] = [];
    const commands = calls.map((asked, i) => {
      const { keyId, ancestors } = this.#sceneOf(this.#child(asked.key));
      const maxPriceMicros = asked.more === null ? null : asked.price + asked.more;
      const paid = new CallTerms({ ...SERVICE, priceMicros: asked.price, maxPriceMicros, freeCalls: asked.quota });
      const terms = asked.isFreeOnly && paid.heldMicros > 0 ? paid.freeOnly() : paid;
      const buyer = encodedKeys.buyer(keyId, this.#accountId, ancestors);
      const of = { tag: null, claim: null };
      const request = { usageId: this.#ids[asked.id] as string, buyer, terms, method: 'GET', path: '/x', ...of };
      return new AdmitCommand(
        request,
        listener((result) => (results[i] = result)),
      );
    });
    await this.#store.run(commands, hostOf(this.#store.keys, INSTANCE));
    return calls.map((asked, i) => {
      const held = asked.price + (asked.more ?? 0);
      // Nobody can pay the price of a call that must be free.
      const [price, least] =
        asked.isFreeOnly && held > 0 ? [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY] : [held, asked.price];
      const id = this.#ids[asked.id] as string;
      const expected = this.model.admit(id, this.#child(asked.key), { ...asked, price, least });
      return [toldOf(results[i] as AdmitResult), expected];
    });
  }

  async #end(nth: number, how: 'charge' | 'refund' | 'cancel' | number): Promise<void> {
    const id = this.#ids[nth] as string;
    // A cancellation without a hold would leave a tombstone.
    if (!this.model.holds.has(id)) return;
    const buyer = encodedKeys.buyer(newKeyId(), this.#accountId);
    const reported = typeof how === 'number' ? how : null;
    const refund = how === 'refund' || how === 'cancel';
    const command =
      how === 'cancel'
        ? new CancelCommand(id, this.#accountId, CANCELLED, () => {})
        : new SettleCommand(id, buyer, refund, refund ? REFUNDED : COMPLETED, () => {}, reported);
    await this.#store.run([command], hostOf(this.#store.keys, INSTANCE));
    this.model.close(id, refund, reported);
  }

  async #takeToken(key: Key): Promise<[Told, Told][]> {
    const { outcome, ...rest } = await take(this.#store, this.#sceneOf(key));
    const rate =
      'rate' in rest && (outcome === 'taken' || outcome === 'rate_limited') ? { tokens: rest.rate.tokens } : {};
    return [[{ outcome, ...rate }, this.model.take(key)]];
  }

  async #change(
    key: Key,
    { limit: its, isRevoked, expiresInMs, budget: given }: Step & { op: 'terms' },
  ): Promise<void> {
    key.limit = its;
    key.status = isRevoked ? 'revoked' : 'active';
    key.expiresAtMs = expiresInMs === null ? 0 : this.model.now + expiresInMs;
    if (given !== undefined) {
      const number = (key.budget?.number ?? 0) + (given?.kind === key.budget?.kind ? 0 : 1);
      key.budget = given === null ? null : { ...given, number };
    }
    await this.#store.command('hset', this.#fields.root, ...stateOf([key]));
  }

  /** What the wallet has, and what it should have. */
  async wallets(): Promise<readonly [Record<string, string>, Record<string, string>]> {
    const found = await readInText(this.#store.redis, this.#fields.wallet);
    const expected: Record<string, string> = { balance: String(this.model.balance), credit_seq: '1' };
    const free = freeField(SERVICE.id);
    if (free in found || this.model.freeUsed > 0) expected[free] = String(this.model.freeUsed);
    for (const { id, bucket } of this.#keys.slice(1)) {
      const { spent, period } = this.model.counters.get(id) ?? { spent: 0, period: 0 };
      if (bucket !== null) expected[id] = [bucket.tokens, bucket.ts, spent, period].join(' ');
    }
    return [found, expected];
  }
}

function toldOf(result: AdmitResult): Told {
  if (result.outcome === 'unavailable') return { outcome: 'unavailable' };
  const { outcome, rate } = result;
  if (outcome === 'revoked' || outcome === 'expired' || outcome === 'suspended') return { outcome };
  const told = { outcome, tokens: rate.tokens };
  if (outcome === 'admitted') {
    const { amountMicros, balanceMicros, freeTier, freeLeft } = result;
    return { ...told, amount: amountMicros, balance: balanceMicros, free: freeTier, freeLeft };
  }
  if (outcome === 'insufficient_balance') return { ...told, balance: result.balanceMicros };
  return outcome === 'budget_exceeded' ? { ...told, budget: result.budget } : told;
}
