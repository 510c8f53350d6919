import { hashSecret, newKeyId, newSecret } from '../keys/credentials.ts';
import { uuidv7 } from '../platform/ids.ts';
import type { Sql, Tx } from '../platform/postgres.ts';
import { PLATFORM_ACCOUNT_ID } from './platform-account.ts';

/** A buyer's account with one key and one credit, made in bulk. */
export type SeededBuyer = { readonly accountId: string; readonly keyId: string; readonly secret: string };

export type SeedBatch = {
  readonly buyers: number;
  /** Credited to each; 0 credits nothing. */
  readonly balanceMicros: number;
  /** Requests per minute of each key, 1–300. */
  readonly rateLimit: number;
  /** The accounts' label and the journal's reference; a serial number is added to each account's. */
  readonly label: string;
  /** Serial number of the first. */
  readonly firstNumber: number;
};

/** The number of a seeded buyer's one credit; 0 when nothing was credited. */
export const lastCreditOf = (balanceMicros: number): number => (balanceMicros > 0 ? 1 : 0);

/**
 * Makes accounts, keys and credits in one transaction. The books balance as with any credit: one journal row holds the
 * wallet entry of every buyer and the platform's cash entry against all of them. The secrets are in the answer only.
 */
export async function seedBuyers(sql: Sql, batch: SeedBatch): Promise<SeededBuyer[]> {
  const buyers = Array.from({ length: batch.buyers }, () => ({
    accountId: uuidv7(),
    keyId: newKeyId(),
    secret: newSecret(),
  }));
  await sql.begin(async (tx) => {
    await insertAccountsAndKeys(tx, buyers, batch);
    if (batch.balanceMicros > 0) await creditAll(tx, buyers, batch);
  });
  return buyers;
}

async function insertAccountsAndKeys(tx: Tx, buyers: readonly SeededBuyer[], batch: SeedBatch): Promise<void> {
  const accountIds = buyers.map(({ accountId }) => accountId);
  const labels = buyers.map((_, index) => `${batch.label} ${batch.firstNumber + index}`);
  await tx`
    INSERT INTO accounts (id, owner_id, credit_seq)
    SELECT id, label, ${lastCreditOf(batch.balanceMicros)}
    FROM unnest(${accountIds}::uuid[], ${labels}::text[]) AS new (id, label)`;
  await tx`
    INSERT INTO api_keys (key_id, account_id, role, secret_hash, rate_limit)
    SELECT key_id, account_id, 'buyer', secret_hash, ${batch.rateLimit}
    FROM unnest(${buyers.map(({ keyId }) => keyId)}::text[], ${accountIds}::uuid[],
                ${buyers.map(({ secret }) => hashSecret(secret))}::text[]) AS new (key_id, account_id, secret_hash)`;
}

async function creditAll(tx: Tx, buyers: readonly SeededBuyer[], batch: SeedBatch): Promise<void> {
  const accountIds = buyers.map(({ accountId }) => accountId);
  const journal = await tx<{ id: number }[]>`
    INSERT INTO journal (kind, reference) VALUES ('credit', ${batch.label}) RETURNING id`;
  const journalId = journal[0]?.id as number;
  // Applied: no wallet of a new account is loaded, and loading one includes its credits.
  await tx`
    INSERT INTO credits (account_id, seq, amount, reference, journal_id, applied_at)
    SELECT id, ${lastCreditOf(batch.balanceMicros)}, ${batch.balanceMicros}, ${`${batch.label} `} || id, ${journalId}, now()
    FROM unnest(${accountIds}::uuid[]) AS new (id)`;
  // Ordered like everybody who moves balances, so that no two wait for each other in a ring.
  await tx`
    WITH posted AS (
      INSERT INTO entries (journal_id, account_id, ledger, amount)
      SELECT ${journalId}::bigint, id, 'wallet', ${batch.balanceMicros}::bigint FROM unnest(${accountIds}::uuid[]) AS new (id)
      UNION ALL
      SELECT ${journalId}, ${PLATFORM_ACCOUNT_ID}::uuid, 'cash', ${-batch.balanceMicros * buyers.length}::bigint
      RETURNING account_id, ledger, amount)
    INSERT INTO balances AS b (account_id, ledger, balance)
    SELECT account_id, ledger, amount FROM posted ORDER BY account_id, ledger
    ON CONFLICT (account_id, ledger) DO UPDATE SET balance = b.balance + excluded.balance`;
}
