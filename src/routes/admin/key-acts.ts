import { type Act, actorOf } from '../../accounts/audit.ts';
import type { ApiRequest } from '../../http/route.ts';
import { keyOf } from '../../keys/caller.ts';
import type { StoredKey } from '../../keys/children/children-sql.ts';
import type { KeyRow } from '../../keys/key-fields.ts';
import type { Alongside } from '../../keys/keys.ts';
import { microsToUsd } from '../../platform/money.ts';

/**
 * Records a change to an admin key, or to any key of another account than the caller's: only an admin can make these changes.
 * Undefined for other keys of the caller's own account: changing them is not an act of an operator.
 */
export function ifAct<Subject>(
  { caller }: ApiRequest,
  { account_id: accountId, role }: Pick<KeyRow, 'account_id' | 'role'>,
  record: Alongside<Subject>,
): Alongside<Subject> | undefined {
  return role !== 'admin' && keyOf(caller).accountId === accountId ? undefined : record;
}

export function keyAct(
  { caller, requestId }: ApiRequest,
  action: Act['action'],
  { key_id: keyId, account_id: accountId }: Pick<KeyRow, 'key_id' | 'account_id'>,
  before: Act['before'],
  after: Act['after'],
): Act {
  const by = actorOf(keyOf(caller), requestId);
  return { ...by, action, subjectType: 'key', subjectId: keyId, before, after: { account_id: accountId, ...after } };
}

/** The fields in which `key` differs from the other one, as the API shows them. */
export function keyChanges(key: StoredKey, other: StoredKey): Readonly<Record<string, unknown>> {
  const fields = inApi(other);
  return Object.fromEntries(
    Object.entries(inApi(key)).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(fields[name])),
  );
}

const inApi = ({
  label,
  rateLimit,
  budget,
  maxPriceMicros,
  services,
  expiresAt,
}: StoredKey): Record<string, unknown> => ({
  label,
  rate_limit: rateLimit,
  budget: budget && { amount: microsToUsd(budget.amountMicros), period: budget.period },
  max_price: maxPriceMicros === null ? null : microsToUsd(maxPriceMicros),
  services,
  expires_at: expiresAt,
});
