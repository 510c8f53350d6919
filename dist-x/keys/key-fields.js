import { money, plain, selectList, time, timeOrNull, view, } from '../platform/fields.js';
import { EXAMPLE, TEXT, UUID } from '../platform/schemas.js';
import { ROLES } from './caller.js';
export const KEY_ID = { type: 'string', pattern: '^acf_[0-9A-Za-z]{22}$' };
const SECRET = { type: 'string', pattern: '^sk_[0-9A-Za-z]{49}$', description: 'Shown here and never again' };
const ROLE = { type: 'string', enum: [...ROLES] };
const STATUS = { type: 'string', enum: ['active', 'revoked'] };
const RATE_LIMIT = { type: 'integer', minimum: 1, description: 'Requests per minute' };
const PREVIOUS = 'CASE WHEN k.previous_expires_at > now() THEN k.previous_expires_at END';
/** An API key, from `api_keys k JOIN accounts a`. Its owner is its account. */
export const KEY = {
    key_id: { column: 'k.key_id', audience: 'owner', ...plain(KEY_ID), example: EXAMPLE.keyId },
    secret: { audience: 'owner', ...plain(SECRET), example: EXAMPLE.secret },
    role: { column: 'k.role', audience: 'owner', ...plain(ROLE), example: 'buyer' },
    owner_id: { column: 'a.owner_id', audience: 'owner', ...plain(TEXT), example: 'acme-bot' },
    rate_limit: { column: 'k.rate_limit', audience: 'owner', ...plain(RATE_LIMIT), example: 60 },
    account_id: { column: 'k.account_id', audience: 'owner', ...plain(UUID), example: EXAMPLE.accountId },
    status: { column: 'k.status', audience: 'owner', ...plain(STATUS), example: 'active' },
    created_at: { column: 'k.created_at', audience: 'owner', ...time(), example: EXAMPLE.time },
    /** When the secret that the last rotation replaced ceases to be valid; null when it is not valid now, or there is none. */
    previous_secret_expires_at: { column: PREVIOUS, audience: 'owner', ...timeOrNull(), example: null },
    last_used_at: { audience: 'owner', ...timeOrNull(), example: EXAMPLE.time },
    total_spent: { audience: 'owner', ...money('What calls with this key have cost'), example: 0.002 },
};
export const KEY_SELECT = selectList(KEY);
/** A key that was just made. This is the only copy of its secret in clear. */
export const NEW_KEY = view(KEY, 'owner', [
    'status',
    'created_at',
    'previous_secret_expires_at',
    'last_used_at',
    'total_spent',
]);
export const LISTED_KEY = view(KEY, 'owner', ['secret', 'last_used_at', 'total_spent']);
export const OWN_KEY = view(KEY, 'owner', ['secret']);
//# sourceMappingURL=key-fields.js.map