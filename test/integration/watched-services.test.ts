import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { UpstreamClient } from '../../src/upstream/index.ts';
import { HealthJob } from '../../src/watch/health-job.ts';
import { Uptimes } from '../../src/watch/uptimes.ts';
import { until } from '../support/wait.ts';
import { type Key, Marketplace, startService, type TestService } from './marketplace.ts';

const INTERVAL_MS = 300;

let market: Marketplace;
let service: TestService;
/** Requests that the service got, as `METHOD path`. */
const asked: string[] = [];
const headers: NodeJS.Dict<string | string[]>[] = [];
const hanging: ServerResponse[] = [];

beforeAll(async () => {
  market = await Marketplace.start({}, { asksNewEndpoints: true, health: { intervalMs: INTERVAL_MS, lookMs: 50 } });
  service = await startService((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    headers.push(request.headers);
    if (request.url?.startsWith('/hang')) {
      hanging.push(response);
      return;
    }
    if (request.url?.endsWith('/moved')) response.setHeader('Location', '/followed');
    response.statusCode = request.url?.endsWith('/moved') ? 302 : request.url?.endsWith('/bad') ? 500 : 200;
    response.end('x'.repeat(100_000));
  });
});
afterAll(async () => {
  await market.stop();
  await service.close();
});

type Shown = {
  id: string;
  reachable?: boolean;
  checked_at?: string;
  health_path?: string;
  docs_url?: string;
  uptime?: { last_24_hours: number; last_30_days: number };
  health?: { url: string; up?: boolean; status?: number; reason?: string; asked_at?: string };
};

const BODY = { name: 'Watched', description: '', category: 'test', price: 0 };
const list = (body: object, key: Key = market.provider): Promise<Shown> =>
  market.json('/api/v1/services', { key, method: 'POST', body: { ...BODY, ...body } });
const patch = (id: string, body: object): Promise<Shown> =>
  market.json(`/api/v1/services/${id}`, { key: market.provider, method: 'PATCH', body });
const shown = (id: string, key?: Key): Promise<Shown> => market.json(`/api/v1/services/${id}`, { key });
const found = (id: string): Promise<Shown> =>
  until(async () => {
    const listing = await shown(id, market.provider);
    return listing.checked_at === undefined ? null : listing;
  });

describe('a new endpoint', () => {
  it('is probed once, after the answer, and only its provider is told whether it gave an HTTP answer', async () => {
    const { id, ...first } = await list({ endpoint: `${service.url}/new/bad` });
    expect(first).not.toHaveProperty('reachable');
    const { reachable, checked_at } = await found(id);
    expect([reachable, Math.abs(Date.parse(checked_at as string) - Date.now()) < 10_000]).toEqual([true, true]);
    expect(asked.filter((line) => line.includes('/new/'))).toEqual(['HEAD /new/bad']);
    for (const key of [undefined, await market.anotherProvider()]) {
      expect(await shown(id, key)).not.toHaveProperty('reachable');
      expect(await shown(id, key)).not.toHaveProperty('checked_at');
    }
    const mine = await market.json<{ services: Shown[] }>('/api/v1/services?mine=true', { key: market.provider });
    expect(mine.services.find((it) => it.id === id)).toMatchObject({ reachable: true });
  });

  it('that gives no answer is still listed; only a change of the endpoint makes the gateway probe again', async () => {
    const away = await startService(() => {});
    await away.close();
    const { id } = await list({ endpoint: away.url });
    const reachable_reason = 'Nothing accepts connections at the address.';
    expect(await found(id)).toMatchObject({ reachable: false, reachable_reason, status: 'active' });
    const before = asked.length;
    await patch(id, { name: 'Other' });
    expect(await shown(id, market.provider)).toMatchObject({ reachable: false });
    const changed = await patch(id, { endpoint: `${service.url}/again` });
    expect(changed).not.toHaveProperty('reachable');
    const again = await found(id);
    expect([again.reachable, 'reachable_reason' in again]).toEqual([true, false]);
    expect(asked.slice(before).filter((line) => line.includes('/again'))).toEqual(['HEAD /again']);
  });

  it('is probed one at a time per account, so that nobody makes the gateway scan; other accounts do not wait', async () => {
    const scanner = await market.anotherProvider();
    const ids = await Promise.all(
      [1, 2, 3].map(async (n) => (await list({ endpoint: `${service.url}/hang/${n}` }, scanner)).id),
    );
    await until(() => hanging.length === 1);
    // An account that comes later is served.
    expect(await found((await list({ endpoint: `${service.url}/later` })).id)).toMatchObject({ reachable: true });
    expect(hanging).toHaveLength(1);
    for (let n = 1; n <= 3; n++) {
      await until(() => hanging.length === n);
      hanging.at(-1)?.end();
    }
    for (const id of ids) {
      await until(async () => (await shown(id, scanner)).reachable === true);
    }
  });
});

describe('a health path', () => {
  it('is probed by one process per interval, never outside the endpoint, and shows the share of good answers to all', async () => {
    const [good, moved, bad] = await Promise.all(
      ['good', 'moved', 'bad'].map((name) => list({ endpoint: `${service.url}/h/${name}`, health_path: `/${name}` })),
    );
    const { sql } = market.stores;
    const client = new UpstreamClient({
      maxConnectionsPerOrigin: 1,
      maxWaitingPerOrigin: 1,
      maxWaitMs: 1000,
      connectTimeoutMs: 1000,
      keepAliveMs: 1000,
      maxHeadBytes: 65_536,
      allowCidrs: ['127.0.0.0/8'],
    });
    // A second process that does the same.
    const other = new HealthJob({ client, sql, log: market.log, intervalMs: INTERVAL_MS, lookMs: 50 });
    const from = Date.now();
    other.start();
    await until(() => asked.filter((line) => line === 'GET /h/good/good').length >= 4);
    await other.stop(1000);
    await client.close();
    // Within the time that has passed, the two together asked no more often than one does, after the gateway that asks at once.
    const most = (Date.now() - from) / INTERVAL_MS + 3;
    expect(asked.filter((line) => line === 'GET /h/good/good').length).toBeLessThanOrEqual(most);
    expect(asked).not.toContain('GET /followed');

    let found: ReadonlyMap<string, object> = new Map();
    const take = async (all: typeof found) => {
      found = all;
    };
    const uptimes = new Uptimes({ sql, log: market.log, readMs: 50, take });
    uptimes.start();
    const wait = (id: string | undefined) => until(() => found.get(id as string));
    expect(await Promise.all([good, moved, bad].map((listing) => wait(listing?.id)))).toEqual([
      { last_24_hours: 100, last_30_days: 100 },
      { last_24_hours: 100, last_30_days: 100 },
      { last_24_hours: 0, last_30_days: 0 },
    ]);
    uptimes.stop();
    // A gateway reads them twice a minute. A new one has them at once.
    const gateway = await market.anotherGateway();
    const at = async (path: string) => (await (await fetch(`${gateway.baseUrl}/api/v1/${path}`)).json()) as Shown;
    expect(await until(async () => (await at(`discover/${good?.id}`)).uptime)).toMatchObject({ last_30_days: 100 });
    expect((await at(`services/${bad?.id}`)).uptime).toMatchObject({ last_30_days: 0 });
    for (const field of ['health_path', 'health']) expect(await at(`services/${bad?.id}`)).not.toHaveProperty(field);
    const { services } = (await at('discover')) as unknown as { services: Shown[] };
    expect(services.find(({ id }) => id === bad?.id)?.uptime).toEqual({ last_24_hours: 0, last_30_days: 0 });
    await gateway.stop();

    const ask = headers[asked.indexOf('GET /h/good/good')];
    expect(ask).not.toHaveProperty('authorization');
    await Promise.all([good, moved, bad].map((listing) => patch(listing?.id as string, { health_path: null })));
    await new Promise((resolve) => setTimeout(resolve, 100));
    const stopped = asked.length;
    await new Promise((resolve) => setTimeout(resolve, 2 * INTERVAL_MS));
    expect(asked.length).toBe(stopped);
  });

  it('is probed at once when it is set, even for a draft, and its provider sees the URL, the status and the reason', async () => {
    const draft = await list({ endpoint: `${service.url}/draft/`, health_path: '/bad', status: 'paused' });
    expect(draft.health).toEqual({ url: `${service.url}/draft/bad` });
    const told = (id: string): Promise<Shown['health']> =>
      until(async () => {
        const { health } = await shown(id, market.provider);
        return health?.up === undefined ? null : health;
      });
    expect(await told(draft.id)).toMatchObject({
      up: false,
      status: 500,
      reason: expect.stringMatching(/^It answered 500/),
      asked_at: expect.any(String),
    });
    // In no uptime: a provider may have mistyped it.
    const counted = await market.stores.sql`SELECT FROM service_health_hours WHERE service_id = ${draft.id}`;
    expect(counted).toHaveLength(0);
    // What was found by another path says nothing.
    const changed = await patch(draft.id, { health_path: '/good' });
    expect(changed.health).toEqual({ url: `${service.url}/draft/good` });
    const good = await told(draft.id);
    expect(good).toEqual({ url: `${service.url}/draft/good`, up: true, status: 200, asked_at: good?.asked_at });
    expect(asked.filter((line) => line.includes('/draft'))).toEqual([
      'HEAD /draft',
      'GET /draft/bad',
      'GET /draft/good',
    ]);
    const away = await startService(() => {});
    await away.close();
    await patch(draft.id, { endpoint: away.url });
    expect(await told(draft.id)).toMatchObject({ up: false, reason: 'Nothing accepts connections at the address.' });
    expect((await told(draft.id))?.status).toBeUndefined();
  });

  it.each([
    ['health', 'begin with a slash'],
    ['/..', 'dot segments'],
    ['/a/./b', 'dot segments'],
    ['/a/../../b', 'dot segments'],
    ['/a/%2e%2e/b', 'unencoded'],
    ['/a/..;/b', 'unencoded'],
    ['/a\\..\\b', 'unencoded'],
    ['/a?b=1', 'query'],
  ])('%s is refused', async (health_path, message) => {
    const body = { ...BODY, endpoint: service.url, health_path };
    const response = await market.request('/api/v1/services', { key: market.provider, method: 'POST', body });
    expect([response.status, await response.json()]).toMatchObject([
      400,
      { message: expect.stringContaining(message) },
    ]);
  });
});

describe('a page about a service', () => {
  it('is shown to everyone, and must be an http or https URL', async () => {
    const { id } = await list({ endpoint: service.url, docs_url: 'https://docs.example/translate?lang=en#start' });
    expect(await shown(id)).toMatchObject({ docs_url: 'https://docs.example/translate?lang=en#start' });
    expect(await market.json(`/api/v1/discover/${id}`)).toHaveProperty('docs_url');
    expect(await patch(id, { docs_url: null })).not.toHaveProperty('docs_url');
    for (const docs_url of [
      'javascript:alert(1)',
      'https://user:secret@docs.example',
      'docs.example',
      'https:///x y',
    ]) {
      const response = await market.request(`/api/v1/services/${id}`, {
        key: market.provider,
        method: 'PATCH',
        body: { docs_url },
      });
      expect([response.status, await response.json()]).toMatchObject([
        400,
        { message: expect.stringMatching(/^docs_url: /) },
      ]);
    }
  });
});
