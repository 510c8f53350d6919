import type { Role } from '../../keys/caller.ts';
import type { AccountStatus } from '../../keys/keys-sql.ts';
import type { Tx } from '../../platform/postgres.ts';
import { microsOf } from '../cursor.ts';

type AccountFilter = {
  readonly status: AccountStatus | null;
  /** A part of the label or of the id, in upper or lower case, or the id of a key. */
  readonly text: string | null;
  /** Only accounts with an active key of this role. */
  readonly role: Role | null;
  readonly accountId: string | null;
  /** The account of this key, active or revoked. */
  readonly keyId: string | null;
  /** Bounds of the settled balance, both included. */
  readonly minBalanceMicros: number | null;
  readonly maxBalanceMicros: number | null;
  /** Only accounts whose last call began at this time or later. */
  readonly usedSinceMs: number | null;
  /** Only accounts without a call since this time. Those that never called are included. */
  readonly unusedSinceMs: number | null;
};

/** `balance` and `last_used` sort in descending order; accounts that never called come last. */
export const ACCOUNT_SORTS = ['newest', 'balance', 'last_used'] as const;
export type AccountSort = (typeof ACCOUNT_SORTS)[number];

/**
 * The last account of a page. `rank` depends on the order of the list: the balance, the time of last use in microseconds, or 0 if
 * newest first.
 */
export type AccountPosition = { readonly rank: number; readonly id: string };

/** Amounts in micro-USD as Postgres knows them: open calls and calls not stored yet are left out. */
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
  /** When the last call known to the sums began; null if there is none. */
  readonly lastUsedAt: Date | null;
  /** See `AccountPosition`. */
  readonly rank: number;
};

/**
 * Accounts, newest first: their ids begin with the time. Any other order, or a filter by balance or last use, reads that value for
 * every account that passes the other filters.
 *
 * @param before the last account of the previous page, or null for the first
 */
export function selectAccounts(
  tx: Tx,
  filter: AccountFilter,
  sort: AccountSort,
  before: AccountPosition | null,
  limit: number,
): Promise<AccountRow[]> {
  const { status, text, role, accountId, keyId } = filter;
  const { minBalanceMicros: min, maxBalanceMicros: max, usedSinceMs: used, unusedSinceMs: unused } = filter;
  const rank =
    sort === 'newest'
      ? tx`0::bigint`
      : sort === 'balance'
        ? balanceOfAccount(tx)
        : tx`coalesce(${microsOf(tx, lastUseOfAccount(tx))}, 0)`;
  return tx<AccountRow[]>`
    WITH page AS (
      SELECT id, owner_id, status, suspension_reason, created_at, closed_at, rank
      FROM accounts a CROSS JOIN LATERAL (SELECT ${rank} AS rank) AS ranked
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
        ${min === null ? tx`` : tx`AND ${balanceOfAccount(tx)} >= ${min}::bigint`}
        ${max === null ? tx`` : tx`AND ${balanceOfAccount(tx)} <= ${max}::bigint`}
        ${used === null ? tx`` : tx`AND ${lastUseOfAccount(tx)} >= ${new Date(used)}`}
        ${unused === null ? tx`` : tx`AND coalesce(${lastUseOfAccount(tx)} < ${new Date(unused)}, true)`}
        ${before === null ? tx`` : sort === 'newest' ? tx`AND id < ${before.id}` : tx`AND (rank, id) < (${before.rank}::bigint, ${before.id}::uuid)`}
      ORDER BY ${sort === 'newest' ? tx`` : tx`rank DESC,`} id DESC LIMIT ${limit})
    ${detailsOfPage(tx)}`;
}

/** One account, or null. */
export async function selectAccount(tx: Tx, accountId: string): Promise<AccountRow | null> {
  const rows = await tx<AccountRow[]>`
    WITH page AS (
      SELECT id, owner_id, status, suspension_reason, created_at, closed_at, 0::bigint AS rank
      FROM accounts WHERE id = ${accountId})
    ${detailsOfPage(tx)}`;
  return rows[0] ?? null;
}

const balanceOfAccount = (tx: Tx) =>
  tx`coalesce((SELECT balance FROM balances b WHERE b.account_id = a.id AND b.ledger = 'wallet'), 0)`;

/** For `accounts a`, by the index `key_hours_account`. */
const lastUseOfAccount = (tx: Tx) => tx`
  (SELECT last_call_at FROM key_hours h WHERE h.account_id = a.id ORDER BY hour DESC, last_call_at DESC LIMIT 1)`;

const detailsOfPage = (tx: Tx) => tx`
    SELECT a.id AS "accountId", a.owner_id AS "ownerId", a.status, a.suspension_reason AS "suspensionReason",
           a.created_at AS "createdAt", a.closed_at AS "closedAt", a.rank,
           coalesce(w.balance, 0) AS "balanceMicros", coalesce(e.balance, 0) AS "payableMicros",
           (SELECT count(*) FROM api_keys k WHERE k.account_id = a.id AND k.status = 'active') AS "activeKeys",
           ${lastUseOfAccount(tx)} AS "lastUsedAt"
    FROM page a
    LEFT JOIN balances w ON w.account_id = a.id AND w.ledger = 'wallet'
    LEFT JOIN balances e ON e.account_id = a.id AND e.ledger = 'earnings'
    ORDER BY a.rank DESC, a.id DESC`;
