import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { uuidv7 } from '../../../src/platform/ids.ts';
import { selectEvidence } from '../../../src/quality/quality-sql.ts';
import { addKeyTo } from '../../support/accounts.ts';
import { answerOf, RefundMarket } from './refund-market.ts';

let market: RefundMarket;
beforeAll(async () => {
  market = await RefundMarket.open();
});
afterAll(() => market.close());
beforeEach(() => market.clear());

const DAY_MS = 86_400_000;
const conflict = (fields: object = {}, message: RegExp = /./) =>
  expect.objectContaining({ code: 'conflict', fields, message: expect.stringMatching(message) });

describe('a refund', () => {
  it('returns money of the buyer, the provider and the fee; the fees of its parts add up to the whole fee', async () => {
    const buyer = await market.buyer();
    // With the fee of 2.5 %, rounded down: 249 of 9 999.
    const call = await market.sold(buyer, { heldMicros: 9_999 });
    expect(await market.money(buyer)).toEqual([990_001, 990_001, 9_750, 249]);
    expect(answerOf(await market.refund(call, { amount: 0.003333, reference: 'a' }))).toEqual([
      201,
      {
        usage_id: call.usageId,
        amount: 0.003333,
        fee: 0.000083,
        carried: 0,
        refunded: 0.003333,
        reason: 'cut off',
        reference: 'a',
        by: 'provider',
        created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      },
    ]);
    expect(await market.money(buyer)).toEqual([993_334, 993_334, 6_500, 166]);
    const rest = answerOf(await market.refund(call, { reference: 'b' }, market.admin))[1];
    expect(rest).toMatchObject({ amount: 0.006666, fee: 0.000166, refunded: 0.009999, by: 'operator' });
    expect(await market.money(buyer)).toEqual([1_000_000, 1_000_000, 0, 0]);
    await market.check();
  });

  it('is one journal row of its own kind', async () => {
    const call = await market.sold(await market.buyer());
    await market.refund(call, { reference: 'complaint 17' });
    const rows = await market.compared.ledger.sql`
      SELECT j.kind, j.reference, e.ledger, e.amount FROM journal j JOIN entries e ON e.journal_id = j.id
      WHERE j.kind = 'refund' ORDER BY e.ledger`;
    expect(rows.map((row) => Object.values(row))).toEqual([
      ['refund', 'complaint 17', 'earnings', -9_750],
      ['refund', 'complaint 17', 'fees', -250],
      ['refund', 'complaint 17', 'wallet', 10_000],
    ]);
  });

  it('is made once per reference, even by simultaneous requests, and a repeat gets the same answer', async () => {
    const buyer = await market.buyer();
    const [call, other] = [await market.sold(buyer), await market.sold(buyer)];
    const all = await Promise.all(Array.from({ length: 8 }, () => market.refund(call, { amount: 0.004 })));
    expect(all.map(({ status }) => status).sort()).toEqual([...Array(7).fill(200), 201]);
    expect(new Set(all.map(({ body }) => JSON.stringify(body))).size).toBe(1);
    await expect(market.refund(call, { amount: 0.003 })).rejects.toEqual(conflict({}, /^reference: /));
    await expect(market.refund(call)).rejects.toEqual(conflict({}, /^reference: /));
    await expect(market.refund(other, { amount: 0.004 })).rejects.toEqual(conflict({}, /^reference: /));
    // Operators have references of their own.
    expect((await market.refund(call, {}, market.admin)).status).toBe(201);
    expect((await market.refund(call, {}, market.admin)).status).toBe(200);
    expect(await market.money(buyer)).toEqual([990_000, 990_000, 9_750, 250]);
    await market.check();
  });

  it('gives back no more than is left of the charge, whatever simultaneous requests ask for', async () => {
    const buyer = await market.buyer();
    const call = await market.sold(buyer);
    await market.sold(buyer);
    const tries = await Promise.allSettled(
      ['a', 'b', 'c', 'd'].map((reference) => market.refund(call, { amount: 0.004, reference })),
    );
    expect(tries.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
    await expect(market.refund(call, { amount: 0.003, reference: 'e' })).rejects.toEqual(conflict({ left: 0.002 }));
    await market.refund(call, { reference: 'f' });
    await expect(market.refund(call, { reference: 'g' })).rejects.toEqual(
      conflict({ left: 0 }, /whole amount of the call/),
    );
    expect(await market.money(buyer)).toEqual([990_000, 990_000, 9_750, 250]);
    await market.check();
  });

  it('is refused for calls that cost nothing, that are too old, or whose accounts are closed', async () => {
    const buyer = await market.buyer();
    const free = await market.sold(buyer, { heldMicros: 0, freeTier: true });
    await expect(market.refund(free)).rejects.toEqual(conflict({ left: 0 }, /cost nothing/));
    const [young, old] = [89.9, 90.1].map((days) => Date.now() - days * DAY_MS) as [number, number];
    const tooOld = await market.sold(buyer, { admittedAtMs: old, usageId: uuidv7(old) });
    await expect(market.refund(tooOld)).rejects.toEqual(conflict({}, /within 90 days/));
    await expect(market.refund(tooOld, {}, market.admin)).rejects.toEqual(conflict({}, /within 90 days/));
    const inTime = await market.sold(buyer, { admittedAtMs: young, usageId: uuidv7(young) });
    expect((await market.refund(inTime)).status).toBe(201);
    for (const closed of [buyer.accountId, market.provider.accountId]) {
      const { sql } = market.compared.ledger;
      const call = await market.sold(buyer);
      await sql`UPDATE accounts SET status = 'closed' WHERE id = ${closed}`;
      await expect(market.refund(call, { reference: closed }, market.admin)).rejects.toEqual(conflict({}, /closed/));
      await sql`UPDATE accounts SET status = 'active' WHERE id = ${closed}`;
    }
    await market.check();
  });

  it('can be made by the provider of the call and by admins; others are answered not_found or forbidden', async () => {
    const { sql } = market.compared.ledger;
    const buyer = await market.buyer();
    const call = await market.sold(buyer);
    const missing = { code: 'not_found' };
    const stranger = await addKeyTo(sql, (await market.buyer()).accountId, 'provider');
    await expect(market.refund(call, {}, stranger)).rejects.toMatchObject(missing);
    for (const usageId of [uuidv7(), 'nonsense', 'ffffffff-ffff-7fff-bfff-ffffffffffff']) {
      await expect(market.refund({ usageId })).rejects.toMatchObject(missing);
    }
    const sellsToo = await addKeyTo(sql, buyer.accountId, 'provider');
    await expect(market.refund(call, {}, sellsToo)).rejects.toMatchObject({ code: 'forbidden' });
    expect(await market.money(buyer)).toEqual([990_000, 990_000, 9_750, 250]);
  });

  it('by a provider is covered by its earnings; by an operator it may make them negative, which stops payouts', async () => {
    const buyer = await market.buyer();
    const call = await market.sold(buyer);
    await market.payout(9_000);
    await expect(market.refund(call)).rejects.toEqual(
      conflict({ payable: 0.00075 }, /0.00975 USD of it would come out/),
    );
    const [status, answer] = answerOf(await market.refund(call, { amount: 0.005, reason: 'upheld' }, market.admin));
    expect([status, answer.fee, answer.carried]).toEqual([201, 0.000125, 0.004125]);
    expect(await market.money(buyer)).toEqual([995_000, 995_000, -4_125, 125]);
    await expect(market.payout(1, 'q')).rejects.toEqual(conflict({ payable: 0 }));
    await expect(market.refund(call, { amount: 0.000001 })).rejects.toEqual(conflict({ payable: 0 }));
    // All of the second one is carried, too.
    expect(answerOf(await market.refund(call, { reference: 'rest' }, market.admin))[1].carried).toBe(0.004875);
    expect((await market.ask('GET /earnings/me', market.provider)).payable).toBe(-0.009);
    await market.sold(buyer);
    expect(await market.payout(750, 'q')).toMatchObject({ created: true });
    const acts = await market.compared.ledger.sql`
      SELECT action, subject_type, subject_id, before, after FROM audit WHERE subject_id = ${call.usageId} ORDER BY id`;
    expect(acts[0]).toEqual({
      action: 'call.refund',
      subject_type: 'call',
      subject_id: call.usageId,
      before: { refunded: 0, payable: 0.00075 },
      after: {
        refunded: 0.005,
        payable: -0.004125,
        amount: 0.005,
        carried: 0.004125,
        reference: 'r',
        reason: 'upheld',
      },
    });
    expect(acts).toHaveLength(2);
    await market.check();
  });

  it('refuses characters in its texts that its readers cannot see', async () => {
    const call = await market.sold(await market.buyer());
    for (const field of ['reason', 'reference']) {
      await expect(market.refund(call, { [field]: 'paid\u202e' })).rejects.toMatchObject({
        code: 'invalid_request',
        message: expect.stringMatching(new RegExp(`^${field}: .*invisible`)),
      });
    }
    await market.check();
  });

  it('that consists only of the fee needs no earnings', async () => {
    const buyer = await market.buyer();
    const call = await market.sold(buyer, { heldMicros: 40 });
    await market.payout(39);
    await market.refund(call, { amount: 0.000039, reference: 'most' }, market.admin);
    expect(await market.money(buyer)).toEqual([999_999, 999_999, -39, 1]);
    const [status, { fee, carried }] = answerOf(await market.refund(call, { reference: 'rest' }));
    expect([status, fee, carried]).toEqual([201, 0.000001, 0]);
    expect(await market.money(buyer)).toEqual([1_000_000, 1_000_000, -39, 0]);
    await market.check();
  });

  it('does not lift a wallet above its maximum', async () => {
    const buyer = await market.buyer(4e15 - 1);
    const call = await market.sold(buyer, { heldMicros: 2 });
    await market.compared.ledger.credit(buyer.accountId, 2);
    await expect(market.refund(call)).rejects.toEqual(conflict({}, /above 4000000000 USD/));
    expect((await market.refund(call, { amount: 0.000001 })).status).toBe(201);
  });
});

describe('what was given back', () => {
  it('is shown in the record of the call, in statements and earnings of both sides, and in the list of operators', async () => {
    const { provider, admin } = market;
    const buyer = await market.buyer();
    const call = await market.sold(buyer);
    expect(await market.record(call, buyer)).not.toHaveProperty('refunded');
    await market.refund(call, { amount: 0.004, reference: 'a' });
    await market.refund(call, { amount: 0.001, reference: 'b' }, admin);
    const at = expect.any(String);
    for (const by of [buyer, provider, admin]) {
      expect(await market.record(call, by)).toMatchObject({
        outcome: 'completed',
        amount: 0.01,
        refunded: 0.005,
        refunds: [
          { amount: 0.004, reason: 'cut off', reference: 'a', by: 'provider', created_at: at },
          { amount: 0.001, reason: 'cut off', reference: 'b', by: 'operator', created_at: at },
        ],
      });
    }
    const { records, total_spent } = await market.ask('GET /usage/me', buyer);
    expect([total_spent, records[0].refunded, records[0].refunds]).toEqual([0.01, 0.005, undefined]);
    const of = { usage_id: call.usageId, service_id: market.serviceId, service_name: 'maps', reason: 'cut off' };
    const bought = await market.ask('GET /statement/me', buyer);
    expect(bought.movements.map(({ at: _, ...row }: { at: string }) => row)).toEqual([
      { kind: 'refund', amount: 0.001, balance: 0.995, reference: 'b', ...of },
      { kind: 'refund', amount: 0.004, balance: 0.994, reference: 'a', ...of },
      expect.objectContaining({ kind: 'charge', amount: -0.01, balance: 0.99 }),
      expect.objectContaining({ kind: 'credit', amount: 1, balance: 1 }),
    ]);
    const sold = await market.ask('GET /statement/me', provider);
    expect(sold.movements.map(({ at: _, ...row }: { at: string }) => row)).toEqual([
      { kind: 'refund', amount: -0.001, balance: 0.004875, reference: 'b', ...of },
      { kind: 'fee', amount: 0.000025, balance: 0.005875, reference: 'b', ...of },
      { kind: 'refund', amount: -0.004, balance: 0.00585, reference: 'a', ...of },
      { kind: 'fee', amount: 0.0001, balance: 0.00985, reference: 'a', ...of },
      expect.objectContaining({ kind: 'fee', amount: -0.00025, balance: 0.00975 }),
      expect.objectContaining({ kind: 'earning', amount: 0.01, balance: 0.01 }),
    ]);
    const sums = { calls: 1, free_calls: 0, gross: 0.01, refunded: 0.005, fees: 0.000125, earned: 0.004875 };
    const earnings = await market.ask('GET /earnings/me', provider);
    expect(earnings).toMatchObject({
      gross: 0.01,
      refunded: 0.005,
      fees: 0.000125,
      earned: 0.004875,
      payable: 0.004875,
    });
    expect(earnings.by_service).toEqual([{ service_id: market.serviceId, service_name: 'maps', ...sums }]);
    expect(earnings.by_day).toEqual([expect.objectContaining(sums)]);
    const { refunds } = await market.ask('GET /admin/refunds', admin, { query: { account_id: provider.accountId } });
    expect(refunds.map(({ reference, by }: { reference: string; by: string }) => [reference, by])).toEqual([
      ['b', 'operator'],
      ['a', 'provider'],
    ]);
    expect(refunds[0]).toMatchObject({
      account_id: buyer.accountId,
      provider_id: provider.accountId,
      owner_id: 'buyer',
    });
    await market.check();
  });

  it('is found through an index on its reference, without reading all refunds', async () => {
    const rows = await market.compared.ledger.sql`
      SELECT FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
      WHERE i.indrelid = 'refunds'::regclass AND a.attname = 'reference'`;
    expect(rows).toHaveLength(1);
  });

  it('counts as a failure in quality if the whole call was refunded, and not if only a part was', async () => {
    const { sql } = market.compared.ledger;
    const buyer = await market.buyer();
    const [whole, part] = [await market.sold(buyer), await market.sold(buyer)];
    const mistaken = await market.sold(buyer, { status: 404 });
    const quality = async () => {
      const [{ weight, succeeded, latencyUs } = { weight: 0, succeeded: 0, latencyUs: null }] = await selectEvidence(
        sql,
        [market.serviceId],
      );
      return [Math.round((100 * succeeded) / weight), Math.round(latencyUs ?? 0)];
    };
    await market.refund(part, { amount: 0.009, reference: 'part' });
    await market.refund(whole, { amount: 0.004, reference: 'a' });
    expect(await quality()).toEqual([100, 1_500]);
    await market.refund(whole, { reference: 'b' });
    expect(await quality()).toEqual([50, 1_500]);
    await market.refund(mistaken, { reference: 'c' });
    expect(await quality()).toEqual([33, 1_500]);
    await market.check();
  });

  it('is in no list of credits, and appears only once in a statement that is read page by page', async () => {
    const buyer = await market.buyer();
    const call = await market.sold(buyer);
    for (const reference of ['a', 'b', 'c']) await market.refund(call, { amount: 0.001, reference });
    for (const by of [buyer, market.provider]) {
      const whole = (await market.ask('GET /statement/me', by)).movements;
      const pages = [];
      for (let cursor: string | null | undefined; cursor !== null; ) {
        const page = await market.ask('GET /statement/me', by, { query: { limit: 1, ...(cursor && { cursor }) } });
        pages.push(...page.movements);
        cursor = page.next_cursor;
      }
      expect(pages).toEqual(whole);
    }
  });
});
