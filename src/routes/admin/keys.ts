import { readWithDeadline } from '../../accounts/lists/deadline.ts';
import { selectKeys } from '../../accounts/lists/keys-sql.ts';
import type { ApiRequest, ApiResponse, Route } from '../../http/route.ts';
import { ROLES, type Role } from '../../keys/caller.ts';
import { isKeyId } from '../../keys/credentials.ts';
import type { Keys } from '../../keys/keys.ts';
import { json } from '../../openapi/schemas.ts';
import type { Sql } from '../../platform/postgres.ts';
import { descriptionJson, KEY_EXAMPLE, KEYS } from '../keys.ts';
import { listQuery, oneOf, type PageQuery, readPage, UUID_FILTER, wrongCursor } from './lists.ts';

const QUERY = listQuery({
  account_id: { ...UUID_FILTER, description: 'Only keys of this account' },
  role: oneOf(ROLES, 'Only keys with this role'),
  status: oneOf(['active', 'revoked'], 'Only keys with this status'),
});
type Query = PageQuery & {
  readonly account_id?: string;
  readonly role?: Role;
  readonly status?: 'active' | 'revoked';
};

export type AdminKeysDeps = { readonly sql: Sql; readonly keys: Pick<Keys, 'find'> };

/** `GET /admin/keys`: keys of all accounts. */
export function adminKeysRoutes(deps: AdminKeysDeps): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v1/admin/keys',
      summary: 'Keys of all accounts, newest first; never their secrets',
      access: ['admin'],
      query: QUERY,
      responses: { 200: json('One page of keys', KEYS, { keys: [KEY_EXAMPLE], next_cursor: null }) },
      handle: (request: ApiRequest<undefined, Query>) => listKeys(deps, request.query),
    },
  ];
}

async function listKeys({ sql, keys }: AdminKeysDeps, query: Query): Promise<ApiResponse> {
  const { account_id: accountId = null, role = null, status = null, cursor = null } = query;
  if (cursor !== null && (!isKeyId(cursor) || (await keys.find(cursor)) === null)) throw wrongCursor();
  const filter = { accountId, role, status };
  const { entries, next } = await readPage(
    query,
    (limit) => readWithDeadline(sql, async (timed) => selectKeys(await timed(), filter, cursor, limit)),
    (key) => key.keyId,
  );
  return { status: 200, body: { keys: entries.map(descriptionJson), next_cursor: next } };
}
