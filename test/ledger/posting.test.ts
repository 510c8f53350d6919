import { expect, it } from 'vitest';
import { insertJournal, PLATFORM_ACCOUNT_ID, postEntries } from '../../src/ledger/posting.ts';
import { uuidv7 } from '../../src/platform/ids.ts';
import { unfenced } from '../support/unfenced.ts';
import { ledger, useLedger } from './use-ledger.ts';

useLedger();

const post = (wallet: number, cash: number) => {
  const accountId = uuidv7();
  return unfenced(ledger.sql).begin([accountId], async (tx) =>
    postEntries(tx, await insertJournal(tx, 'credit', accountId), [
      { accountId, ledger: 'wallet', amountMicros: wallet },
      { accountId: PLATFORM_ACCOUNT_ID, ledger: 'cash', amountMicros: cash },
    ]),
  );
};

it('entries that do not sum to zero are refused, and none of them is stored', async () => {
  await expect(post(5, -4)).rejects.toThrow('sum to zero');
  expect(
    await ledger.sql`SELECT (SELECT count(*) FROM journal)::int AS rows, (SELECT count(*) FROM entries)::int AS entries`,
  ).toEqual([{ rows: 0, entries: 0 }]);
});

it('a posting moves the balances on both sides by the amounts of its entries', async () => {
  await post(5, -5);
  await post(7, -7);
  expect(
    await ledger.sql`SELECT ledger, sum(balance)::int AS sum FROM balances GROUP BY ledger ORDER BY ledger`,
  ).toEqual([
    { ledger: 'cash', sum: -12 },
    { ledger: 'wallet', sum: 12 },
  ]);
});
