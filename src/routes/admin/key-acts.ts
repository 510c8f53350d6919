import { type Act, actorOf } from '../../accounts/audit.ts';
import type { ApiRequest } from '../../http/route.ts';
import { keyOf } from '../../keys/caller.ts';
import type { Alongside } from '../../keys/keys.ts';
import type { KeyDescription } from '../../keys/keys-sql.ts';

/**
 * What records a change to a key of another account than the caller's, which only an admin can make. Undefined for a key of the
 * caller's own account: that is no act of an operator.
 */
export function ifForeign<Subject>(
  { caller }: ApiRequest,
  { accountId }: Pick<KeyDescription, 'accountId'>,
  record: Alongside<Subject>,
): Alongside<Subject> | undefined {
  return keyOf(caller).accountId === accountId ? undefined : record;
}

export function keyAct(
  { caller, requestId }: ApiRequest,
  action: Act['action'],
  { keyId, accountId }: Pick<KeyDescription, 'keyId' | 'accountId'>,
  before: Act['before'],
  after: Act['after'],
): Act {
  const by = actorOf(keyOf(caller), requestId);
  return { ...by, action, subjectType: 'key', subjectId: keyId, before, after: { account_id: accountId, ...after } };
}
