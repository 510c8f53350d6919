import type { MoneyTransactions, MoneyTx } from '../../src/ledger/history/fence.ts';
import type { Sql } from '../../src/platform/postgres.ts';

/** Lets money move without a Redis, for tests of what happens in Postgres. test/ledger/history/fence.test.ts has the real fence. */
export const unfenced = (sql: Pick<Sql, 'begin'>): MoneyTransactions => ({
  begin: (_, work) => sql.begin((tx) => work(tx as MoneyTx)),
});
