import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { type RefundedCall, selectRefundedCall } from '../../src/accounts/refunds/refund-sql.ts';
import { storeRefund } from '../../src/accounts/refunds/refunds.ts';
import { uuidv7 } from '../../src/platform/ids.ts';
import { OPERATOR } from '../support/accounts.ts';
import { readBooksQueries } from '../support/books-queries.ts';
import { unfenced } from '../support/unfenced.ts';
import { Ledger, newEvent } from './support.ts';

let ledger: Ledger;
beforeAll(async () => {
  ledger = await Ledger.open();
});
afterAll(() => ledger.close());
beforeEach(() => ledger.clear());

type Name = keyof ReturnType<typeof readBooksQueries>;

const wrong = (name: Name) => ledger.sql.unsafe(readBooksQueries()[name]);

async function booksSum(): Promise<number | undefined> {
  const [books] = await ledger.sql<{ sum: number }[]>`SELECT sum(balance)::bigint AS sum FROM balances`;
  return books?.sum;
}

/** Charged, free, refunded and swept calls of two accounts, stored by both kinds of flush. */
async function storeCalls(): Promise<void> {
  const accounts = [await ledger.account(50_000), await ledger.account(50_000)];
  const events = accounts.flatMap((accountId) => [
    ...Array.from({ length: 7 }, (_, i) => newEvent({ accountId, heldMicros: 10 + i })),
    newEvent({ accountId, heldMicros: 0, freeTier: true }),
    newEvent({ accountId, outcome: 'refunded:upstream_error', status: 502 }),
    newEvent({ accountId, outcome: 'abandoned', status: 0 }),
  ]);
  // Some events come twice, so that their batches are stored by `storeEntries`.
  await ledger.append(...events, ...events.slice(0, 5));
  ledger.startWriter({ batchSize: 4 });
  await ledger.drained();
}

it.each<Name>(['charges', 'refunds', 'balances', 'journal'])(
  "the operators' query of %s finds nothing wrong in correct books",
  async (name) => {
    await storeCalls();
    expect((await ledger.readBooks()).calls).toHaveLength(20);
    expect(await wrong(name)).toEqual([]);
  },
);

/** Gives the whole of one call back, and a part of another. */
async function giveBack(): Promise<void> {
  const calls = await ledger.sql<{ id: string; provider: string }[]>`
    SELECT usage_id AS id, provider_id AS provider FROM calls WHERE amount > 14`;
  const accounts = calls.map(({ provider }) => provider);
  await ledger.sql`INSERT INTO accounts (id, owner_id) SELECT unnest(${accounts}::uuid[]), 'seller'`;
  for (const [i, { id: usageId }] of calls.entries()) {
    const call = (await selectRefundedCall(ledger.sql, usageId)) as RefundedCall;
    const wanted = { usageId, amountMicros: i === 0 ? null : 1, reason: 'x', reference: usageId };
    await storeRefund(unfenced(ledger.sql), call, wanted, { isOperator: true, accountId: usageId }, OPERATOR);
  }
}

it.each([
  ['whose amount is not what was moved', 'UPDATE refunds SET amount = amount + 1 WHERE whole'],
  ['whose fee is not', 'UPDATE refunds SET fee = 1 WHERE NOT whole'],
  ['that is missing', 'DELETE FROM refunds WHERE whole'],
  ['whose credit brings something else', 'UPDATE credits SET amount = 2 WHERE reference IS NULL AND amount = 1'],
])("the operators' query finds a refund %s, though books_sum is 0", async (_, damage) => {
  await storeCalls();
  await giveBack();
  await ledger.readBooks();
  await ledger.sql.unsafe(damage);
  expect(await booksSum()).toBe(0);
  expect((await wrong('refunds')).length).toBeGreaterThanOrEqual(1);
});

// One account gets what another loses, so that all balances still add up to 0.
const WALLETS = `FROM (SELECT account_id, row_number() OVER (ORDER BY account_id) AS n FROM balances WHERE ledger = 'wallet') w`;

it.each<[what: string, damage: string, name: Name, rows: number]>([
  [
    'two balances that were changed',
    `UPDATE balances b SET balance = balance + CASE n WHEN 1 THEN 500 ELSE -500 END ${WALLETS}
     WHERE b.account_id = w.account_id AND b.ledger = 'wallet'`,
    'balances',
    2,
  ],
  [
    'a balance of an account without entries',
    `INSERT INTO balances VALUES ('${uuidv7()}', 'wallet', 500), ('${uuidv7()}', 'cash', -500)`,
    'balances',
    2,
  ],
  [
    'a journal row that lost all its entries',
    'DELETE FROM entries WHERE journal_id = (SELECT min(journal_id) FROM entries)',
    'balances',
    2,
  ],
  [
    'an entry that was changed',
    `UPDATE entries SET amount = amount + 7 WHERE ctid = (SELECT min(ctid) FROM entries)`,
    'journal',
    1,
  ],
  [
    'an entry that was deleted',
    `DELETE FROM entries WHERE ctid = (SELECT min(ctid) FROM entries WHERE ledger = 'earnings')`,
    'journal',
    1,
  ],
])("the operators' query finds %s, though books_sum is 0", async (_, damage, name, rows) => {
  await storeCalls();
  await ledger.sql.unsafe(damage);
  expect(await booksSum()).toBe(0);
  expect(await wrong(name)).toHaveLength(rows);
});

it.each([
  ['whose amount is not what the wallet paid', 'UPDATE calls SET amount = amount + 1 WHERE amount = 12'],
  ['that is missing', 'DELETE FROM calls WHERE amount = 12'],
  ['that was charged to another account', `UPDATE calls SET account_id = '${uuidv7()}' WHERE amount = 12`],
  ['that no wallet paid', `UPDATE calls SET amount = 5 WHERE outcome = 'abandoned'`],
])("the operators' query finds a call %s, though books_sum is 0", async (_, damage) => {
  await storeCalls();
  await ledger.sql.unsafe(damage);
  expect(await booksSum()).toBe(0);
  expect((await wrong('charges')).length).toBeGreaterThanOrEqual(2);
});
