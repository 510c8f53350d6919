import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { oneRedis } from '../support/redis-kind.ts';
import { until } from '../support/wait.ts';
import type { Peer } from '../upstream/helpers.ts';
import { Marketplace } from './marketplace.ts';
import { PRICE, Scene } from './scene.ts';

type Page = {
  readonly checked_at: string | null;
  readonly books_sum: number;
  readonly totals: Record<string, number>;
  readonly shards: readonly { shard: number; compared: boolean; drifts: readonly Record<string, unknown>[] }[];
  readonly repairs: readonly Record<string, unknown>[];
};

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const PATH = '/api/v1/admin/reconciliation';

/** How long a repair may take on a busy machine; on an idle one it takes less than a second. */
const REPAIR_MS = 20_000;
/** Limit of one test, which waits for several repairs and restarts, each up to its own bound. */
const TEST_MS = 180_000;

let market: Marketplace;
beforeAll(async () => {
  // Redis serves nobody while SAVE writes to disk. On a busy disk that takes longer than the default timeout of 500 ms.
  market = await Marketplace.start({ REDIS_COMMAND_TIMEOUT_MS: '20000' });
});
afterAll(() => market.stop());

const answerAll = async (peer: Peer): Promise<void> => {
  for (;;) {
    await peer.takeRequest();
    peer.send(OK);
  }
};
const page = (method = 'GET'): Promise<Page> => market.served(PATH, { key: market.admin, method });
const noDrift = { drift: 0, drifting_accounts: 0, shards_not_compared: 0 };

describe.skipIf(oneRedis('kills it and brings back its snapshot'))(
  'a Redis that comes back with an older state than Postgres',
  { timeout: TEST_MS },
  () => {
    it('is repaired automatically: nobody is charged twice or refunded for a stored call, and new calls cost the price', async () => {
      const scene = await Scene.open(market, answerAll, { free_calls: 2 });
      const [slow, failing] = [await Scene.open(market), await Scene.open(market)];
      expect((await (await scene.call()).response()).get('x-acf-free-tier')).toBe('true');
      const callers = [await slow.call(), await failing.call()];
      const peers = [await slow.service.peer(0), await failing.service.peer(0)];
      for (const peer of peers) await peer.takeRequest();
      await market.settled(scene.buyer.account_id);
      // The state with which Redis will come back. This Redis saves nothing to disk by itself.
      await market.stores.redis.command('save', []);

      peers[0]?.send(OK);
      peers[1]?.socket.resetAndDestroy();
      expect((await callers[0]?.response())?.status).toBe(200);
      expect((await callers[1]?.response())?.status).toBe(502);
      expect((await (await scene.call()).response()).get('x-acf-free-tier')).toBe('true');
      for (let i = 0; i < 3; i++)
        expect((await (await scene.call()).response()).get('x-acf-amount')).toBe(String(PRICE));
      const before = await market.records(scene.buyer);
      await market.settled();
      await market.redis.kill();
      await market.redis.restart();

      await until(async () => (await market.request('/readyz')).status === 200, REPAIR_MS);

      await until(async () => (await page()).repairs.length === 2, REPAIR_MS);
      const found = await page('POST');
      expect(found.totals).toMatchObject(noDrift);
      expect(found.books_sum).toBe(0);
      // The third account had nothing under way: its wallet was dropped, and is loaded as Postgres has it.
      expect(found.repairs).toHaveLength(2);
      for (const repair of found.repairs) {
        expect(repair).toMatchObject({
          made_by: 'writer',
          state: 'done',
          reason: expect.stringContaining('came back with other data'),
        });
      }
      const change = (of: Scene): unknown =>
        found.repairs.find((repair) => repair.account_id === of.buyer.account_id)?.change;
      expect([change(scene), change(slow), change(failing)]).toEqual([undefined, 0, PRICE]);
      expect(await market.books()).toMatchObject({ drifting: [], total: '0', negative: 0 });

      expect(await market.records(scene.buyer)).toEqual(before);
      expect(await market.balance(scene.buyer)).toMatchObject({ balance: 0.7, held: 0 });
      await slow.expectEnd({ outcome: 'completed', status: 200, amount: PRICE });
      await failing.expectEnd({ outcome: 'refunded:upstream_error', status: 502 });
      const next = await (await scene.call()).response();
      expect([next.status, next.get('x-acf-amount'), next.get('x-acf-balance')]).toEqual([200, '0.1', '0.6']);
      for (const each of [scene, slow, failing]) await each.close();
    });
  },
);

describe.skipIf(oneRedis('kills it and brings back its snapshot'))(
  'a Redis that comes back with data from before a change of a key',
  { timeout: TEST_MS },
  () => {
    const change = (path: string, body: object) => market.json(path, { key: market.admin, method: 'PATCH', body });

    it('has the change after the first request: nobody has to resume the account or raise the limit again', async () => {
      const scene = await Scene.open(market, answerAll);
      const { buyer } = scene;
      const account = `/api/v1/admin/accounts/${buyer.account_id}`;
      const ask = async () => {
        const response = await (await scene.call()).response();
        return [response.status, response.get('x-ratelimit-limit')];
      };
      const another = await market.anotherKey(buyer);
      expect((await market.request(scene.path, { key: another })).status).toBe(200);
      await change(`/api/v1/keys/${buyer.key_id}`, { rate_limit: 7 });
      await change(account, { status: 'suspended' });
      expect(await ask()).toEqual([403, '7']);
      await market.stores.redis.command('save', []);
      await change(`/api/v1/keys/${buyer.key_id}`, { rate_limit: 300 });
      await change(account, { status: 'active' });
      expect(await ask()).toEqual([200, '300']);
      await market.request(`/api/v1/keys/${another.key_id}`, { key: buyer, method: 'DELETE' });
      await market.redis.kill();
      await market.redis.restart();
      await until(async () => (await market.request('/readyz')).status === 200, REPAIR_MS);

      // A revoked key stays refused, because its record in Postgres is read first.
      expect((await market.request(scene.path, { key: another })).status).toBe(401);
      expect(await ask()).toEqual([403, '7']);
      await until(async () => (await ask())[0] === 200, REPAIR_MS);
      expect(await ask()).toEqual([200, '300']);
      await scene.close();
    });
  },
);

describe('the page of the reconciliation', () => {
  it('shows a drift that Redis cannot have caused, leaves the wallet alone, and lets an operator end the drift', async () => {
    await page('POST');
    const buyer = await market.buyer(2);
    const { redis, keys } = market.stores;
    const wallet = keys.wallet(keys.shardOf(buyer.account_id), buyer.account_id);
    await market.balance(buyer);
    await redis.command('hincrby', [wallet, 'balance', '-250000']);
    const { totals, shards } = await page('POST');
    expect(totals).toMatchObject({ drift: -0.25, drifting_accounts: 1 });
    expect(totals.wallet).toBeCloseTo((totals.settled ?? 0) - (totals.streamed ?? 0) - (totals.held ?? 0) - 0.25, 6);
    expect(shards.map(({ shard, compared }) => [shard, compared])).toEqual(keys.open.map((_, shard) => [shard, true]));
    expect(shards.flatMap(({ drifts }) => drifts)).toMatchObject([
      { account_id: buyer.account_id, wallet: 1.75, expected: 2, drift: -0.25, not_repaired: expect.any(String) },
    ]);
    expect(await market.balance(buyer)).toMatchObject({ balance: 1.75 });
    const body = { believe: 'postgres', reason: 'somebody wrote to Redis', reference: 'incident 7' };
    const end = (by = market.admin) => market.request(`${PATH}/${buyer.account_id}`, { key: by, method: 'POST', body });
    expect((await end(buyer)).status).toBe(403);
    const first = await end();
    expect(first.status).toBe(201);
    const made = await first.json();
    expect(made).toMatchObject({ account_id: buyer.account_id, drift: -0.25, ...body });
    const again = await end();
    expect([again.status, await again.json()]).toEqual([200, made]);
    expect(await market.balance(buyer)).toMatchObject({ balance: 2 });
    expect(await page('POST')).toMatchObject({
      totals: noDrift,
      corrections: [{ ...body, owner_id: expect.any(String) }],
    });
    const { acts } = await market.json<{ acts: object[] }>(`/api/v1/admin/audit?subject=${buyer.account_id}`, {
      key: market.admin,
    });
    expect(acts[0]).toMatchObject({
      action: 'account.correct',
      before: { drift: -0.25 },
      after: { drift: 0, ...body },
    });
  });

  it('is for admins only', async () => {
    for (const key of [market.provider, await market.buyer(0)]) {
      for (const method of ['GET', 'POST']) expect((await market.request(PATH, { key, method })).status).toBe(403);
    }
    expect((await market.request(PATH)).status).toBe(401);
  });
});
