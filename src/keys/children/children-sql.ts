import type { Tx } from '../../platform/postgres.ts';
import type { BudgetPeriod } from '../budget-period.ts';
import { announceTree, countsAsKey } from '../keys-sql.ts';
import type { Limits } from './limits.ts';

// The SQL of child keys. Tested by test/routes/child-keys.test.ts.

type LimitsRow = {
  readonly keyId: string;
  readonly accountId: string;
  readonly status: 'active' | 'revoked';
  readonly ancestors: readonly string[];
  readonly label: string | null;
  readonly budgetMicros: number | null;
  readonly budgetPeriod: BudgetPeriod | null;
  readonly rateLimit: number;
  readonly maxPriceMicros: number | null;
  readonly services: readonly string[] | null;
  readonly expiresAt: Date | null;
};

/** A key with its limits, as it is stored. */
export type StoredKey = Limits & Pick<LimitsRow, 'keyId' | 'accountId' | 'status' | 'ancestors' | 'label'>;

const columns = (tx: Tx) => tx`
  key_id AS "keyId", account_id AS "accountId", status, ancestors, label, budget_amount AS "budgetMicros", budget_period AS "budgetPeriod",
  rate_limit AS "rateLimit", max_price AS "maxPriceMicros", services, expires_at AS "expiresAt"`;

/**
 * The keys above the key, from the root key down, and last the key itself; empty if there is no such key. Until the transaction
 * ends, nobody else can change or revoke any of them. They are locked from the top down, as in `updateToRevoked`.
 */
export async function lockChain(tx: Tx, keyId: string): Promise<StoredKey[]> {
  const rows = await tx<LimitsRow[]>`
    SELECT ${columns(tx)} FROM api_keys
    WHERE key_id = ANY((SELECT ancestors || key_id FROM api_keys WHERE key_id = ${keyId})::text[])
    ORDER BY cardinality(ancestors) FOR NO KEY UPDATE`;
  return rows.map(stored);
}

/** How many keys below this one are active or were made in the last day. The caller has locked the account. */
export async function countBelow(tx: Tx, { accountId, keyId }: StoredKey): Promise<number> {
  const rows = await tx<{ keys: number }[]>`
    SELECT count(*)::int AS keys FROM api_keys
    WHERE account_id = ${accountId} AND ancestors @> ARRAY[${keyId}::text] AND ${countsAsKey(tx)}`;
  return rows[0]?.keys ?? 0;
}

/** The ids that belong to no service. */
export async function selectUnknownServices(tx: Tx, ids: readonly string[]): Promise<string[]> {
  const rows = await tx<{ id: string }[]>`
    SELECT id FROM unnest(${ids}::uuid[]) AS asked (id) WHERE NOT EXISTS (SELECT 1 FROM services s WHERE s.id = asked.id)`;
  return rows.map(({ id }) => id);
}

function stored({ budgetMicros, budgetPeriod, ...row }: LimitsRow): StoredKey {
  const hasBudget = budgetMicros !== null && budgetPeriod !== null;
  return { ...row, budget: hasBudget ? { amountMicros: budgetMicros, period: budgetPeriod } : null };
}

type NewChild = {
  readonly keyId: string;
  readonly accountId: string;
  readonly secretHash: string;
  readonly ancestors: readonly string[];
  readonly label: string | null;
  readonly limits: Limits;
};

export async function insertChild(tx: Tx, child: NewChild): Promise<void> {
  const { budget, rateLimit, maxPriceMicros, services, expiresAt } = child.limits;
  await tx`
    INSERT INTO api_keys (key_id, account_id, role, secret_hash, ancestors, label, budget_amount, budget_period, rate_limit,
                          max_price, services, expires_at)
    VALUES (${child.keyId}, ${child.accountId}, 'buyer', ${child.secretHash}, ${child.ancestors}::text[], ${child.label},
            ${budget?.amountMicros ?? null}, ${budget?.period ?? null}, ${rateLimit}, ${maxPriceMicros},
            ${services}::uuid[], ${expiresAt})`;
}

/** Stores label and limits. A budget for a key that had none is new and counts from 0. Tells every gateway. */
export async function updateKey(tx: Tx, key: StoredKey): Promise<void> {
  const { budget, rateLimit, maxPriceMicros, services, expiresAt } = key;
  await tx`
    UPDATE api_keys SET
      label = ${key.label}, rate_limit = ${rateLimit}, max_price = ${maxPriceMicros}, services = ${services}::uuid[],
      expires_at = ${expiresAt}, budget_amount = ${budget?.amountMicros ?? null}, budget_period = ${budget?.period ?? null},
      budget_number = budget_number + CASE WHEN budget_amount IS NULL AND ${budget !== null} THEN 1 ELSE 0 END
    WHERE key_id = ${key.keyId}`;
  if (budget === null) await tx`DELETE FROM budget_refusals WHERE key_id = ${key.keyId}`;
  await announceTree(tx, key.keyId);
}
