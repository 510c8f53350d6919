import { readWithDeadline } from '../../accounts/lists/deadline.js';
import { selectKeys } from '../../accounts/lists/keys-sql.js';
import { ROLES } from '../../keys/caller.js';
import { isKeyId } from '../../keys/credentials.js';
import { LISTED_KEY } from '../../keys/key-fields.js';
import { KEYS } from '../keys.js';
import { listQuery, oneOf, readPage, UUID_FILTER, wrongCursor } from './lists.js';
const QUERY = listQuery({
    account_id: { ...UUID_FILTER, description: 'Only keys of this account' },
    role: oneOf(ROLES, 'Only keys with this role'),
    status: oneOf(['active', 'revoked'], 'Only keys with this status'),
});
/** `GET /admin/keys`: keys of all accounts. */
export function adminKeysRoutes(deps) {
    return [
        {
            method: 'GET',
            path: '/api/v1/admin/keys',
            summary: 'Keys of all accounts, newest first; never their secrets',
            access: ['admin'],
            query: QUERY,
            responses: { 200: KEYS },
            handle: (request) => listKeys(deps, request.query),
        },
    ];
}
async function listKeys({ sql, keys }, query) {
    const { account_id: accountId = null, role = null, status = null, cursor = null } = query;
    if (cursor !== null && (!isKeyId(cursor) || (await keys.find(cursor)) === null))
        throw wrongCursor();
    const filter = { accountId, role, status };
    const { entries, next } = await readPage(query, (limit) => readWithDeadline(sql, async (timed) => selectKeys(await timed(), filter, cursor, limit)), (key) => key.key_id);
    return { status: 200, body: { keys: entries.map(LISTED_KEY.json), next_cursor: next } };
}
//# sourceMappingURL=keys.js.map