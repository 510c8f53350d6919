import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import type { CreditApplier } from '../../src/accounts/credits.ts';
import type { Route } from '../../src/http/route.ts';
import type { KeyRecord } from '../../src/keys/caller.ts';
import { newKeyId } from '../../src/keys/credentials.ts';
import { selectKey } from '../../src/keys/keys-sql.ts';
import { PLATFORM_ACCOUNT_ID } from '../../src/ledger/posting.ts';
import { uuidv7 } from '../../src/platform/ids.ts';
import { creditsRoutes } from '../../src/routes/admin/credits.ts';
import { accepts, addAccount, findRoute, json, send } from '../support/accounts.ts';
import { emptyDatabase } from '../support/empty-database.ts';
import { unfenced } from '../support/unfenced.ts';
import { sql, useDatabase } from '../support/use-database.ts';

let admin: KeyRecord;
let applied: Parameters<CreditApplier['apply']>[0][];
let redisAway: boolean;
let warnings: Record<string, unknown>[];
let routes: Route[];

useDatabase();

async function reset(): Promise<void> {
  await emptyDatabase(sql);
  admin = await addAccount(sql, 'admin');
  applied = [];
  redisAway = false;
  warnings = [];
  const apply: CreditApplier['apply'] = async (credit) => {
    if (redisAway) throw new Error('connection is closed');
    applied.push(credit);
  };
  const log = { warn: (fields: Record<string, unknown>) => void warnings.push(fields) };
  routes = creditsRoutes({
    sql,
    money: unfenced(sql),
    keys: { find: (keyId) => selectKey(sql, keyId) },
    applier: { apply },
    log,
  });
}
beforeEach(reset);

const credit = (body: Record<string, unknown>) => send(routes, 'POST /admin/credits', { by: admin, body });

/** Checks that the projections and the journal agree. @returns the wallet of each account, and the platform's cash */
async function readBooks(): Promise<Map<string, number>> {
  const [sum] = await sql`SELECT coalesce(sum(amount), 0)::bigint AS all FROM entries`;
  expect(sum?.all, 'all entries sum to zero').toBe(0);
  const unbalanced = await sql`SELECT journal_id FROM entries GROUP BY journal_id HAVING sum(amount) <> 0`;
  expect(unbalanced, 'each journal row sums to zero').toHaveLength(0);
  const drift = await sql`
    SELECT * FROM balances b FULL JOIN
      (SELECT account_id, ledger, sum(amount)::bigint AS posted FROM entries GROUP BY 1, 2) e USING (account_id, ledger)
    WHERE b.balance IS DISTINCT FROM e.posted`;
  expect(drift, 'balances are the sums of their entries').toHaveLength(0);
  const rows = await sql<{ accountId: string; balance: number }[]>`
    SELECT account_id AS "accountId", balance FROM balances`;
  return new Map(rows.map((row) => [row.accountId, row.balance]));
}

describe('POST /admin/credits', () => {
  it('books the money on both sides of the journal and applies it to the live wallet', async () => {
    const { accountId } = await addAccount(sql);
    const response = await credit({ account_id: accountId, amount: 12.345678, reference: 'payment 1' });
    expect(response.status).toBe(201);
    expect(json(response)).toEqual({
      account_id: accountId,
      amount: 12.345678,
      reference: 'payment 1',
      seq: 1,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    });
    expect([...(await readBooks())].sort()).toEqual([
      [PLATFORM_ACCOUNT_ID, -12_345_678],
      [accountId, 12_345_678],
    ]);
    expect(applied).toEqual([{ accountId, seq: 1, amountMicros: 12_345_678, budgets: null }]);
    const journal = await sql`SELECT kind, reference FROM journal`;
    expect(journal.map((row) => ({ ...row }))).toEqual([{ kind: 'credit', reference: 'payment 1' }]);
  });

  it('finds the account of a key', async () => {
    const { accountId, keyId } = await addAccount(sql);
    expect(json(await credit({ key_id: keyId, amount: 1, reference: 'r' })).account_id).toBe(accountId);
    // The same credit, but named by its account.
    expect((await credit({ account_id: accountId, amount: 1, reference: 'r' })).status).toBe(200);
  });

  it('gives a repeated reference the same answer and no second credit, also in concurrent requests', async () => {
    const { accountId } = await addAccount(sql);
    const body = { account_id: accountId, amount: 5, reference: 'once' };
    const responses = await Promise.all(Array.from({ length: 12 }, () => credit(body)));
    expect(responses.map(({ status }) => status).sort()).toEqual([...Array(11).fill(200), 201]);
    expect(new Set(responses.map((response) => JSON.stringify(response.body))).size).toBe(1);
    expect((await readBooks()).get(accountId)).toBe(5_000_000);
    expect(applied).toHaveLength(1);
  });

  it('refuses a reference that belongs to another account or amount', async () => {
    const [one, two] = [await addAccount(sql), await addAccount(sql)];
    await credit({ account_id: one.accountId, amount: 5, reference: 'r' });
    for (const body of [
      { account_id: one.accountId, amount: 6, reference: 'r' },
      { account_id: two.accountId, amount: 5, reference: 'r' },
    ]) {
      await expect(credit(body)).rejects.toMatchObject({ code: 'conflict' });
    }
    expect((await readBooks()).get(one.accountId)).toBe(5_000_000);
  });

  it('gives a reference to only one of two accounts that use it at the same moment', async () => {
    for (let round = 0; round < 10; round++) {
      const accounts = [await addAccount(sql), await addAccount(sql)];
      const attempts = await Promise.allSettled(
        accounts.map(({ accountId }) => credit({ account_id: accountId, amount: 5, reference: `race ${round}` })),
      );
      expect(attempts.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
      expect(attempts.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { code: 'conflict' } });
    }
    expect((await readBooks()).get(PLATFORM_ACCOUNT_ID)).toBe(-50_000_000);
  });

  it('answers 201 and leaves the credit to the writer if Redis is away', async () => {
    const { accountId } = await addAccount(sql);
    redisAway = true;
    expect((await credit({ account_id: accountId, amount: 5, reference: 'r' })).status).toBe(201);
    expect(warnings).toEqual([expect.objectContaining({ accountId, seq: 1 })]);
    const rows = await sql`SELECT seq, applied_at FROM credits WHERE account_id = ${accountId}`;
    expect(rows.map((row) => ({ ...row }))).toEqual([{ seq: 1, applied_at: null }]);
  });

  it('answers 404 for an account or key that does not exist, and for the platform’s own account', async () => {
    for (const accountId of [uuidv7(), PLATFORM_ACCOUNT_ID]) {
      const body = { account_id: accountId, amount: 5, reference: 'r' };
      await expect(credit(body)).rejects.toMatchObject({ code: 'not_found' });
    }
    for (const keyId of [newKeyId(), 'nonsense']) {
      await expect(credit({ key_id: keyId, amount: 5, reference: 'r' })).rejects.toMatchObject({ code: 'not_found' });
    }
  });

  it('refuses invalid amounts and references, and requests that do not name exactly one receiver', async () => {
    const { accountId, keyId } = await addAccount(sql);
    const { body: schema } = findRoute(routes, 'POST /admin/credits');
    const good = { account_id: accountId, amount: 1, reference: 'r' };
    expect(accepts(schema, good)).toBe(true);
    for (const wrong of [
      { amount: 0 },
      { amount: -1 },
      { amount: '1' },
      { amount: 1_000_000_001 },
      { reference: '' },
      { reference: 'x'.repeat(201) },
      { reference: 'a\nb' },
      { account_id: 'x' },
      { note: 'x' },
    ]) {
      expect(accepts(schema, { ...good, ...wrong }), JSON.stringify(wrong)).toBe(false);
    }
    for (const wrong of [{ amount: 0.0000001 }, { amount: 1.2345678 }, { key_id: keyId }, { account_id: undefined }]) {
      await expect(credit({ ...good, ...wrong })).rejects.toMatchObject({ code: 'invalid_request' });
    }
    expect(await readBooks()).toEqual(new Map());
  });

  it('is for admins only', () => {
    expect(findRoute(routes, 'POST /admin/credits').access).toEqual(['admin']);
  });
});

it('each reference counts once and the books balance, whatever credits arrive concurrently or repeatedly', async () => {
  const attempt = fc.record({
    account: fc.nat({ max: 2 }),
    reference: fc.nat({ max: 7 }),
    amountMicros: fc.constantFrom(1, 100_000, 299_999, 1_000_000_000),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(attempt, { minLength: 1, maxLength: 30 }), async (attempts) => {
      await reset();
      const accounts = [await addAccount(sql), await addAccount(sql), await addAccount(sql)];
      const accountOf = (index: number): string => accounts[index]?.accountId ?? '';
      const outcomes = await Promise.allSettled(
        attempts.map(({ account, reference, amountMicros }) =>
          credit({ account_id: accountOf(account), amount: amountMicros / 1e6, reference: `r${reference}` }),
        ),
      );

      // The model: the first credit created owns the reference. Equal credits are answered 200, all others 409.
      const owners = new Map<number, (typeof attempts)[number]>();
      outcomes.forEach((outcome, i) => {
        const sent = attempts[i] as (typeof attempts)[number];
        if (outcome.status === 'rejected' || outcome.value.status !== 201) return;
        expect(owners.has(sent.reference), 'one 201 per reference').toBe(false);
        owners.set(sent.reference, sent);
      });
      outcomes.forEach((outcome, i) => {
        const sent = attempts[i] as (typeof attempts)[number];
        const owner = owners.get(sent.reference);
        const same = owner?.account === sent.account && owner?.amountMicros === sent.amountMicros;
        if (outcome.status === 'fulfilled') expect(same).toBe(true);
        else expect([same, outcome.reason.code]).toEqual([false, 'conflict']);
      });

      const books = await readBooks();
      for (const [index, { accountId }] of accounts.entries()) {
        const own = [...owners.values()].filter(({ account }) => account === index);
        expect(books.get(accountId) ?? 0).toBe(own.reduce((sum, { amountMicros }) => sum + amountMicros, 0));
        const rows = await sql<{ seq: number; last: number }[]>`
          SELECT c.seq, a.credit_seq AS last FROM credits c JOIN accounts a ON a.id = c.account_id
          WHERE a.id = ${accountId} ORDER BY seq`;
        expect(
          rows.map(({ seq }) => seq),
          'numbered without gaps',
        ).toEqual(own.map((_, i) => i + 1));
        for (const { last } of rows) expect(last).toBe(own.length);
      }
      expect(applied).toHaveLength(owners.size);
    }),
    { numRuns: 25 },
  );
});
