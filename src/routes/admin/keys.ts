import { readWithDeadline } from '../../accounts/lists/deadline.ts';
import { selectKeys } from '../../accounts/lists/keys-sql.ts';
import type { ApiRequest, ApiResponse, FromSchema, Route } from '../../http/route.ts';
import { ROLES } from '../../keys/caller.ts';
import { isKeyId } from '../../keys/credentials.ts';
import { LISTED_KEY } from '../../keys/key-fields.ts';
import type { Keys } from '../../keys/keys.ts';
import type { Sql } from '../../platform/postgres.ts';
import { KEYS } from '../keys.ts';
import { listQuery, oneOf, readPage, UUID_FILTER, wrongCursor } from './lists.ts';

const QUERY = listQuery({
  account_id: { ...UUID_FILTER, description: 'Only keys of this account' },
  role: oneOf(ROLES, 'Only keys with this role'),
  status: oneOf(['active', 'revoked'], 'Only keys with this status'),
});
type Query = FromSchema<typeof QUERY>;

type AdminKeysDeps = { readonly sql: Sql; readonly keys: Pick<Keys, 'find' | 'shown'> };

/** `GET /admin/keys`: keys of all accounts. */
export function adminKeysRoutes(deps: AdminKeysDeps): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v1/admin/keys',
      summary: 'Keys of all accounts, newest first; never their secrets',
      access: ['admin'],
      query: QUERY,
      csvRows: 'keys',
      responses: { 200: KEYS },
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
    (key) => key.key_id,
  );
  const shown = await keys.shown(entries);
  return { status: 200, body: { keys: shown.map(LISTED_KEY.json), next_cursor: next } };
}
