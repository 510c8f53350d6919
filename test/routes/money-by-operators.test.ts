import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { DebitCarrier } from '../../src/accounts/debits.ts';
import type { Route } from '../../src/http/route.ts';
import type { KeyRecord } from '../../src/keys/caller.ts';
import { PLATFORM_ACCOUNT_ID } from '../../src/ledger/posting.ts';
import { saveReport } from '../../src/ledger/reconcile/reconcile-sql.ts';
import { newReport, ReportSums } from '../../src/ledger/reconcile/report.ts';
import { endDebit } from '../../src/ledger/wallets/debits-sql.ts';
import { uuidv7 } from '../../src/platform/ids.ts';
import { creditsRoutes } from '../../src/routes/admin/credits.ts';
import { debitsRoutes } from '../../src/routes/admin/debits.ts';
import { payoutsRoutes } from '../../src/routes/admin/payouts.ts';
import { reconciliationRoutes } from '../../src/routes/admin/reconciliation.ts';
import { earningsRoutes } from '../../src/routes/earnings.ts';
import { accepts, addAccount, findRoute, json, send } from '../support/accounts.ts';
import { emptyDatabase } from '../support/empty-database.ts';
import { unfenced } from '../support/unfenced.ts';
import { sql, useDatabase } from '../support/use-database.ts';
import { until } from '../support/wait.ts';

let routes: Route[];
let admin: KeyRecord;
let provider: KeyRecord;
/** What carrying a debit out fails with, after it has begun. */
let failure: Error | null;

/** A wallet that has 5 USD for every debit. test/ledger/wallets/debit-wallets.test.ts has real ones. */
const carrier: DebitCarrier = {
  carryOut: async (debit) => {
    if (failure !== null) throw failure;
    const outcome = debit.amountMicros <= 5_000_000 ? 'taken' : 'refused';
    return { ...(await endDebit(unfenced(sql), debit, outcome)), balanceMicros: 5_000_000 };
  },
};

useDatabase();
beforeAll(() => {
  const quiet = { keys: { find: async () => null }, applier: { apply: async () => {} }, log: { warn: () => {} } };
  const money = unfenced(sql);
  routes = [
    ...creditsRoutes({ sql, money, ...quiet }),
    ...payoutsRoutes({ sql, money }),
    ...debitsRoutes({ sql, money, carrier, log: quiet.log }),
    ...earningsRoutes({ sql, feeBasisPoints: 1_000 }),
  ];
});
beforeEach(async () => {
  await emptyDatabase(sql);
  [admin, provider] = [await addAccount(sql, 'admin'), await addAccount(sql, 'provider')];
  failure = null;
});

const post = (kind: 'payouts' | 'debits' | 'credits', body: Record<string, unknown>) =>
  send(routes, `POST /admin/${kind}`, { by: admin, body });
const payout = (amount: number, reference = 'r', accountId = provider.accountId) =>
  post('payouts', { account_id: accountId, amount, reference });
const debit = (amount: number, reference = 'r', accountId = provider.accountId) =>
  post('debits', { account_id: accountId, amount, reference, reason: 'paid twice' });

/** What the writer posts for calls of the provider's services. */
async function earn(micros: number): Promise<void> {
  const [journal] = await sql`INSERT INTO journal (kind) VALUES ('usage') RETURNING id`;
  const buyer = uuidv7();
  await sql`
    INSERT INTO entries VALUES (${journal?.id}, ${provider.accountId}, 'earnings', ${micros}), (${journal?.id}, ${buyer}, 'wallet', ${-micros})`;
  await sql`
    INSERT INTO balances AS b VALUES (${buyer}, 'wallet', ${-micros}), (${provider.accountId}, 'earnings', ${micros})
    ON CONFLICT (account_id, ledger) DO UPDATE SET balance = b.balance + excluded.balance`;
}

async function balance(ledger: string, accountId = provider.accountId): Promise<number> {
  const unbalanced = await sql`SELECT journal_id FROM entries GROUP BY 1 HAVING sum(amount) <> 0`;
  expect(unbalanced).toHaveLength(0);
  const [row] = await sql`SELECT balance FROM balances WHERE account_id = ${accountId} AND ledger = ${ledger}`;
  return row?.balance ?? 0;
}
const acts = async () => {
  const rows = await sql`SELECT actor, action, subject_id AS subject, before, after, outcome FROM audit ORDER BY id`;
  return rows.map((row) => ({ ...row }));
};

describe('POST /admin/reconciliation', () => {
  type End = { readonly well: () => void; readonly badly: (error: Error) => void };
  /** Ends the comparison under way, as one that found nothing, or that failed. */
  let end: End | null;
  let warnings: unknown[][];
  const compare = (answerWithinMs: number): ReturnType<typeof send> => {
    end = null;
    warnings = [];
    const log = { warn: (...line: unknown[]) => void warnings.push(line) };
    const run = () =>
      new Promise<void>((well, badly) => {
        end = { well, badly };
      });
    const its = reconciliationRoutes({ sql, reconciler: { run }, log, answerWithinMs });
    return send(its, 'POST /admin/reconciliation', { by: admin });
  };
  const begun = (): Promise<End> => until(() => end);
  const checked = async (shard: number, checkedAtMs: number): Promise<void> => {
    const report = newReport({ shard, checkedAtMs }, new ReportSums(), []);
    await saveReport(sql, report);
  };

  it('answers with the outcome of a comparison that ends in time', async () => {
    const answer = compare(60_000);
    const { well } = await begun();
    await checked(0, 1_000);
    well();
    expect(await answer).toMatchObject({ status: 200, body: { checked_at: expect.any(String), totals: { drift: 0 } } });
  });

  it('says that a longer comparison continues, and when the last comparison was', async () => {
    await checked(0, 2_000);
    await checked(1, 1_000);
    expect(await compare(1)).toMatchObject({ status: 202, body: { checked_at: '1970-01-01T00:00:01.000Z' } });
    (await begun()).well();
    expect(await acts()).toMatchObject([{ actor: admin.keyId, action: 'reconciliation.run' }]);
    expect(warnings).toEqual([]);
  });

  it('fails if the comparison fails, and logs a failure that comes after the answer', async () => {
    const answer = compare(60_000);
    const why = new Error('redis is away');
    answer.catch(() => {});
    (await begun()).badly(why);
    await expect(answer).rejects.toBe(why);
    expect(warnings).toEqual([]);

    expect(await compare(1)).toMatchObject({ status: 202, body: { checked_at: null } });
    (await begun()).badly(why);
    await until(() => warnings.length > 0);
    expect(warnings).toEqual([[expect.objectContaining({ err: why }), expect.any(String)]]);
  });
});

describe('POST /admin/payouts', () => {
  it('takes money from what is payable, on both sides of the journal, and records who did it', async () => {
    await earn(3_000_000);
    const response = await payout(1.25, 'transfer 1');
    expect(response.status).toBe(201);
    expect(json(response)).toEqual({
      account_id: provider.accountId,
      amount: 1.25,
      reference: 'transfer 1',
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
    });
    expect([await balance('earnings'), await balance('cash', PLATFORM_ACCOUNT_ID)]).toEqual([1_750_000, 1_250_000]);
    const earnings = json(await send(routes, 'GET /earnings/me', { by: provider }));
    expect(earnings).toMatchObject({ paid_out: 1.25, payable: 1.75 });
    expect(await acts()).toEqual([
      {
        actor: admin.keyId,
        action: 'account.payout',
        subject: provider.accountId,
        before: { payable: 3 },
        after: { amount: 1.25, reference: 'transfer 1', payable: 1.75 },
        outcome: 'done',
      },
    ]);
  });

  it('never pays more than is payable, however many payouts are sent at once while calls are stored', async () => {
    await earn(1_000_000);
    const attempts = await Promise.allSettled([
      ...Array.from({ length: 8 }, (_, i) => payout(0.4, `p${i}`)),
      ...Array.from({ length: 4 }, () => earn(100_000)),
    ]);
    const paid = attempts.slice(0, 8).filter(({ status }) => status === 'fulfilled').length;
    expect(paid).toBeGreaterThanOrEqual(2);
    expect(await balance('earnings')).toBe(1_400_000 - paid * 400_000);
    expect(await balance('earnings')).toBeGreaterThanOrEqual(0);
    expect(await acts()).toHaveLength(paid);
    const left = (await balance('earnings')) / 1e6;
    await expect(payout(left + 0.000001, 'too much')).rejects.toMatchObject({
      code: 'conflict',
      fields: { payable: left },
    });
    expect(await balance('earnings')).toBe(left * 1e6);
  });

  it('pays once per reference, even concurrently, and repeats its answer; a different amount or account is refused', async () => {
    await earn(9_000_000);
    const responses = await Promise.all(Array.from({ length: 8 }, () => payout(1)));
    expect(responses.map(({ status }) => status).sort()).toEqual([...Array(7).fill(200), 201]);
    expect(new Set(responses.map(({ body }) => JSON.stringify(body))).size).toBe(1);
    await expect(payout(1.5)).rejects.toMatchObject({ code: 'conflict' });
    await expect(payout(1, 'r', admin.accountId)).rejects.toMatchObject({ code: 'conflict' });
    expect(await balance('earnings')).toBe(8_000_000);
  });

  it('answers 404 for an account that does not exist, and refuses invalid amounts and references', async () => {
    await expect(payout(1, 'r', uuidv7())).rejects.toMatchObject({ code: 'not_found' });
    await expect(payout(1, 'r', PLATFORM_ACCOUNT_ID)).rejects.toMatchObject({ code: 'not_found' });
    await expect(payout(0.0000001)).rejects.toMatchObject({ code: 'invalid_request' });
    const { body, access } = findRoute(routes, 'POST /admin/payouts');
    expect(access).toEqual(['admin']);
    const good = { account_id: provider.accountId, amount: 1, reference: 'r' };
    expect(accepts(body, good)).toBe(true);
    for (const wrong of [
      { amount: 0 },
      { amount: -1 },
      { reference: '' },
      { reference: 'a\nb' },
      { account_id: 'x' },
      { note: 1 },
    ])
      expect(accepts(body, { ...good, ...wrong })).toBe(false);
  });
});

describe('POST /admin/debits', () => {
  it('answers with what was taken, also to a repeat, and with what the wallet has if that is less', async () => {
    const first = await debit(2);
    expect([first.status, json(first)]).toEqual([
      201,
      {
        account_id: provider.accountId,
        amount: 2,
        reference: 'r',
        reason: 'paid twice',
        created_at: expect.stringMatching(/^\d{4}-.*Z$/),
      },
    ]);
    expect(await debit(2)).toEqual({ ...first, status: 200 });
    await expect(debit(3)).rejects.toMatchObject({ code: 'conflict' });
    await expect(debit(6, 'other')).rejects.toMatchObject({ code: 'conflict', fields: { balance: 5 } });
    await expect(debit(1, 'x', uuidv7())).rejects.toMatchObject({ code: 'not_found' });
    expect([await balance('wallet'), await balance('cash', PLATFORM_ACCOUNT_ID)]).toEqual([-2_000_000, 2_000_000]);
    const act = { actor: admin.keyId, action: 'account.debit', subject: provider.accountId };
    const [two, six] = [
      { amount: 2, reference: 'r', reason: 'paid twice' },
      { amount: 6, reference: 'other', reason: 'paid twice' },
    ];
    expect(await acts()).toEqual([
      { ...act, outcome: 'begun', before: null, after: two },
      { ...act, outcome: 'done', before: { balance: 0 }, after: { ...two, balance: -2 } },
      { ...act, outcome: 'begun', before: null, after: six },
      { ...act, outcome: 'refused', before: null, after: six },
    ]);
  });

  it('says that the outcome is unknown, whatever failed, and takes the amount once when the request is repeated', async () => {
    // A store that is away, and a shard that is being flushed for longer than the wallet may wait for it.
    for (const code of ['ECONNREFUSED', '55P03']) {
      failure = Object.assign(new Error('not now'), { code });
      await expect(debit(2)).rejects.toMatchObject({
        code: 'unavailable',
        message: expect.stringMatching(/not known yet/),
      });
    }
    failure = null;
    // Another debit of the account ends the first one before its own.
    expect((await debit(1, 'second')).status).toBe(201);
    expect((await debit(2)).status).toBe(200);
    expect(await balance('wallet')).toBe(-3_000_000);
    const told = (await acts()).map(({ outcome, before, after }) => [after.reference, outcome, before, after.balance]);
    expect(told).toEqual([
      ['r', 'begun', null, undefined],
      ['r', 'done', { balance: 0 }, -2],
      ['second', 'begun', null, undefined],
      ['second', 'done', { balance: -2 }, -3],
    ]);
  });
});

describe('GET /admin/credits, /admin/debits and /admin/payouts', () => {
  it('list entries newest first, page by page, and filter them by account, reference and time', async () => {
    await earn(9_000_000);
    const other = await addAccount(sql, 'provider');
    for (const kind of ['credits', 'debits', 'payouts'] as const) {
      const reasons = kind === 'debits' ? { reason: 'x' } : {};
      for (const i of [1, 2, 3, 4, 5]) {
        await post(kind, { account_id: provider.accountId, amount: i / 10, reference: `${kind} ${i}`, ...reasons });
      }
      if (kind !== 'payouts')
        await post(kind, { account_id: other.accountId, amount: 1, reference: `${kind} o`, ...reasons });
      const list = async (query: object) => json(await send(routes, `GET /admin/${kind}`, { by: admin, query }));
      const references = async (query: object): Promise<string[]> =>
        (await list(query))[kind].map(({ reference }: { reference: string }) => reference.slice(kind.length + 1));
      const own = { account_id: provider.accountId };
      expect(await references(own)).toEqual(['5', '4', '3', '2', '1']);
      const seen: string[] = [];
      for (let cursor: string | null = null, pages = 0; pages < 3; pages++) {
        const page = await list({ limit: 2, ...own, ...(cursor && { cursor }) });
        seen.push(...page[kind].map(({ reference }: { reference: string }) => reference.slice(-1)));
        cursor = page.next_cursor;
        expect(cursor === null).toBe(pages === 2);
      }
      expect(seen).toEqual(['5', '4', '3', '2', '1']);
      expect(await references({ reference: `${kind} 3` })).toEqual(['3']);
      expect(await references({ account_id: other.accountId })).toEqual(kind === 'payouts' ? [] : ['o']);
      const times = (await list(own))[kind].map((row: { created_at: string }) => Date.parse(row.created_at));
      const after = new Date(times[0] + 1).toISOString();
      expect(await references({ ...own, from: after })).toEqual([]);
      expect(await references({ ...own, to: after, from: new Date(times[4]).toISOString() })).toHaveLength(5);
      await expect(list({ cursor: 'x' })).rejects.toMatchObject({ code: 'invalid_request' });
    }
  });

  it('are for admins only', () => {
    for (const kind of ['credits', 'debits', 'payouts'])
      expect(findRoute(routes, `GET /admin/${kind}`).access).toEqual(['admin']);
  });
});
