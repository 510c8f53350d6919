import { describe, expect, it } from 'vitest';
import { seedBuyers } from '../../src/accounts/seed-buyers.ts';
import { verifySecret } from '../../src/keys/credentials.ts';
import { selectKeyRecords } from '../../src/keys/keys-sql.ts';
import { PLATFORM_ACCOUNT_ID } from '../../src/ledger/posting.ts';
import { unfenced } from '../support/unfenced.ts';
import { sql, useDatabase } from '../support/use-database.ts';

useDatabase();

const batch = { buyers: 50, balanceMicros: 2_500_000, rateLimit: 300, label: 'seed one', firstNumber: 1 };

describe('seeded buyers', () => {
  it('have keys that authenticate, with their limit', async () => {
    const buyers = await seedBuyers(unfenced(sql), { ...batch, label: 'seed keys' });
    expect(new Set(buyers.map(({ accountId }) => accountId)).size).toBe(50);
    const records = await selectKeyRecords(
      sql,
      buyers.map(({ keyId }) => keyId),
      300,
    );
    expect(records).toHaveLength(50);
    for (const { keyId, accountId, secret } of buyers) {
      const record = records.find((candidate) => candidate.keyId === keyId);
      expect(record).toMatchObject({ accountId, role: 'buyer', rateLimit: 300, status: 'active' });
      expect(record && verifySecret(record, secret, Date.now)).toBe(true);
    }
  });

  it('leave the books balanced, and each balance is the sum of its credits', async () => {
    await seedBuyers(unfenced(sql), batch);
    await seedBuyers(unfenced(sql), { ...batch, label: 'seed two', firstNumber: 51 });
    expect(await sql`SELECT journal_id FROM entries GROUP BY journal_id HAVING sum(amount) <> 0`).toEqual([]);
    expect(
      await sql`
        SELECT a.id FROM accounts a
        JOIN balances b ON b.account_id = a.id AND b.ledger = 'wallet'
        JOIN credits c ON c.account_id = a.id AND c.seq = a.credit_seq
        WHERE b.balance = 2500000 AND c.amount = 2500000 AND a.owner_id LIKE 'seed one %'`,
    ).toHaveLength(50);
    const [cash] = await sql<{ cash: number; entries: number }[]>`
      SELECT b.balance AS cash, (SELECT sum(amount)::bigint FROM entries WHERE ledger = 'cash') AS entries
      FROM balances b WHERE b.account_id = ${PLATFORM_ACCOUNT_ID} AND b.ledger = 'cash'`;
    expect(cash?.cash).toBe(cash?.entries);
    const [wallets] = await sql<{ total: number }[]>`
      SELECT sum(balance)::bigint AS total FROM balances WHERE ledger = 'wallet'`;
    expect(wallets?.total).toBe(-(cash?.cash ?? 0));
  });

  it('without a balance have no credit and no entry', async () => {
    const buyers = await seedBuyers(unfenced(sql), { ...batch, balanceMicros: 0, label: 'seed poor' });
    const ids = buyers.map(({ accountId }) => accountId);
    expect(await sql`SELECT 1 FROM credits WHERE account_id = ANY(${ids}::uuid[])`).toEqual([]);
    expect(await sql`SELECT 1 FROM entries WHERE account_id = ANY(${ids}::uuid[])`).toEqual([]);
    expect(await sql`SELECT DISTINCT credit_seq AS seq FROM accounts WHERE id = ANY(${ids}::uuid[])`).toEqual([
      { seq: 0 },
    ]);
  });
});
