import { type Act, actorOf } from '../../accounts/audit.ts';
import type { ApiRequest } from '../../http/route.ts';
import { keyOf } from '../../keys/caller.ts';
import type { KeyRow } from '../../keys/key-fields.ts';
import type { Alongside } from '../../keys/keys.ts';

/**
 * What records a change to an admin key, or to any key of another account than the caller's: only an admin can make these. Undefined
 * for other keys of the caller's own account: that is no act of an operator.
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
