import type { Role } from '../../keys/caller.ts';
import type { AccountStatus } from '../../keys/keys-sql.ts';
import type { Tx } from '../../platform/postgres.ts';

type AccountFilter = {
  readonly status: AccountStatus | null;
  /** A part of the label or of the id, in upper or lower case, or the id of a key. */
  readonly text: string | null;
  /** Accounts with an active key of this role. */
  readonly role: Role | null;
  readonly accountId: string | null;
  /** The account of this key, active or revoked. */
  readonly keyId: string | null;
};

/** Amounts in micro-USD, as Postgres has them: without calls that are open or not stored yet. */
export type AccountRow = {
  readonly accountId: string;
  readonly ownerId: string;
  readonly status: AccountStatus;
  readonly suspensionReason: string | null;
  readonly balanceMicros: number;
  readonly payableMicros: number;
  readonly activeKeys: number;
  readonly createdAt: Date;
  readonly closedAt: Date | null;
};

/**
 * Accounts, newest first: their ids begin with the time.
 *
 * @param before the last account of the previous page, or null for the first
 */
export function selectAccounts(
  tx: Tx,
  { status, text, role, accountId, keyId }: AccountFilter,
  before: string | null,
  limit: number,
): Promise<AccountRow[]> {
  return tx<AccountRow[]>`
    WITH page AS (
      SELECT id, owner_id, status, suspension_reason, created_at, closed_at FROM accounts a
      WHERE true ${status === null ? tx`` : tx`AND status = ${status}`}
        ${
          text === null
            ? tx``
            : tx`AND (strpos(lower(owner_id), lower(${text})) > 0 OR strpos(id::text, lower(${text})) > 0
               OR id = (SELECT account_id FROM api_keys WHERE key_id = ${text}))`
        }
        ${role === null ? tx`` : tx`AND id IN (SELECT account_id FROM api_keys WHERE role = ${role} AND status = 'active')`}
        ${accountId === null ? tx`` : tx`AND id = ${accountId}`}
        ${keyId === null ? tx`` : tx`AND id = (SELECT account_id FROM api_keys WHERE key_id = ${keyId})`}
        ${before === null ? tx`` : tx`AND id < ${before}`}
      ORDER BY id DESC LIMIT ${limit})
    ${moneyOfPage(tx)}`;
}

/** One account, or null. */
export async function selectAccount(tx: Tx, accountId: string): Promise<AccountRow | null> {
  const rows = await tx<AccountRow[]>`
    WITH page AS (SELECT id, owner_id, status, suspension_reason, created_at, closed_at FROM accounts WHERE id = ${accountId})
    ${moneyOfPage(tx)}`;
  return rows[0] ?? null;
}

const moneyOfPage = (tx: Tx) => tx`
    SELECT p.id AS "accountId", p.owner_id AS "ownerId", p.status, p.suspension_reason AS "suspensionReason",
           p.created_at AS "createdAt", p.closed_at AS "closedAt",
           coalesce(w.balance, 0) AS "balanceMicros", coalesce(e.balance, 0) AS "payableMicros",
           (SELECT count(*) FROM api_keys k WHERE k.account_id = p.id AND k.status = 'active') AS "activeKeys"
    FROM page p
    LEFT JOIN balances w ON w.account_id = p.id AND w.ledger = 'wallet'
    LEFT JOIN balances e ON e.account_id = p.id AND e.ledger = 'earnings'
    ORDER BY p.id DESC`;
