import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { oneRedis } from '../support/redis-kind.ts';
import { until } from '../support/wait.ts';
import type { Peer } from '../upstream/helpers.ts';
import { Marketplace } from './marketplace.ts';
import { PRICE, Scene } from './scene.ts';

let market: Marketplace;
beforeAll(async () => {
  market = await Marketplace.start();
});
afterAll(() => market.stop());

const setMaxMemory = (bytes: number): Promise<unknown> =>
  market.stores.redis.command('config', ['set', 'maxmemory', String(bytes)]);

describe.skipIf(oneRedis('fills its memory'))('a Redis at its maxmemory', () => {
  it('lets open calls be settled and charged, refuses new calls, and serves again when it has room', async () => {
    let answer = (): void => {};
    let isAnswered = false;
    let usageId: string | null = null;
    const scene = await Scene.open(market, async (peer: Peer, index: number) => {
      for (;;) {
        await peer.takeRequest();
        const send = (): void => peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
        if (index > 0 || isAnswered) {
          send();
          continue;
        }
        answer = () => {
          isAnswered = true;
          send();
        };
      }
    });
    // Enough memory for the calls of the second in which the gateway has not noticed the limit yet.
    await market.credit(scene.buyer, 100, 'enough');
    const caller = await scene.call();
    await until(async () => (await market.metric('tollgate_calls_open')) === 1);
    await until(() => scene.service.peers.length === 1);
    await setMaxMemory(1);
    try {
      // Redis refuses writes that need memory, except those of settlements.
      await expect(market.stores.redis.command('set', ['probe', 'x'])).rejects.toThrow('OOM');
      await until(async () => (await market.request(scene.path, { key: scene.buyer })).status === 503);
      answer();
      const response = await caller.response();
      expect(response.status).toBe(200);
      usageId = response.get('x-acf-usage-id');
      await until(async () => (await market.metric('tollgate_settlements_unconfirmed')) === 0);
    } finally {
      await setMaxMemory(0);
    }
    const records = await market.records(scene.buyer);
    expect(records.find((record) => record.usage_id === usageId)).toMatchObject({
      outcome: 'completed',
      amount: PRICE,
    });
    await until(async () => (await market.request(scene.path, { key: scene.buyer })).status === 200);
    expect(await market.books()).toMatchObject({ drifting: [], total: '0', negative: 0 });
    expect(await market.metric('tollgate_settlements_without_hold_total')).toBe(0);
    await scene.close();
  });
});
