// Calls priced by use, however they end, in a real Redis and a real Postgres, against ten lines of arithmetic (`Purse`).

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { CallTerms } from '../../src/admission/call-terms.ts';
import { type AdmitRequest, CancelCommand, SettleCommand } from '../../src/admission/commands.ts';
import { Sweeper } from '../../src/ledger/sweep/sweeper.ts';
import { CANCELLED, feeMicros } from '../../src/ledger/usage-event.ts';
import { uuidv7 } from '../../src/platform/ids.ts';
import { freeField } from '../../src/platform/redis-keys.ts';
import { admit, COMPLETED, INSTANCE, newScene, REFUNDED, requestAt, type Scene } from '../admission/calls.ts';
import { hostOf, QUIET } from '../support/store.ts';
import { FEE_BASIS_POINTS } from './support.ts';
import { ledger, useLedger } from './use-ledger.ts';

useLedger();

const LEASE_SECONDS = 15;

const amount = fc.oneof(fc.constantFrom(0, 1, 7, 2_000), fc.nat(60_000));
const owned = fc.oneof(amount, fc.nat(500_000));
const listing = fc.record({
  price: fc.constantFrom(0, 1, 2_000),
  /** Null: a fixed price. */
  above: fc.option(amount, { nil: null, freq: 3 }),
  freeCalls: fc.constantFrom(0, 0, 1, 3),
});
/** How a call ends: what was reported, or what happens without a report. */
const ending = fc.oneof(
  amount,
  fc.constantFrom(
    'price' as const,
    'hold' as const,
    'refunded' as const,
    'cancelled' as const,
    Number.MAX_SAFE_INTEGER,
  ),
);
const begin = fc.record({ buyer: fc.nat(1), of: fc.nat(1), ceiling: fc.option(amount, { nil: null, freq: 2 }) });
const step = fc.oneof(begin, fc.record({ which: fc.nat(), ending }));

type Listing = typeof listing extends fc.Arbitrary<infer T> ? T : never;
type Begin = typeof begin extends fc.Arbitrary<infer T> ? T : never;
type Ending = (typeof ending extends fc.Arbitrary<infer T> ? T : never) | 'abandoned';
type Begun = { of: number; price: number; held: number; authorized: number | null; isFree: boolean };

/** The arithmetic: what a buyer has, and what each of its calls cost. */
class Purse {
  readonly used = [0, 0];
  balance: number;

  constructor(balance: number) {
    this.balance = balance;
  }

  begin({ price, above, freeCalls }: Listing, of: number, ceiling: number | null): Begun | null {
    const most = above === null ? price : Math.min(price + above, Math.max(price, ceiling ?? Infinity));
    const isFree = most > 0 && (this.used[of] as number) < freeCalls;
    const held = isFree ? 0 : most;
    if (held > 0 && held > this.balance) return null;
    if (isFree) (this.used[of] as number)++;
    this.balance -= held;
    return { of, price, held, authorized: above === null ? null : most, isFree };
  }

  end({ of, price, held, isFree }: Begun, how: Ending): number {
    const isBack = how === 'refunded' || how === 'cancelled' || how === 'abandoned';
    const asked = isBack ? 0 : ({ price, hold: held }[how as 'price'] ?? Number(how));
    const charged = Math.min(asked, held);
    if (isBack && isFree) (this.used[of] as number)--;
    this.balance += held - charged;
    return charged;
  }
}

type Buyer = { readonly scene: Scene; readonly purse: Purse };
type Open = Begun & { readonly request: AdmitRequest; readonly purse: Purse };

/** One sequence of steps, carried out in the stores and by arithmetic side by side. */
class Run {
  static captured = 0;
  static clamped = 0;
  readonly #listings: readonly Listing[];
  readonly #terms: readonly CallTerms[];
  readonly #buyers: Buyer[] = [];
  readonly #open: Open[] = [];
  readonly #charged = new Map<string, number>();
  readonly #authorized = new Map<string, number | null>();

  constructor(listings: readonly Listing[]) {
    this.#listings = listings;
    this.#terms = listings.map(({ price, above, freeCalls }) => {
      const maxPriceMicros = above === null ? null : price + above;
      return new CallTerms({ id: uuidv7(), providerId: uuidv7(), priceMicros: price, maxPriceMicros, freeCalls });
    });
  }

  async addBuyer(balance: number): Promise<void> {
    const scene = { ...newScene(), accountId: await ledger.account(balance) };
    await ledger.store.loadKey(scene.keyId, scene.accountId);
    await ledger.setWallet(scene.accountId, balance);
    this.#buyers.push({ scene, purse: new Purse(balance) });
  }

  async begin({ buyer, of, ceiling }: Begin): Promise<void> {
    const { scene, purse } = this.#buyers[buyer] as Buyer;
    const [listing, terms] = [this.#listings[of] as Listing, this.#terms[of] as CallTerms];
    const request = requestAt(scene, ceiling === null ? terms : terms.upTo(Math.max(listing.price, ceiling)));
    const begun = purse.begin(listing, of, ceiling);
    const told = await admit(ledger.store, request);
    if (begun === null) {
      expect(told.outcome).toBe('insufficient_balance');
      return;
    }
    const { held, isFree, authorized } = begun;
    const says = { amountMicros: held, freeTier: isFree, authorizedMicros: authorized, balanceMicros: purse.balance };
    expect(told).toMatchObject({ outcome: 'admitted', ...says });
    this.#authorized.set(request.usageId, authorized);
    this.#open.push({ ...begun, request, purse });
  }

  async end(which: number, how: Ending): Promise<void> {
    const [call] = this.#open.splice(which % this.#open.length, 1);
    if (call === undefined) return;
    const { usageId, buyer } = call.request;
    const refund = how === 'refunded';
    const captured = how === 'price' ? call.price : typeof how === 'number' ? how : null;
    const command =
      how === 'cancelled'
        ? new CancelCommand(usageId, buyer.accountId, CANCELLED, () => {})
        : new SettleCommand(usageId, buyer, refund, refund ? REFUNDED : COMPLETED, () => {}, captured);
    await ledger.store.run([command], hostOf(ledger.store.keys, INSTANCE));
    this.#charged.set(usageId, call.purse.end(call, how));
    if (captured === null || call.held === 0) return;
    Run.captured++;
    if (captured > call.held) Run.clamped++;
  }

  /** The gateway dies: the sweep ends what is open. */
  async abandonAll(): Promise<void> {
    const { store } = ledger;
    const dead = (await store.now()) - (LEASE_SECONDS + 5) * 1000;
    for (const lease of store.keys.lease) await store.command('hset', lease, INSTANCE, dead);
    const { redis, keys } = store;
    await new Sweeper({ redis, keys, leaseSeconds: LEASE_SECONDS, isReconciled: () => true, log: QUIET }).sweepOnce();
    for (const call of this.#open) this.#charged.set(call.request.usageId, call.purse.end(call, 'abandoned'));
  }

  /** Both stores have what arithmetic says. */
  async compare(): Promise<void> {
    await ledger.readBooks();
    const rows = await ledger.sql<{ id: string; amount: number; fee: number; authorized: number | null }[]>`
      SELECT usage_id AS id, amount, fee, authorized FROM calls`;
    expect(new Map(rows.map(({ id, amount }) => [id, amount]))).toEqual(this.#charged);
    expect(new Map(rows.map(({ id, authorized }) => [id, authorized]))).toEqual(this.#authorized);
    for (const { amount, fee } of rows) expect(fee).toBe(feeMicros(amount, FEE_BASIS_POINTS));
    for (const { scene, purse } of this.#buyers) {
      const wallet = await ledger.store.hash(ledger.store.walletName(scene.accountId));
      expect([Number(wallet.balance), await ledger.balance(scene.accountId)]).toEqual([purse.balance, purse.balance]);
      expect(this.#terms.map(({ serviceId }) => Number(wallet[freeField(serviceId)] ?? 0))).toEqual(purse.used);
    }
  }
}

const drifts = async () => (await ledger.reconciler().run('test')).reports.flatMap((report) => report.drifts);

it('whatever is reported, allowed and owned, each call costs what arithmetic says, in Redis and in Postgres', async () => {
  const steps = fc.array(step, { minLength: 15, maxLength: 40 });
  const property = fc.asyncProperty(
    fc.tuple(listing, listing),
    fc.tuple(owned, owned),
    steps,
    async (listings, balances, all) => {
      await ledger.clear();
      await ledger.knowRedis();
      const run = new Run(listings);
      // A credit of nothing is none.
      for (const balance of balances) await run.addBuyer(balance + 1);
      for (const one of all) await ('of' in one ? run.begin(one) : run.end(one.which, one.ending));
      expect(await drifts(), 'with open holds and waiting events').toEqual([]);
      await run.abandonAll();
      const writer = ledger.startWriter();
      await ledger.drained();
      await writer.stop();
      expect(await drifts(), 'when all is stored').toEqual([]);
      await run.compare();
    },
  );
  await fc.assert(property, { numRuns: 18 });
  // Makes sure that the sequences reach the cases they are meant to test.
  expect(Run.captured).toBeGreaterThan(12);
  expect(Run.clamped).toBeGreaterThan(3);
});
