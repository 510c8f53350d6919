import { unauthorizedError } from '../errors.ts';
import { type BudgetPeriod, nextPeriodMs, periodAt } from '../keys/budget-period.ts';
import type { KeyRecord } from '../keys/caller.ts';
import type { Wallet, Wallets } from '../ledger/wallets/wallets.ts';
import type { Sql } from '../platform/postgres.ts';

/** What a key can spend, and what its open calls hold. */
export type Allowance = Wallet & {
  /**
   * The budget of which the least remains, and when its next period begins (null: never). Null: the wallet has less than any
   * budget.
   */
  readonly budget: { readonly keyId: string; readonly resetsAtMs: number | null } | null;
};

/** What decides whether a key makes free calls of a listing. */
type FreeListing = { readonly id: string; readonly providerId: string; readonly freeCalls: number };

/**
 * How many free calls of a service the key's account has left. Null if its calls use up none: the service gives none, the key may
 * not call it, or the key's own account sells it.
 *
 * @throws as `Wallets.readFreeUsed`
 */
export async function readFreeLeft(
  wallets: Pick<Wallets, 'readFreeUsed'>,
  { accountId, role, services }: Pick<KeyRecord, 'accountId' | 'role' | 'services'>,
  { id, providerId, freeCalls }: FreeListing,
): Promise<number | null> {
  const mayCall = role !== 'provider' && (services === null || services.has(id));
  if (freeCalls === 0 || !mayCall || accountId === providerId) return null;
  // The same rule as in batch.lua: the provider may have lowered the number below what is used.
  return Math.max(0, freeCalls - (await wallets.readFreeUsed(accountId, id)));
}

type Stores = {
  readonly sql: Sql;
  readonly wallets: Pick<Wallets, 'read' | 'readParts'>;
};

type KeyRow = {
  readonly keyId: string;
  readonly isBelow: boolean;
  readonly amount: number | null;
  readonly period: BudgetPeriod | null;
  readonly number: number;
};

/**
 * What a key can spend, and what its open calls hold. For a child key: what the wallet and all budgets of its chain leave it, and
 * what the open calls of this key and the keys below it hold.
 *
 * @throws as `Wallets.read`; ApiError `unauthorized` if Postgres has no such key
 */
export async function readAllowance(
  { sql, wallets }: Stores,
  { keyId, accountId, ancestors }: Pick<KeyRecord, 'keyId' | 'accountId' | 'ancestors'>,
): Promise<Allowance> {
  if (ancestors.length === 0) return { ...(await wallets.read(accountId)), budget: null };
  const rows = await sql<KeyRow[]>`
    SELECT key_id AS "keyId", key_id = ${keyId} OR ancestors @> ARRAY[${keyId}::text] AS "isBelow",
           budget_amount AS amount, budget_period AS period, budget_number AS number
    FROM api_keys
    WHERE account_id = ${accountId}
      AND (key_id = ANY(${[...ancestors, keyId]}::text[]) OR ancestors @> ARRAY[${keyId}::text])`;
  // Postgres may lack the key's row after it came back older. The budgets are then unknown, and all holds of the account would
  // count as the key's own.
  if (!rows.some((row) => row.keyId === keyId)) throw unauthorizedError();
  const budgets = rows.flatMap(({ keyId: id, amount, period, number }) =>
    amount === null || period === null || !(id === keyId || ancestors.includes(id))
      ? []
      : [{ id, amount, period, number }],
  );
  const holders = rows.filter(({ isBelow }) => isBelow).map((row) => row.keyId);
  const { nowMs, balanceMicros, ...parts } = await wallets.readParts(
    accountId,
    holders,
    budgets.map(({ id }) => id),
  );
  let allowance: Allowance = { balanceMicros, heldMicros: parts.heldMicros, budget: null };
  budgets.forEach(({ id, amount, period: kind, number }, i) => {
    const present = periodAt(kind, number, nowMs);
    const used = parts.budgets[i];
    const isPresent = used !== undefined && used.period >= present;
    // The same rule as in batch.lua: a negative number is a drift, and counts as 0.
    const left = Math.max(0, amount - (isPresent ? Math.max(0, used.spentMicros) : 0));
    if (left >= allowance.balanceMicros) return;
    const resetsAtMs = nextPeriodMs(kind, isPresent ? used.period : present);
    allowance = { ...allowance, balanceMicros: left, budget: { keyId: id, resetsAtMs } };
  });
  return allowance;
}
