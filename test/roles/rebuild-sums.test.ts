import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { type RefundedCall, selectRefundedCall } from '../../src/accounts/refunds/refund-sql.ts';
import { storeRefund } from '../../src/accounts/refunds/refunds.ts';
import { compareSums } from '../ledger/rollups/sums-oracle.ts';
import { addAccount, addCall, addService, OPERATOR } from '../support/accounts.ts';
import { buildSources } from '../support/build.ts';
import { WRONG_REFUND_SUMS } from '../support/refund-sums.ts';
import { unfenced } from '../support/unfenced.ts';
import { sql, url, useDatabase } from '../support/use-database.ts';

useDatabase();

const run = async (databaseUrl: string) => {
  const env = { PATH: process.env.PATH, DATABASE_URL: databaseUrl };
  const child = spawn(process.execPath, [path.join(buildSources(), 'main.js'), 'rebuild-sums'], { env });
  const [output, errors, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
  return { output: output.split('\n'), errors, code: code as number };
};

it('the command reports for each day what was wrong with its sums, and repairs them', async () => {
  const buyer = await addAccount(sql);
  const { accountId: providerId } = await addAccount(sql, 'provider');
  const serviceId = await addService(sql, providerId);
  for (const day of ['2026-11-01', '2026-11-02', '2026-11-02']) {
    await addCall(sql, { atMs: Date.parse(day), buyer, serviceId, amount: 700 });
  }
  await sql`UPDATE key_hours SET spent = 1 WHERE hour = '2026-11-02'`;
  await sql`DELETE FROM service_amounts WHERE day = '2026-11-02'`;
  const usageId = await addCall(sql, { atMs: Date.now(), buyer, serviceId, providerId, amount: 700, fee: 7 });
  const call = (await selectRefundedCall(sql, usageId)) as RefundedCall;
  for (const reference of ['a', 'b']) {
    const wanted = { usageId, amountMicros: 350, reason: 'x', reference };
    await storeRefund(unfenced(sql), call, wanted, { isOperator: true, accountId: providerId }, OPERATOR);
  }
  await sql`UPDATE refund_hours SET amount = 1`;
  expect(await run(url)).toEqual({
    output: [
      '2026-11-01: 1 calls; all sums are right',
      '2026-11-02: 2 calls; key_hours: 1 rows removed, 1 written; service_amounts: 0 rows removed, 1 written',
      expect.stringMatching(/^\d{4}-\d\d-\d\d: 1 calls; all sums are right$/),
      'refunds: refund_hours: 1 rows removed, 1 written',
      'done: 3 days, 4 calls',
      '',
    ],
    errors: '',
    code: 0,
  });
  expect(await compareSums(sql)).toEqual([]);
  expect(await sql.unsafe(WRONG_REFUND_SUMS)).toEqual([]);
});

it('the command says in one line why it cannot begin', async () => {
  const { code, errors } = await run('postgres://nobody@127.0.0.1:9/none');
  expect([code, errors]).toEqual([1, expect.stringMatching(/^tollgate: Postgres: .*\n$/)]);
});
