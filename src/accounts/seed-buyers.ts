import { hashSecret, newKeyId, newSecret } from '../keys/credentials.ts';
import type { MoneyTransactions, MoneyTx } from '../ledger/history/fence.ts';
import { insertJournal, PLATFORM_ACCOUNT_ID, postEntries } from '../ledger/posting.ts';
import { uuidv7 } from '../platform/ids.ts';
import type { Tx } from '../platform/postgres.ts';

/** A buyer's account with one key and one credit, made in bulk. */
export type SeededBuyer = { readonly accountId: string; readonly keyId: string; readonly secret: string };

type SeedBatch = {
  readonly buyers: number;
  /** Micro-USD credited to each buyer; with 0 there is no credit. */
  readonly balanceMicros: number;
  /** Requests per minute of each key, 1–300. */
  readonly rateLimit: number;
  /** The accounts' label, to which a serial number is appended; also the reference of the journal row. */
  readonly label: string;
  /** Serial number of the first account. */
  readonly firstNumber: number;
};

/** `credit_seq` of a seeded buyer: 1 for its one credit, 0 without a credit. */
const lastCreditOf = (balanceMicros: number): number => (balanceMicros > 0 ? 1 : 0);

/**
 * Creates accounts, keys and credits in one transaction. The books balance as after any credit: one journal row has a wallet entry
 * for each buyer, and one cash entry of the platform as their counterpart. Only the result contains the secrets.
 */
export async function seedBuyers(money: MoneyTransactions, batch: SeedBatch): Promise<SeededBuyer[]> {
  const buyers = Array.from({ length: batch.buyers }, () => ({
    accountId: uuidv7(),
    keyId: newKeyId(),
    secret: newSecret(),
  }));
  const accountIds = buyers.map(({ accountId }) => accountId);
  await money.begin(accountIds, async (tx) => {
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

async function creditAll(tx: MoneyTx, buyers: readonly SeededBuyer[], batch: SeedBatch): Promise<void> {
  const accountIds = buyers.map(({ accountId }) => accountId);
  const journalId = await insertJournal(tx, 'credit', batch.label);
  // Stored as applied: the wallets of new accounts are not in Redis yet, and loading them will include the credits.
  await tx`
    INSERT INTO credits (account_id, seq, amount, reference, journal_id, applied_at)
    SELECT id, ${lastCreditOf(batch.balanceMicros)}, ${batch.balanceMicros}, ${`${batch.label} `} || id, ${journalId}, now()
    FROM unnest(${accountIds}::uuid[]) AS new (id)`;
  await postEntries(tx, journalId, [
    ...accountIds.map((accountId) => ({ accountId, ledger: 'wallet' as const, amountMicros: batch.balanceMicros })),
    { accountId: PLATFORM_ACCOUNT_ID, ledger: 'cash', amountMicros: -batch.balanceMicros * buyers.length },
  ]);
}
