import { afterAll, beforeAll, expect, it } from 'vitest';
import { until } from '../support/wait.ts';
import { authorization, type Key, Marketplace, startService, type TestService } from './marketplace.ts';

const PRICE = 0.001;
const CALLS = 40;

let market: Marketplace;
let service: TestService;
beforeAll(async () => {
  market = await Marketplace.start();
  service = await startService((_, response) => void response.end('done'));
});
afterAll(async () => {
  await market.stop();
  await service.close();
});

async function accountOf(key: Key): Promise<string> {
  const [row] = await market.stores.sql<{ id: string }[]>`
    SELECT account_id AS id FROM api_keys WHERE key_id = ${key.key_id}`;
  return row?.id as string;
}

async function callTimes(path: string, key: Key, times: number): Promise<Response[]> {
  const responses: Response[] = [];
  for (let i = 0; i < times; i++) {
    const response = await fetch(`${market.baseUrl}${path}`, { headers: { authorization: authorization(key) } });
    await response.arrayBuffer();
    responses.push(response);
  }
  return responses;
}

it('a buyer with a wallet of 1.5 gets 503 until that wallet is deleted, while eight other buyers are served', async () => {
  const path = await market.service({ endpoint: service.url, price: PRICE });
  const buyers = await Promise.all(Array.from({ length: 9 }, () => market.buyer(1)));
  const [victim, ...others] = buyers as [Key, ...Key[]];
  expect((await callTimes(path, victim, 1)).map(({ status }) => status)).toEqual([200]);
  await market.settled();
  await until(async () => (await market.records(victim)).length === 1);
  const { redis, keys } = market.stores;
  const accountId = await accountOf(victim);
  const wallet = keys.wallet(keys.shardOf(accountId), accountId);
  await redis.command('hset', [wallet, 'balance', '1']);
  await redis.command('hincrbyfloat', [wallet, 'balance', '0.5']);

  // An operator still sees the account, as the books have it.
  const seen = await market.json(`/api/v1/admin/accounts/${accountId}`, { key: market.admin });
  expect(seen).toMatchObject({ account_id: accountId, is_live: false, held: null, balance: 1 - PRICE });
  for (const q of [accountId, victim.key_id, accountId.slice(-12).toUpperCase()]) {
    const { accounts } = await market.json<{ accounts: object[] }>(`/api/v1/admin/accounts?q=${q}`, {
      key: market.admin,
    });
    expect(accounts).toMatchObject([{ account_id: accountId }]);
  }

  const limit = 60;
  await market.json(`/api/v1/keys/${victim.key_id}`, {
    key: market.admin,
    method: 'PATCH',
    body: { rate_limit: limit },
  });

  const startedAt = performance.now();
  // All at once, so that their calls share batches with those of the damaged wallet.
  const [refused, ...served] = await Promise.all([
    Promise.all(Array.from({ length: 4 }, () => callTimes(path, victim, limit / 2))),
    ...others.map((key) => callTimes(path, key, CALLS)),
  ]);
  expect(served.flat().map(({ status }) => status)).toEqual(Array(8 * CALLS).fill(200));
  const elapsedSeconds = (performance.now() - startedAt) / 1_000;
  const statuses = (refused as Response[][]).flat().map(({ status }) => status);
  const refusals = statuses.filter((status) => status === 503).length;
  expect(statuses.filter((status) => status !== 503 && status !== 429)).toEqual([]);
  expect(refusals).toBeGreaterThanOrEqual(limit - 1);
  expect(refusals).toBeLessThanOrEqual(limit + Math.ceil((elapsedSeconds * limit) / 60));
  const one = (refused as Response[][]).flat().find(({ status }) => status === 503) as Response;
  expect(one.headers.get('retry-after')).toBe('60');
  expect(one.headers.get('x-ratelimit-limit')).toBe(String(limit));

  const lines = market.log.lines.filter((line) => line.includes(accountId) && line.includes('damaged'));
  expect(lines).toHaveLength(1);
  expect(await market.metric('tollgate_damaged_data_total')).toBe(refusals);
  const page = await fetch(`${market.baseUrl}/api/v1/balance/me`, {
    headers: { authorization: authorization(victim) },
  });
  expect([503, 429]).toContain(page.status);

  await redis.command('del', [wallet]);
  await redis.command('hdel', [keys.key(keys.shardOf(accountId), victim.key_id), 'tokens', 'ts']);
  expect((await callTimes(path, victim, 1)).map(({ status }) => status)).toEqual([200]);
  await market.settled();
  expect(await market.balance(victim)).toMatchObject({ balance: 1 - 2 * PRICE, held: 0 });
  for (const key of others) expect(await market.balance(key)).toMatchObject({ balance: 1 - CALLS * PRICE, held: 0 });
});
