import { actorOf } from '../../accounts/audit.ts';
import type { Closing } from '../../accounts/closing.ts';
import {
  ACCOUNT_SORTS,
  type AccountPosition,
  type AccountRow,
  type AccountSort,
  selectAccount,
  selectAccounts,
} from '../../accounts/lists/accounts-sql.ts';
import { readWithDeadline } from '../../accounts/lists/deadline.ts';
import { clearProfile, profileJson } from '../../accounts/profile-acts.ts';
import type { Suspension } from '../../accounts/suspension.ts';
import { parseInstant } from '../../accounts/time-range.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import { selectProfiles } from '../../catalog/providers/profiles-sql.ts';
import { ApiError } from '../../errors.ts';
import type { ApiRequest, ApiResponse, FromSchema, Route } from '../../http/route.ts';
import { keyOf, ROLES } from '../../keys/caller.ts';
import type { WalletReader } from '../../ledger/wallets/wallets.ts';
import { COUNT, EXAMPLE, json, list, ONE_LINE, orNull, record, TEXT, TIME, UUID, usd } from '../../openapi/schemas.ts';
import { isUuid } from '../../platform/ids.ts';
import { microsToUsd, usdToMicros } from '../../platform/money.ts';
import type { Sql } from '../../platform/postgres.ts';
import { KEY_FILTER, listQuery, oneOf, readPage, TEXT_FILTER, UUID_FILTER, wrongCursor } from './lists.ts';

const PATCH_BODY = {
  title: 'AccountChange',
  examples: [{ status: 'suspended', reason: 'Your last invoice is unpaid.' }],
  type: 'object',
  additionalProperties: false,
  required: ['status'],
  properties: {
    status: { type: 'string', enum: ['active', 'suspended'] },
    reason: {
      type: 'string',
      minLength: 1,
      maxLength: 500,
      pattern: ONE_LINE,
      description: 'Of a suspension: what the account is told. One line',
    },
  },
} as const;
const REASON = { ...orNull(TEXT), description: 'What a suspended account is told' };

const ACCOUNT = record('Account', {
  account_id: UUID,
  owner_id: TEXT,
  status: { type: 'string', enum: ['active', 'suspended'] },
  suspension_reason: REASON,
});
const CLOSED = record('ClosedAccount', {
  account_id: UUID,
  owner_id: { ...TEXT, description: 'The same text for every closed account' },
  status: { type: 'string', const: 'closed' },
  closed_at: TIME,
});
const STATUSES = ['active', 'suspended', 'closed'] as const;
const INSTANT = { type: 'string', maxLength: 40 } as const;
const DAY_OR_TIME = 'YYYY-MM-DD (00:00 UTC) or RFC 3339';
/** A cursor: a balance or a time in microseconds, a point and an id. */
const CURSOR = /^(-?\d{1,16})\.([0-9a-f-]{36})$/;
const LIST_FILTERS = {
  status: oneOf(STATUSES, 'Only accounts with this status'),
  q: { ...TEXT_FILTER, description: 'A part of the label or of the id, in upper or lower case; or the id of a key' },
  role: oneOf(ROLES, 'Only accounts with an active key of this role'),
  account_id: { ...UUID_FILTER, description: 'Only this account' },
  key_id: { ...KEY_FILTER, description: 'Only the account of this key, active or revoked' },
  min_balance: { type: 'number', description: 'Only accounts with this settled balance or more, in US dollars' },
  max_balance: { type: 'number', description: 'Only accounts with this settled balance or less, in US dollars' },
  used_since: { ...INSTANT, description: `Only accounts that called at this time or later: ${DAY_OR_TIME}` },
  unused_since: { ...INSTANT, description: `Only accounts without a call since this time, or ever: ${DAY_OR_TIME}` },
  sort: oneOf(ACCOUNT_SORTS, '`balance`: the settled one; it and `last_used` have the greatest first. Default: newest'),
} as const;
const LIST_QUERY = listQuery(LIST_FILTERS, 54);
type ListQuery = FromSchema<typeof LIST_QUERY>;
const ENTRY_FIELDS = {
  account_id: UUID,
  owner_id: TEXT,
  status: { type: 'string', enum: [...STATUSES] },
  balance: usd('What the account had when its last calls were stored; open calls are not subtracted'),
  payable: usd('What the account is owed'),
  active_keys: COUNT,
  created_at: TIME,
  closed_at: orNull(TIME),
  last_used_at: { ...orNull(TIME), description: 'When its last call began; null if it never called' },
};
const ACCOUNTS = record('Accounts', {
  accounts: list(record('AccountEntry', ENTRY_FIELDS), 'In the order of `sort`'),
  next_cursor: orNull(TEXT),
});
const DETAILS = record('AccountDetails', {
  ...ENTRY_FIELDS,
  suspension_reason: REASON,
  display_name: { ...orNull(TEXT), description: 'What its listings show about it, as do contact and url' },
  contact: orNull(TEXT),
  url: orNull(TEXT),
  balance: usd('What the account can spend now; if `is_live` is false, as in the list'),
  held: {
    ...orNull(usd('What its open calls hold')),
    description: 'What its open calls hold; null if `is_live` is false',
  },
  is_live: {
    type: 'boolean',
    description:
      'False when the wallet could not be read: Redis is away, or the wallet is damaged; and of a closed account',
  },
});
const ENTRY_EXAMPLE = {
  account_id: EXAMPLE.accountId,
  owner_id: 'acme-bot',
  status: 'active',
  balance: 9.998,
  payable: 0,
  active_keys: 1,
  created_at: EXAMPLE.time,
  closed_at: null,
  last_used_at: EXAMPLE.time,
};
const CLEARED = record('ClearedProfile', {
  account_id: UUID,
  owner_id: TEXT,
  display_name: { type: 'null' },
  contact: { type: 'null' },
  url: { type: 'null' },
});
const ACCOUNT_PARAM = { id: { description: 'The account', schema: UUID, example: EXAMPLE.accountId } };

export type AccountsRoutesDeps = {
  readonly wallets: WalletReader;
  readonly suspension: Pick<Suspension, 'set'>;
  readonly closing: Pick<Closing, 'close'>;
  readonly catalog: Pick<Catalog, 'setProfiles'>;
  readonly sql: Sql;
};

/** The routes by which an operator lists, suspends, resumes and closes accounts (docs/api.md, 'Admin'). */
export function accountsRoutes({ suspension, closing, wallets, catalog, sql }: AccountsRoutesDeps): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v1/admin/accounts',
      summary: 'All accounts with their money, number of keys and last use, newest first or as sorted',
      access: ['admin'],
      query: LIST_QUERY,
      csvRows: 'accounts',
      responses: { 200: json('One page of accounts', ACCOUNTS, { accounts: [ENTRY_EXAMPLE], next_cursor: null }) },
      handle: (request: ApiRequest<undefined, ListQuery>) => listAccounts(sql, request.query),
    },
    {
      method: 'GET',
      path: '/api/v1/admin/accounts/:id',
      summary: 'One account, with its live balance',
      access: ['admin'],
      params: ACCOUNT_PARAM,
      responses: {
        200: json('The account', DETAILS, {
          ...ENTRY_EXAMPLE,
          suspension_reason: null,
          ...profileJson(null),
          held: 0.002,
          is_live: true,
        }),
      },
      errors: ['not_found'],
      handle: ({ params }) => showAccount(sql, wallets, params.id ?? ''),
    },
    {
      method: 'POST',
      path: '/api/v1/admin/accounts/:id/close',
      summary:
        'Close an account for good: revoke its keys, remove its listings, and erase names. It must have no money left',
      access: ['admin'],
      params: ACCOUNT_PARAM,
      responses: {
        200: json('The account, closed now or before', CLOSED, {
          account_id: EXAMPLE.accountId,
          owner_id: '(closed)',
          status: 'closed',
          closed_at: EXAMPLE.time,
        }),
      },
      errors: ['not_found', 'conflict'],
      handle: (request) => close(closing, request),
    },
    {
      method: 'DELETE',
      path: '/api/v1/admin/accounts/:id/profile',
      summary:
        'Clear display name, contact and URL of a provider, who may set others. A repeated request gets the same answer',
      access: ['admin'],
      params: ACCOUNT_PARAM,
      responses: {
        200: json('The account, without a profile', CLEARED, {
          account_id: EXAMPLE.accountId,
          owner_id: 'acme-bot',
          ...profileJson(null),
        }),
      },
      errors: ['not_found'],
      handle: async ({ params, caller, requestId }) => {
        const id = params.id ?? '';
        const ownerId = isUuid(id) ? await clearProfile(sql, id, actorOf(keyOf(caller), requestId)) : null;
        if (ownerId === null) throw new ApiError('not_found', 'There is no such account.');
        await catalog.setProfiles(new Map([[id, null]]));
        return { status: 200, body: { account_id: id, owner_id: ownerId, ...profileJson(null) } };
      },
    },
    {
      method: 'PATCH',
      path: '/api/v1/admin/accounts/:id',
      summary: 'Suspend an account or resume it, from the very next request with any of its keys',
      access: ['admin'],
      body: PATCH_BODY,
      params: ACCOUNT_PARAM,
      responses: {
        200: json('The account as it is now', ACCOUNT, {
          account_id: EXAMPLE.accountId,
          owner_id: 'acme-bot',
          status: 'suspended',
          suspension_reason: 'Your last invoice is unpaid.',
        }),
      },
      errors: ['not_found', 'conflict'],
      handle: async (request: ApiRequest<FromSchema<typeof PATCH_BODY>>) => {
        const id = request.params.id ?? '';
        const { status, reason = null } = request.body;
        if (status === 'active' && reason !== null) {
          throw new ApiError('invalid_request', 'reason: only a suspension has one.');
        }
        if (status === 'suspended' && id === keyOf(request.caller).accountId) {
          throw new ApiError(
            'conflict',
            'This is your own account: once suspended, it could not be resumed with this key.',
          );
        }
        const by = actorOf(keyOf(request.caller), request.requestId);
        const account = isUuid(id) ? await suspension.set(id, status, reason, by) : null;
        if (account === null) throw new ApiError('not_found', 'There is no such account.');
        if (account.status === 'closed')
          throw new ApiError('conflict', 'This account is closed, and cannot be opened again.');
        const { ownerId, ...standing } = account;
        return {
          status: 200,
          body: { account_id: id, owner_id: ownerId, status: standing.status, suspension_reason: standing.reason },
        };
      },
    },
  ];
}

async function listAccounts(sql: Sql, query: ListQuery): Promise<ApiResponse> {
  const { status = null, q: text = null, role = null, sort = 'newest' } = query;
  const filter = {
    status,
    text,
    role,
    accountId: query.account_id ?? null,
    keyId: query.key_id ?? null,
    minBalanceMicros: readBalance('min_balance', query.min_balance),
    maxBalanceMicros: readBalance('max_balance', query.max_balance),
    usedSinceMs: parseInstant('used_since', query.used_since),
    unusedSinceMs: parseInstant('unused_since', query.unused_since),
  };
  const before = readCursor(query.cursor, sort);
  const { entries, next } = await readPage(
    query,
    (limit) => readWithDeadline(sql, async (timed) => selectAccounts(await timed(), filter, sort, before, limit)),
    ({ accountId, rank }) => (sort === 'newest' ? accountId : `${rank}.${accountId}`),
  );
  return { status: 200, body: { accounts: entries.map(accountJson), next_cursor: next } };
}

/** A balance may be negative, after Redis came back older. */
function readBalance(name: string, usd: number | undefined): number | null {
  if (usd === undefined) return null;
  const micros = usdToMicros(Math.abs(usd));
  if (micros === null) throw new ApiError('invalid_request', `${name}: must be USD with at most 6 decimals.`);
  return usd < 0 ? -micros : micros;
}

function readCursor(cursor: string | undefined, sort: AccountSort): AccountPosition | null {
  if (cursor === undefined) return null;
  const [, rank, id] = (sort === 'newest' ? ['', '0', cursor] : CURSOR.exec(cursor)) ?? [];
  if (id === undefined || !isUuid(id) || !Number.isSafeInteger(Number(rank))) throw wrongCursor();
  return { rank: Number(rank), id };
}

async function showAccount(sql: Sql, wallets: WalletReader, id: string): Promise<ApiResponse> {
  const account = isUuid(id) ? await selectAccount(sql, id) : null;
  if (account === null) throw new ApiError('not_found', 'There is no such account.');
  // An operator must be able to see an account whose wallet is damaged. A closed account needs no wallet in Redis.
  const wallet = account.status === 'closed' ? null : await wallets.read(id).catch(() => null);
  const live =
    wallet === null
      ? { held: null, is_live: false }
      : { balance: microsToUsd(wallet.balanceMicros), held: microsToUsd(wallet.heldMicros), is_live: true };
  const profile = profileJson((await selectProfiles(sql, [id])).get(id) ?? null);
  return {
    status: 200,
    body: { ...accountJson(account), suspension_reason: account.suspensionReason, ...profile, ...live },
  };
}

function accountJson(account: AccountRow): Record<string, unknown> {
  return {
    account_id: account.accountId,
    owner_id: account.ownerId,
    status: account.status,
    balance: microsToUsd(account.balanceMicros),
    payable: microsToUsd(account.payableMicros),
    active_keys: account.activeKeys,
    created_at: account.createdAt.toISOString(),
    closed_at: account.closedAt?.toISOString() ?? null,
    last_used_at: account.lastUsedAt?.toISOString() ?? null,
  };
}

async function close(closing: Pick<Closing, 'close'>, { params, caller, requestId }: ApiRequest): Promise<ApiResponse> {
  const id = params.id ?? '';
  const key = keyOf(caller);
  if (id === key.accountId) {
    throw new ApiError('conflict', 'This is your own account: an admin of another account can close it.');
  }
  const closed = isUuid(id) ? await closing.close(id, actorOf(key, requestId)) : null;
  if (closed === null) throw new ApiError('not_found', 'There is no such account.');
  const { ownerId, closedAt } = closed;
  return {
    status: 200,
    body: { account_id: id, owner_id: ownerId, status: 'closed', closed_at: closedAt.toISOString() },
  };
}
