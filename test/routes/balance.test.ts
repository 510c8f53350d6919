import { expect, it } from 'vitest';
import { ApiError } from '../../src/errors.ts';
import type { KeyRecord } from '../../src/keys/caller.ts';
import { Operator } from '../../src/platform/operator.ts';
import { balanceRoutes } from '../../src/routes/balance.ts';
import { findRoute, json, send } from '../support/accounts.ts';

const buyer: KeyRecord = {
  keyId: 'acf_0000000000000000000000',
  accountId: '01900000-0000-7000-8000-000000000000',
  ownerId: 'alice',
  role: 'buyer',
  ancestors: [],
  maxPriceMicros: null,
  services: null,
  expiresAtMs: null,
  secretDigest: '',
  previousSecretDigest: null,
  previousExpiresAtMs: 0,
  bearers: null,
  rateLimit: 60,
  status: 'active',
  accountStatus: 'active',
  suspensionReason: null,
  buyer: null,
  lastRefill: 0,
  emptyUntilMs: 0,
};

it("GET /balance/me shows the live wallet of the key's own account, in USD", async () => {
  const wallets = { [buyer.accountId]: { balanceMicros: 12_345_678, heldMicros: 2_000, budget: null } };
  const routes = balanceRoutes({
    read: async ({ accountId }) => wallets[accountId] ?? { balanceMicros: 0, heldMicros: 0, budget: null },
    operator: new Operator({}, null),
  });
  const response = await send(routes, 'GET /balance/me', { by: buyer });
  expect([response.status, json(response)]).toEqual([
    200,
    { account_id: buyer.accountId, owner_id: 'alice', balance: 12.345678, held: 0.002, currency: 'USD' },
  ]);
  expect(findRoute(routes, 'GET /balance/me').access).toEqual(['buyer']);
});

it.each([
  [Date.UTC(2026, 10, 24), '2026-11-24T00:00:00.000Z'],
  [null, null],
])(
  'GET /balance/me says whose budget is used up, and that the budget starts again at %s',
  async (resetsAtMs, resets_at) => {
    const read = async () => ({ balanceMicros: 0, heldMicros: 0, budget: { keyId: buyer.keyId, resetsAtMs } });
    const routes = balanceRoutes({ read, operator: new Operator({}, null) });
    const shown = json(await send(routes, 'GET /balance/me', { by: buyer }));
    expect(shown).toMatchObject({ limit_key: buyer.keyId, resets_at });
  },
);

it('GET /balance/me answers unavailable, instead of a wrong balance, if the wallet cannot be read', async () => {
  const read = () => Promise.reject(new ApiError('unavailable'));
  const routes = balanceRoutes({ read, operator: new Operator({}, null) });
  await expect(send(routes, 'GET /balance/me', { by: buyer })).rejects.toMatchObject({ code: 'unavailable' });
});

it('GET /balance/me says where to add money, if the operator has configured such a page', async () => {
  const id = `account_id=${buyer.accountId}`;
  for (const [url, told] of [
    ['https://pay.example.com/top-up', `https://pay.example.com/top-up?${id}`],
    ['https://pay.example.com/top-up?from=tollgate', `https://pay.example.com/top-up?from=tollgate&${id}`],
    ['https://pay.example.com/?a=b#/top-up', `https://pay.example.com/?a=b&${id}#/top-up`],
  ] as const) {
    const read = async () => ({ balanceMicros: 0, heldMicros: 0, budget: null });
    const routes = balanceRoutes({ read, operator: new Operator({}, url) });
    expect(json(await send(routes, 'GET /balance/me', { by: buyer }))).toMatchObject({ top_up: told });
  }
});
