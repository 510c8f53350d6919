import { afterAll, beforeAll, expect, it } from 'vitest';
import { storeCredit } from '../../src/accounts/credits.ts';
import { uuidv7 } from '../../src/platform/ids.ts';
import { MAX_AMOUNT_MICROS } from '../../src/platform/money.ts';
import { OPERATOR, openTestDatabase } from '../support/accounts.ts';
import { unfenced } from '../support/unfenced.ts';

let database: Awaited<ReturnType<typeof openTestDatabase>>;
beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database.close());

it('credits can never add up to a balance that cannot be read back exactly', async () => {
  const { sql } = database;
  const accountId = uuidv7();
  await sql`INSERT INTO accounts (id, owner_id, credit_seq) VALUES (${accountId}, 'buyer', 0)`;
  const credit = (reference: string, amountMicros = MAX_AMOUNT_MICROS) =>
    storeCredit(unfenced(sql), { accountId, amountMicros, reference }, OPERATOR);
  for (const reference of ['a', 'b', 'c']) await credit(reference);
  // Two credits at the same moment, with room below the maximum for one.
  const both = await Promise.allSettled([credit('d'), credit('e')]);
  expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  await expect(credit('f', 1)).rejects.toMatchObject({
    code: 'conflict',
    message: expect.stringContaining('4000000000'),
  });
  // The same reference again gets the same result.
  expect(await credit('a')).toMatchObject({ created: false, credit: { seq: 1 } });
  const [balance] = await sql`SELECT balance FROM balances WHERE account_id = ${accountId} AND ledger = 'wallet'`;
  expect(balance).toEqual({ balance: 4 * MAX_AMOUNT_MICROS });
});
