import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../support/wait.ts';
import { type Key, Marketplace } from './marketplace.ts';
import { PRICE, Scene } from './scene.ts';

const BOUND = 1_000;

let market: Marketplace;
let scene: Scene;

beforeAll(async () => {
  market = await Marketplace.start({ MAX_BACKLOG_EVENTS: String(BOUND) }, { writer: false });
  scene = await Scene.open(market, async (peer) => {
    for (;;) {
      await peer.takeRequest();
      peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    }
  });
});
afterAll(async () => {
  await scene.close();
  await market.stop();
});

describe('while there is no writer', () => {
  const keys: Key[] = [];
  const waiting = (): Promise<number> => market.metric('tollgate_usage_backlog_events');

  it('calls are served until the stream reaches its bound; then they get 503, and nothing is charged', async () => {
    // Real events, so that the writer has to store all of them in the end. One key may make 300 calls a minute.
    for (let i = 0; i < 4; i++) keys.push(await market.anotherKey(scene.buyer));
    const free = await market.service({ endpoint: scene.service.url });
    let made = 0;
    const callAll = async (key: Key): Promise<void> => {
      for (let i = 0; i < BOUND / 4; i++) {
        const { status } = await market.request(free, { key });
        if (status === 200) made++;
      }
    };
    await Promise.all(keys.map(callAll));
    expect(made).toBe(BOUND);
    await until(async () => (await waiting()) === BOUND);
    const refused = await (await scene.call()).response();
    expect(refused.status).toBe(503);
    expect(refused.json()).toMatchObject({ error: 'unavailable', status: 503 });
    expect(refused.get('retry-after')).toMatch(/^[1-9]\d*$/);
    expect(Number(refused.get('x-ratelimit-remaining'))).toBeGreaterThan(0);
    expect(await market.balance(scene.buyer)).toMatchObject({ balance: 1, held: 0 });
    expect(await waiting()).toBe(BOUND);
    // Requests that make no events are still served.
    expect((await market.request('/api/v1/discover')).status).toBe(200);
    expect((await market.request('/readyz')).status).toBe(200);
  });

  it('once a writer is back, everything is stored and calls are served again', async () => {
    await market.startWriter();
    await market.settled();
    await until(async () => (await waiting()) === 0);
    const counts = await Promise.all(keys.map(async (key) => (await market.records(key)).length));
    expect(counts).toEqual([250, 250, 250, 250]);
    expect((await (await scene.call()).response()).get('x-acf-amount')).toBe(String(PRICE));
    await scene.expectEnd({ outcome: 'completed', status: 200, amount: PRICE });
    expect(await market.books()).toMatchObject({ drifting: [], total: '0', negative: 0 });
  });
});
