import { expect, it } from 'vitest';
import { type Act, recordAct } from '../../src/accounts/audit.ts';
import { addAccount } from '../support/accounts.ts';
import { sql, useDatabase } from '../support/use-database.ts';

useDatabase();

const act: Act = {
  actor: 'create-admin',
  actorAccountId: null,
  requestId: null,
  action: 'account.suspend',
  subjectType: 'account',
  subjectId: 'an account',
  before: { status: 'active' },
  after: { status: 'suspended' },
};

it('an act is recorded with the state before and after it', async () => {
  await sql.begin((tx) => recordAct(tx, act));
  const [row] = await sql`SELECT * FROM audit WHERE at > now() - interval '1 minute'`;
  expect(row).toMatchObject({ actor: 'create-admin', action: 'account.suspend', before: act.before, after: act.after });
});

it('an act that fails leaves no record', async () => {
  const { accountId } = await addAccount(sql);
  const failing = sql.begin(async (tx) => {
    await recordAct(tx, { ...act, subjectId: accountId });
    await tx`UPDATE accounts SET status = 'no such status' WHERE id = ${accountId}`;
  });
  await expect(failing).rejects.toThrow('accounts_status_check');
  expect(await sql`SELECT FROM audit WHERE subject_id = ${accountId}`).toHaveLength(0);
});
