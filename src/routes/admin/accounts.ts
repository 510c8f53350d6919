import type { Suspension } from '../../accounts/suspension.ts';
import { ApiError } from '../../errors.ts';
import type { ApiRequest, JsonSchema, Route } from '../../http/route.ts';
import { keyOf } from '../../keys/caller.ts';
import type { AccountStatus } from '../../keys/keys-sql.ts';
import { EXAMPLE, json, record, TEXT, UUID } from '../../openapi/schemas.ts';
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

/** The route by which an operator suspends and resumes accounts (docs/api.md, 'Admin'). */
export function accountsRoutes({ suspension }: { readonly suspension: Pick<Suspension, 'set'> }): Route[] {
  return [
    {
      method: 'PATCH',
      path: '/api/v1/admin/accounts/:id',
      summary: 'Suspend an account or resume it, from the very next request with any of its keys',
      access: ['admin'],
      body: PATCH_BODY,
      params: { id: { description: 'The account', schema: UUID, example: EXAMPLE.accountId } },
      responses: {
        200: json('The account as it is now', ACCOUNT, {
          account_id: EXAMPLE.accountId,
          owner_id: 'acme-bot',
          status: 'suspended',
        }),
      },
      errors: ['not_found', 'conflict'],
      handle: async (request: ApiRequest<{ status: AccountStatus }>) => {
        const id = request.params.id ?? '';
        const { status } = request.body;
        if (status === 'suspended' && id === keyOf(request.caller).accountId) {
          throw new ApiError(
            'conflict',
            'This is your own account: once suspended, it could not be resumed with this key.',
          );
        }
        const account = isUuid(id) ? await suspension.set(id, status) : null;
        if (account === null) throw new ApiError('not_found', 'There is no such account.');
        return { status: 200, body: { account_id: id, owner_id: account.ownerId, status: account.status } };
      },
    },
  ];
}
