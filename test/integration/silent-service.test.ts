import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../support/wait.ts';
import { type Key, Marketplace, startService, type TestService } from './marketplace.ts';
import { RawCaller, requestText } from './raw-caller.ts';

const PRICE = 0.1;
/** Number of failed calls that opens a breaker. */
const ENOUGH = 10;
/** Maximum number of connections from the gateway to one service. */
const CONNECTIONS = 4;

let market: Marketplace;
let healthy: TestService;

beforeAll(async () => {
  market = await Marketplace.start({ UPSTREAM_MAX_CONNECTIONS: String(CONNECTIONS) });
  healthy = await startService((_request, response) => response.end('ok'));
});
afterAll(async () => {
  await market.stop();
  await healthy.close();
});

type Behaviour = 'answers' | 'resets' | 'fails' | 'hangs';
type MoodyService = TestService & { behaviour: Behaviour; requests: number };

/** A service that treats each request as `behaviour` says at that moment. */
async function moodyService(behaviour: Behaviour): Promise<MoodyService> {
  const mood = { behaviour, requests: 0 };
  const server = await startService((request, response) => {
    mood.requests++;
    if (mood.behaviour === 'resets') request.socket.destroy();
    else if (mood.behaviour === 'answers') response.end('ok');
    else if (mood.behaviour === 'fails') response.writeHead(500).end('broken');
  });
  return Object.assign(mood, server);
}

async function call(path: string, key: Key): Promise<Response> {
  const response = await market.request(path, { key });
  await response.arrayBuffer();
  return response;
}

async function statuses(path: string, key: Key, times: number): Promise<number[]> {
  const all: number[] = [];
  for (let i = 0; i < times; i++) all.push((await call(path, key)).status);
  return all;
}

describe('a service that does not answer', () => {
  it('is no longer called after ten failures: callers get 503 at once and are not charged', async () => {
    const service = await moodyService('resets');
    const path = await market.service({ endpoint: service.url, price: PRICE });
    const buyer = await market.buyer(10);
    expect(await statuses(path, buyer, ENOUGH)).toEqual(Array(ENOUGH).fill(502));
    const [requests, admitted] = [service.requests, await market.metric('tollgate_calls_admitted_total')];

    const refused = await market.request(path, { key: buyer });
    expect(refused.status).toBe(503);
    expect(await refused.json()).toMatchObject({ error: 'upstream_busy', status: 503 });
    expect(refused.headers.get('x-acf-amount')).toBe('0');
    expect(refused.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
    expect([service.requests, await market.metric('tollgate_calls_admitted_total')]).toEqual([requests, admitted]);
    expect(await market.metric('tollgate_breakers_open')).toBe(1);
    const opened = market.log.lines.filter((line) => line.includes('service does not answer'));
    expect(opened).toHaveLength(1);

    const records = await market.records(buyer);
    expect(records.map(({ outcome }) => outcome)).toEqual(Array(ENOUGH).fill('refunded:upstream_error'));
    expect(await market.balance(buyer)).toMatchObject({ balance: 10, held: 0 });
    await service.close();
  });

  it('gets one call after a pause, and all calls again once it has answered that call', async () => {
    const service = await moodyService('resets');
    const path = await market.service({ endpoint: service.url, price: PRICE });
    const buyer = await market.buyer(10);
    await statuses(path, buyer, ENOUGH);
    const before = service.requests;
    service.behaviour = 'answers';
    await until(async () => (await call(path, buyer)).status === 200);
    expect(service.requests).toBe(before + 1);
    expect(await statuses(path, buyer, ENOUGH)).toEqual(Array(ENOUGH).fill(200));
    await service.close();
  });

  it('is probed although callers who cannot pay come first: their calls do not use up the probe', async () => {
    const service = await moodyService('resets');
    const path = await market.service({ endpoint: service.url, price: PRICE });
    const [poor, rich] = [await market.buyer(0), await market.buyer(10)];
    await statuses(path, rich, ENOUGH);
    service.behaviour = 'answers';
    await until(async () => (await call(path, poor)).status === 402);
    expect((await call(path, rich)).status).toBe(200);
    await service.close();
  });

  it('does not delay other services, even if all its connections are in use and its queue is full', async () => {
    const service = await moodyService('hangs');
    const hanging = await market.service({ endpoint: service.url, price: PRICE, timeout_seconds: 300 });
    const path = await market.service({ endpoint: healthy.url, price: PRICE });
    const buyer = await market.buyer(10);
    const callers = await Promise.all(Array.from({ length: 3 * CONNECTIONS }, () => RawCaller.connect(market.baseUrl)));
    for (const caller of callers) caller.send(requestText(`GET ${hanging}`, { key: buyer }));
    await until(() => service.requests === CONNECTIONS);
    const startedAt = performance.now();
    expect(await statuses(path, buyer, 20)).toEqual(Array(20).fill(200));
    // One after the other, about 5 ms each: none of them waited for the queue, which keeps calls for a second.
    expect(performance.now() - startedAt).toBeLessThan(1_000);
    // Queued calls get their refusal within about a second, and are refunded.
    const inLine = callers.filter(({ socket }) => socket.bytesRead === 0);
    await until(() => inLine.filter(({ received }) => received.length > 0).length === 2 * CONNECTIONS);
    const answers = await Promise.all(
      callers.filter(({ received }) => received.length > 0).map((caller) => caller.response()),
    );
    expect(new Set(answers.map((answer) => answer.json<{ error: string }>().error))).toEqual(
      new Set(['upstream_busy']),
    );
    for (const caller of callers) caller.destroy();
    await market.settled();
    // Waiting in the queue says nothing about the service.
    service.behaviour = 'answers';
    expect((await call(hanging, buyer)).status).toBe(200);
    await service.close();
  });
});

describe('a service that answers', () => {
  it('keeps being called, whatever it answers: a caller who can make it fail cannot open the breaker for others', async () => {
    const service = await moodyService('fails');
    const path = await market.service({ endpoint: service.url, price: PRICE });
    const buyer = await market.buyer(10);
    expect(await statuses(path, buyer, 3 * ENOUGH)).toEqual(Array(3 * ENOUGH).fill(500));
    expect(service.requests).toBe(3 * ENOUGH);
    await service.close();
  });

  it('keeps being called while another listing of its host uses all its connections and has a full queue', async () => {
    const service = await moodyService('hangs');
    const [good, bad] = [
      await market.service({ endpoint: service.url, price: PRICE }),
      await market.service({ endpoint: `${service.url}/slow`, price: 0, timeout_seconds: 300 }),
    ];
    const buyer = await market.buyer(10);
    const callers = await Promise.all(Array.from({ length: 3 * CONNECTIONS }, () => RawCaller.connect(market.baseUrl)));
    for (const caller of callers) caller.send(requestText(`GET ${bad}`, { key: buyer }));
    await until(() => service.requests === CONNECTIONS);
    service.behaviour = 'answers';
    expect(await statuses(good, buyer, 20)).toEqual(Array(20).fill(200));
    for (const caller of callers) caller.destroy();
    await service.close();
  });

  it('keeps being called when another listing points to its host and fails there', async () => {
    const service = await moodyService('answers');
    const [good, bad] = [
      await market.service({ endpoint: service.url, price: PRICE }),
      await market.service({ endpoint: `${service.url}/elsewhere`, price: PRICE }),
    ];
    const buyer = await market.buyer(10);
    service.behaviour = 'resets';
    await statuses(bad, buyer, ENOUGH);
    expect((await call(bad, buyer)).status).toBe(503);
    service.behaviour = 'answers';
    expect((await call(good, buyer)).status).toBe(200);
    await service.close();
  });
});
