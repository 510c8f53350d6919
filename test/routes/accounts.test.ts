import { expect, it } from 'vitest';
import type { ApiRequest } from '../../src/http/route.ts';
import { type AccountsRoutesDeps, accountsRoutes } from '../../src/routes/admin/accounts.ts';

const OWN = '01890000-0000-7000-8000-000000000001';
const OTHER = '01890000-0000-7000-8000-000000000002';

const changes: unknown[] = [];
const routes = accountsRoutes({
  ...({} as Pick<AccountsRoutesDeps, 'closing' | 'sql' | 'wallets'>),
  suspension: {
    set: async (accountId, status) => {
      changes.push([accountId, status]);
      return accountId === OTHER ? { accountId, ownerId: 'label', status } : null;
    },
  },
});
const patch = routes.find(({ method }) => method === 'PATCH');
const ask = (id: string, status: string) =>
  patch?.handle({
    params: { id },
    body: { status },
    caller: { kind: 'key', key: { accountId: OWN } },
  } as unknown as ApiRequest);

it('only admins may suspend and resume accounts', () => {
  expect(patch).toMatchObject({ method: 'PATCH', path: '/api/v1/admin/accounts/:id', access: ['admin'] });
});

it('answers with the account as it is after the change', async () => {
  expect(await ask(OTHER, 'suspended')).toEqual({
    status: 200,
    body: { account_id: OTHER, owner_id: 'label', status: 'suspended' },
  });
});

it("refuses to suspend the admin's own account: nobody could resume it", async () => {
  changes.length = 0;
  await expect(ask(OWN, 'suspended')).rejects.toMatchObject({ code: 'conflict' });
  expect(changes).toEqual([]);
});

it.each([['01890000-0000-7000-8000-000000000003'], ['no-uuid'], ['']])(
  'answers 404 for an account that does not exist: %s',
  async (id) => {
    await expect(ask(id, 'active')).rejects.toMatchObject({ code: 'not_found' });
  },
);
