import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { uuidv7 } from '../../src/platform/ids.ts';
import { readChargesQuery } from '../support/charges-query.ts';
import { Ledger, newEvent } from './support.ts';

let ledger: Ledger;
beforeAll(async () => {
  ledger = await Ledger.open();
});
afterAll(() => ledger.close());
beforeEach(() => ledger.clear());

const wrong = () => ledger.sql.unsafe(readChargesQuery());

/** Charged, free, refunded and swept calls of two accounts, in several flushes of both kinds. */
async function storeCalls(): Promise<void> {
  const accounts = [await ledger.account(50_000), await ledger.account(50_000)];
  const events = accounts.flatMap((accountId) => [
    ...Array.from({ length: 7 }, (_, i) => newEvent({ accountId, heldMicros: 10 + i })),
    newEvent({ accountId, heldMicros: 0, freeTier: true }),
    newEvent({ accountId, outcome: 'refunded:upstream_error', status: 502 }),
    newEvent({ accountId, outcome: 'abandoned', status: 0 }),
  ]);
  // Some come twice: those batches are stored with care.
  await ledger.append(...events, ...events.slice(0, 5));
  ledger.startWriter({ batchSize: 4 });
  await ledger.drained();
}

it("the operators' query finds nothing in right books", async () => {
  await storeCalls();
  expect((await ledger.readBooks()).calls).toHaveLength(20);
  expect(await wrong()).toEqual([]);
});

it.each([
  ['whose amount is not what the wallet paid', 'UPDATE calls SET amount = amount + 1 WHERE amount = 12'],
  ['that is missing', 'DELETE FROM calls WHERE amount = 12'],
  ['that was charged to another account', `UPDATE calls SET account_id = '${uuidv7()}' WHERE amount = 12`],
  ['that no wallet paid', `UPDATE calls SET amount = 5 WHERE outcome = 'abandoned'`],
])("the operators' query finds a call %s, though books_sum is 0", async (_, damage) => {
  await storeCalls();
  await ledger.sql.unsafe(damage);
  const [books] = await ledger.sql<{ sum: number }[]>`SELECT sum(balance)::bigint AS sum FROM balances`;
  expect(books?.sum).toBe(0);
  expect((await wrong()).length).toBeGreaterThanOrEqual(2);
});
