import { expect, it } from 'vitest';
import type { ApiRequest } from '../../src/http/route.ts';
import { type AccountsRoutesDeps, accountsRoutes } from '../../src/routes/admin/accounts.ts';
import { accepts } from '../support/accounts.ts';

const OWN = '01890000-0000-7000-8000-000000000001';
const OTHER = '01890000-0000-7000-8000-000000000002';

const changes: unknown[] = [];
const routes = accountsRoutes({
  ...({} as Pick<AccountsRoutesDeps, 'closing' | 'catalog' | 'sql' | 'wallets'>),
  suspension: {
    set: async (accountId, status, reason) => {
      changes.push([accountId, status, reason]);
      return accountId === OTHER ? { ownerId: 'label', status, reason } : null;
    },
  },
});
const patch = routes.find(({ method }) => method === 'PATCH');
const ask = (id: string, status: string, reason?: string) =>
  patch?.handle({
    params: { id },
    body: reason === undefined ? { status } : { status, reason },
    caller: { kind: 'key', key: { accountId: OWN } },
  } as unknown as ApiRequest);

it('only admins may suspend and resume accounts', () => {
  expect(patch).toMatchObject({ method: 'PATCH', path: '/api/v1/admin/accounts/:id', access: ['admin'] });
});

it('the answer is the account as it is after the change', async () => {
  expect(await ask(OTHER, 'suspended', 'unpaid')).toEqual({
    status: 200,
    body: { account_id: OTHER, owner_id: 'label', status: 'suspended', suspension_reason: 'unpaid' },
  });
  expect(await ask(OTHER, 'active')).toMatchObject({ body: { status: 'active', suspension_reason: null } });
});

it('a reason is refused unless the account is being suspended, and if it is empty, too long or of several lines', async () => {
  await expect(ask(OTHER, 'active', 'paid')).rejects.toMatchObject({ code: 'invalid_request' });
  const body = (reason: unknown) => accepts(patch?.body, { status: 'suspended', reason });
  expect(['x', 'x'.repeat(500), 'Señal: 未払い'].map(body)).toEqual([true, true, true]);
  expect(['', 'x'.repeat(501), 'a\nb', 7].map(body)).toEqual([false, false, false, false]);
});

it('admins cannot suspend their own account, because nobody could resume it', async () => {
  changes.length = 0;
  await expect(ask(OWN, 'suspended')).rejects.toMatchObject({ code: 'conflict' });
  expect(changes).toEqual([]);
});

it.each([['01890000-0000-7000-8000-000000000003'], ['no-uuid'], ['']])(
  'an account that does not exist is 404: %s',
  async (id) => {
    await expect(ask(id, 'active')).rejects.toMatchObject({ code: 'not_found' });
  },
);
