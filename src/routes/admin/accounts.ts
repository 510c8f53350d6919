import { actorOf } from '../../accounts/audit.ts';
import type { Closing } from '../../accounts/closing.ts';
import type { Suspension } from '../../accounts/suspension.ts';
import { ApiError } from '../../errors.ts';
import type { ApiRequest, ApiResponse, JsonSchema, Route } from '../../http/route.ts';
import { keyOf } from '../../keys/caller.ts';
import { EXAMPLE, json, record, TEXT, TIME, UUID } from '../../openapi/schemas.ts';
import { isUuid } from '../../platform/ids.ts';

const PATCH_BODY: JsonSchema = {
  title: 'AccountChange',
  examples: [{ status: 'suspended' }],
  type: 'object',
  additionalProperties: false,
  required: ['status'],
  properties: { status: { type: 'string', enum: ['active', 'suspended'] } },
};

const ACCOUNT = record('Account', {
  account_id: UUID,
  owner_id: TEXT,
  status: { type: 'string', enum: ['active', 'suspended'] },
});
const CLOSED = record('ClosedAccount', {
  account_id: UUID,
  owner_id: { ...TEXT, description: 'The same text for every closed account' },
  status: { type: 'string', const: 'closed' },
  closed_at: TIME,
});
const ACCOUNT_PARAM = { id: { description: 'The account', schema: UUID, example: EXAMPLE.accountId } };

export type AccountsRoutesDeps = {
  readonly suspension: Pick<Suspension, 'set'>;
  readonly closing: Pick<Closing, 'close'>;
};

/** The routes by which an operator suspends, resumes and closes accounts (docs/api.md, 'Admin'). */
export function accountsRoutes({ suspension, closing }: AccountsRoutesDeps): Route[] {
  return [
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
        }),
      },
      errors: ['not_found', 'conflict'],
      handle: async (request: ApiRequest<{ status: 'active' | 'suspended' }>) => {
        const id = request.params.id ?? '';
        const { status } = request.body;
        if (status === 'suspended' && id === keyOf(request.caller).accountId) {
          throw new ApiError(
            'conflict',
            'This is your own account: once suspended, it could not be resumed with this key.',
          );
        }
        const by = actorOf(keyOf(request.caller), request.requestId);
        const account = isUuid(id) ? await suspension.set(id, status, by) : null;
        if (account === null) throw new ApiError('not_found', 'There is no such account.');
        if (account.status === 'closed')
          throw new ApiError('conflict', 'This account is closed: nothing opens it again.');
        return { status: 200, body: { account_id: id, owner_id: account.ownerId, status: account.status } };
      },
    },
  ];
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
