// A buyer and a seller who act together, and an operator, against ten lines of arithmetic: what both books have after each step.

import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { storeCredit } from '../../../src/accounts/credits.ts';
import { storePayout } from '../../../src/accounts/payouts.ts';
import {
  type RefundedCall,
  selectCarriedMicros,
  selectRefundedCall,
} from '../../../src/accounts/refunds/refund-sql.ts';
import { storeRefund } from '../../../src/accounts/refunds/refunds.ts';
import type { KeyRecord } from '../../../src/keys/caller.ts';
import { PLATFORM_ACCOUNT_ID } from '../../../src/ledger/posting.ts';
import { storeEntries } from '../../../src/ledger/writing/flush.ts';
import { PostgresSession } from '../../../src/platform/postgres.ts';
import { newEvent } from '../../ledger/support.ts';
import { addAccount, OPERATOR } from '../../support/accounts.ts';
import { unfenced } from '../../support/unfenced.ts';
import { sql, url, useDatabase } from '../../support/use-database.ts';

const CREDITED = 1_000_000;

useDatabase();
let session: PostgresSession;
let buyer: KeyRecord;
let seller: KeyRecord;
beforeAll(() => {
  session = new PostgresSession({ url, applicationName: 'test' });
});
afterAll(() => session.close());

/** The last row of the journal before this sequence, and what the platform carried then. */
let before = { journalId: 0, carriedMicros: 0 };

/** Emptying the tables would take longer than the sequences do. */
async function reset(): Promise<void> {
  const [last] = await sql<{ id: number }[]>`SELECT coalesce(max(id), 0)::bigint AS id FROM journal`;
  before = { journalId: last?.id as number, carriedMicros: await selectCarriedMicros(sql) };
  [buyer, seller] = [await addAccount(sql, 'buyer'), await addAccount(sql, 'provider')];
  const credit = { accountId: buyer.accountId, amountMicros: CREDITED, reference: `in ${buyer.accountId}` };
  await storeCredit(unfenced(sql), credit, OPERATOR);
}

type Refund = {
  readonly kind: 'refund';
  /** Which of the calls made so far. */
  readonly call: number;
  readonly part: number | 'rest';
  readonly reference: string;
  readonly isOperator: boolean;
};
type Step =
  | { readonly kind: 'call'; readonly price: number; readonly feeBasisPoints: number }
  | { readonly kind: 'payout'; readonly micros: number }
  | Refund;

/** The balances, by arithmetic. A step that is refused changes nothing. */
class Arithmetic {
  wallet = CREDITED;
  earnings = 0;
  fees = 0;
  paid = 0;
  readonly calls: { readonly price: number; readonly fee: number; back: number }[] = [];
  readonly #given = new Map<string, string>();

  do(step: Step): 'done' | 'again' | 'refused' {
    if (step.kind === 'refund') return this.#refund(step);
    if (step.kind === 'payout') {
      if (step.micros > this.earnings) return 'refused';
      [this.earnings, this.paid] = [this.earnings - step.micros, this.paid + step.micros];
      return 'done';
    }
    const { price } = step;
    const fee = Math.floor((price * step.feeBasisPoints) / 10_000);
    this.calls.push({ price, fee, back: 0 });
    [this.wallet, this.earnings, this.fees] = [this.wallet - price, this.earnings + price - fee, this.fees + fee];
    return 'done';
  }

  #refund({ call, part, reference, isOperator }: Refund): 'done' | 'again' | 'refused' {
    const its = this.calls[call % this.calls.length] as { readonly price: number; readonly fee: number; back: number };
    const left = its.price - its.back;
    const amount = part === 'rest' ? left : part;
    const [name, what] = [`${isOperator} ${reference}`, (given: number) => `${this.calls.indexOf(its)} ${given}`];
    const stood = this.#given.get(name);
    if (stood !== undefined) {
      const isSame =
        part === 'rest' ? stood === `${what(Number(stood.split(' ')[1]))} whole` : stood.startsWith(`${what(part)} `);
      return isSame ? 'again' : 'refused';
    }
    const feeBack =
      Math.floor((its.fee * (its.back + amount)) / its.price) - Math.floor((its.fee * its.back) / its.price);
    if (left === 0 || amount > left || (!isOperator && this.earnings < amount - feeBack)) return 'refused';
    this.#given.set(name, `${what(amount)} ${amount === left ? 'whole' : 'part'}`);
    its.back += amount;
    [this.wallet, this.earnings, this.fees] = [
      this.wallet + amount,
      this.earnings - amount + feeBack,
      this.fees - feeBack,
    ];
    return 'done';
  }
}

const usageIds: string[] = [];

async function sell(price: number, feeBasisPoints: number): Promise<void> {
  const { accountId, keyId } = buyer;
  const event = newEvent({ accountId, keyId, providerId: seller.accountId, heldMicros: price });
  const entry = { shard: 0, id: '1-1', fields: [], event, error: '', isNewer: false };
  await session.transaction(() => storeEntries(session, [entry], feeBasisPoints));
  usageIds.push(event.usageId);
}

/** @returns what the books say that it cost the platform, beside the outcome */
async function giveBack({ call, part, reference, isOperator }: Refund) {
  const usageId = usageIds[call % usageIds.length] as string;
  // Operators have one set of references, also over sequences.
  const ofSequence = { reason: 'a test', reference: `${before.journalId} ${reference}` };
  const wanted = { usageId, amountMicros: part === 'rest' ? null : part, ...ofSequence };
  const giver = { isOperator, accountId: isOperator ? PLATFORM_ACCOUNT_ID : seller.accountId };
  const its = (await selectRefundedCall(sql, usageId)) as RefundedCall;
  const stored = await storeRefund(unfenced(sql), its, wanted, giver, OPERATOR);
  const { feeMicros = 0, carriedMicros = 0 } = stored?.created ? stored.refund : {};
  return { outcome: stored?.created ? 'done' : 'again', cost: feeMicros + carriedMicros };
}

async function doStep(step: Step): Promise<{ outcome: string; cost: number }> {
  try {
    if (step.kind === 'refund') return await giveBack(step);
    if (step.kind === 'call') await sell(step.price, step.feeBasisPoints);
    else {
      const payout = { accountId: seller.accountId, amountMicros: step.micros, reference: `out ${Math.random()}` };
      await storePayout(unfenced(sql), payout, OPERATOR);
    }
    return { outcome: 'done', cost: 0 };
  } catch (error) {
    expect(error).toMatchObject({ code: 'conflict' });
    return { outcome: 'refused', cost: 0 };
  }
}

type Books = { wallet: number; earnings: number; fees: number; cash: number };

async function readBooks(): Promise<Books> {
  const rows = await sql<{ ledger: keyof Books; balance: number }[]>`
    SELECT ledger, sum(amount)::bigint AS balance FROM entries
    WHERE journal_id > ${before.journalId} GROUP BY ledger`;
  const books = { wallet: 0, earnings: 0, fees: 0, cash: 0 };
  for (const { ledger, balance } of rows) books[ledger] = balance;
  return books;
}

/** The platform's own money: its cash, less what it owes. Nobody can make a provider pay what its earnings lack. */
const own = ({ wallet, earnings, cash }: Books): number => -cash - wallet - Math.max(earnings, 0);

const price = fc.oneof(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: 30_000 }));
const refund = (isOperator: fc.Arbitrary<boolean>): fc.Arbitrary<Step> =>
  fc.record({
    kind: fc.constant('refund' as const),
    call: fc.nat(3),
    part: fc.oneof(fc.constant('rest' as const), fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 30_000 })),
    reference: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'),
    isOperator,
  });
const stepsWith = (isOperator: fc.Arbitrary<boolean>) =>
  fc.array(
    fc.oneof(
      {
        weight: 3,
        arbitrary: fc.record({
          kind: fc.constant('call' as const),
          price,
          feeBasisPoints: fc.constantFrom(250, 1_000, 3_333),
        }),
      },
      { weight: 7, arbitrary: refund(isOperator) },
      { weight: 2, arbitrary: fc.record({ kind: fc.constant('payout' as const), micros: price }) },
    ),
    { minLength: 4, maxLength: 24 },
  );

/** A sequence begins with a call: before it there is nothing to give back. */
async function begin(): Promise<Arithmetic> {
  await reset();
  usageIds.length = 0;
  const expected = new Arithmetic();
  const first = { kind: 'call', price: 10_000, feeBasisPoints: 1_250 } as const;
  expected.do(first);
  await doStep(first);
  return expected;
}

describe('a buyer and a seller who act together', () => {
  it('take no money from the platform in any order of steps, and a refund by an operator costs what the books say', {
    timeout: 180_000,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(stepsWith(fc.boolean()), async (steps) => {
        const expected = await begin();
        let [owned, operatorCost, carriedMost] = [own(await readBooks()), 0, 0];
        for (const step of steps) {
          const wanted = expected.do(step);
          const { outcome, cost } = await doStep(step);
          expect([step, outcome]).toEqual([step, wanted]);
          const books = await readBooks();
          const { wallet, earnings, fees, paid } = expected;
          expect(books).toEqual({ wallet, earnings, fees, cash: paid - CREDITED });
          // What the platform has of its own is its fees, less what it carries.
          const carried = (await selectCarriedMicros(sql)) - before.carriedMicros;
          expect([carried, own(books)]).toEqual([Math.max(0, -earnings), fees - carried]);
          if (step.kind === 'refund') {
            expect(owned - own(books), 'a refund costs the platform its fee back and what it carries').toBe(cost);
            if (step.isOperator) operatorCost += cost;
          }
          owned = own(books);
          carriedMost = Math.max(carriedMost, carried);
          expect(own(books)).toBeGreaterThanOrEqual(-operatorCost);
          if (carriedMost === 0) expect(wallet + earnings + paid).toBeLessThanOrEqual(CREDITED);
        }
      }),
      { numRuns: 30 },
    );
  });

  it('take no money from the platform by simultaneous refunds', async () => {
    await fc.assert(
      fc.asyncProperty(stepsWith(fc.constant(false)), async (steps) => {
        await begin();
        const calls = steps.filter(({ kind }) => kind === 'call').slice(0, 3);
        for (const step of calls) await doStep(step);
        await Promise.all(steps.filter(({ kind }) => kind !== 'call').map(doStep));
        const { wallet, earnings, fees, cash } = await readBooks();
        const [kept] = await sql<{ fees: number }[]>`
          SELECT sum(fee - fee * back / amount)::bigint AS fees FROM calls CROSS JOIN LATERAL (
            SELECT coalesce(sum(r.amount), 0)::bigint AS back FROM refunds r WHERE r.usage_id = calls.usage_id) AS refunds
          WHERE account_id = ${buyer.accountId}`;
        expect([fees, earnings >= 0]).toEqual([kept?.fees, true]);
        expect(wallet + earnings + (cash + CREDITED)).toBe(CREDITED - fees);
        const over = await sql`
          SELECT FROM refunds r JOIN calls c USING (usage_id) GROUP BY c.usage_id, c.amount HAVING sum(r.amount) > c.amount`;
        expect(over).toHaveLength(0);
      }),
      { numRuns: 15 },
    );
  });
});
