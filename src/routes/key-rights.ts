import { ApiError } from '../errors.ts';
import type { ApiRequest } from '../http/route.ts';
import { type KeyRecord, keyOf, roleCovers } from '../keys/caller.ts';
import type { KeyChange } from '../keys/children/change.ts';
import { isKeyId } from '../keys/credentials.ts';
import type { ShownKey } from '../keys/key-fields.ts';
import type { Keys } from '../keys/keys.ts';

/**
 * The key named in the path, if the caller may change it: a key of its own account or, for an admin, any key. A child key may
 * change only those below it. Any other key is answered as if it did not exist. Within an account, no key may change a key with a
 * higher role: otherwise anyone with a buyer key could rotate the admin key of the same account, and would get its secret.
 */
export async function manageableKey(keys: Keys, request: ApiRequest<unknown>): Promise<ShownKey> {
  const by = keyOf(request.caller);
  const keyId = request.params.key_id ?? '';
  if (isChild(by) && keyId === by.keyId) {
    throw new ApiError('forbidden', 'A child key cannot change itself: the holder of the key above it can.');
  }
  const key = isKeyId(keyId) ? await keys.find(keyId) : null;
  if (key === null || !reaches(by, key)) throw new ApiError('not_found', 'There is no such key.');
  if (!roleCovers(by.role, key.role)) {
    throw new ApiError('forbidden', `Your key cannot change a key with the role ${key.role}.`);
  }
  return key;
}

export const isChild = ({ ancestors }: Pick<KeyRecord, 'ancestors'>): boolean => ancestors.length > 0;

function reaches(by: KeyRecord, key: ShownKey): boolean {
  if (by.role === 'admin') return true;
  return isChild(by) ? key.ancestors.includes(by.keyId) : key.account_id === by.accountId;
}

/** Throws if the caller may manage the key, but may not change this field. */
export function checkChange(by: KeyRecord, key: ShownKey, { label: _, ...limits }: KeyChange): void {
  const [limit] = Object.keys(limits) as (keyof typeof limits)[];
  if (limit === undefined) return;
  if (!isChild(key)) {
    if (by.role !== 'admin') throw new ApiError('forbidden', 'The limits of a key without a parent are for admins.');
    const other = (Object.keys(limits) as (keyof typeof limits)[]).find((name) => name !== 'rateLimit');
    if (other === undefined) return;
    throw new ApiError(
      'invalid_request',
      `${FIELDS[other]}: only child keys have one. Make one with POST /api/v1/keys.`,
    );
  }
  if (by.role !== 'admin' && !key.ancestors.includes(by.keyId)) {
    throw new ApiError('forbidden', `${FIELDS[limit]}: is for the keys above this one, and for admins.`);
  }
}

const FIELDS: Readonly<Record<Exclude<keyof KeyChange, 'label'>, string>> = {
  budget: 'budget',
  rateLimit: 'rate_limit',
  maxPriceMicros: 'max_price',
  services: 'services',
  expiresAt: 'expires_at',
};
