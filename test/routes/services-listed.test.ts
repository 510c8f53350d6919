import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { uuidv7 } from '../../src/platform/ids.ts';
import { bodyOf } from '../support/listings.ts';
import { admin, BODY, buyer, catalog, create, post, provider, refused, request, useServices } from './use-services.ts';

useServices();

describe('POST /services', () => {
  it('creates an active listing for the account of the key, and this gateway finds the listing at once', async () => {
    const response = await post({ ...BODY, name: '  Weather ', free_calls: 100, timeout_seconds: 5 });
    const body = bodyOf(response);
    expect(response.status).toBe(201);
    expect(response.headers?.Location).toBe(`/api/v1/services/${body.id}`);
    expect(body).toEqual({
      id: expect.any(String),
      name: 'Weather',
      description: 'Forecasts',
      price: 0.002,
      price_label: '$0.002 per call',
      free_calls: 100,
      free_calls_label: '100 free calls',
      category: 'data',
      quality: 50,
      rated: false,
      proxy_path: `/api/v1/proxy/${body.id}/`,
      status: 'active',
      protocol: 'http',
      timeout_seconds: 5,
      only_operations: false,
      operations: [],
      provider: { since: expect.stringMatching(/^\d{4}-.*Z$/), services: 1 },
      provider_id: provider.accountId,
      endpoint: 'http://service.example/api',
      upstream_headers: [],
      upstream_query: [],
      blocked_buyers: [],
      signed: false,
      price_notice_seconds: 0,
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
      updated_at: expect.stringMatching(/^\d{4}-.*Z$/),
    });
    expect(catalog.get(body.id)).toMatchObject({ priceMicros: 2_000, freeCalls: 100, timeoutSeconds: 5 });
  });

  it('defaults to a timeout of 60 seconds and no free calls', async () => {
    expect(catalog.get(await create())).toMatchObject({ timeoutSeconds: 60, freeCalls: 0 });
  });

  it('stores every legal price exactly', async () => {
    const prices = fc.integer({ min: 0, max: 10_000_000_000 });
    const check = async (micros: number) => {
      const body = bodyOf(await post({ ...BODY, price: micros / 1_000_000 }));
      expect(body.price).toBe(micros / 1_000_000);
      expect(catalog.get(body.id)?.priceMicros).toBe(micros);
    };
    await fc.assert(fc.asyncProperty(prices, check), { numRuns: 20, examples: [[0], [1], [10_000_000_000]] });
  });

  it('accepts a free service with free calls, which have no effect while the service is free', async () => {
    const body = bodyOf(await post({ ...BODY, price: 0, free_calls: 3 }));
    expect(body).toMatchObject({ price: 0, price_label: 'Free', free_calls: 3 });
  });

  it('is for providers and admins only', async () => {
    expect((await refused('POST /services', { body: BODY })).code).toBe('unauthorized');
    expect((await refused('POST /services', { body: BODY, by: buyer })).code).toBe('forbidden');
    expect((await post(BODY, admin)).status).toBe(201);
  });

  it.each<[string, object]>([
    ['name', { name: '' }],
    ['name', { name: '   ' }],
    ['name', { name: 'x'.repeat(101) }],
    ['name', { name: 'a\u0000b' }],
    ['name', { name: 7 }],
    ['description', { description: 'x'.repeat(2_001) }],
    ['description', { description: 'a\u0000b' }],
    ['endpoint', { endpoint: '' }],
    ['endpoint', { endpoint: 'ftp://service.example' }],
    ['endpoint', { endpoint: 'http://user:pw@service.example' }],
    ['endpoint', { endpoint: 'http://service.example/?q=1' }],
    ['endpoint', { endpoint: 'http://service.example/#f' }],
    ['endpoint', { endpoint: `http://service.example/${'x'.repeat(2_048)}` }],
    ['price', { price: -0.01 }],
    ['price', { price: 0.0000001 }],
    ['price', { price: 1.2345678 }],
    ['price', { price: 10_000.01 }],
    ['price', { price: '0.002' }],
    ['price', { price: null }],
    ['free_calls', { free_calls: 0 }],
    ['free_calls', { free_calls: 1.5 }],
    ['free_calls', { free_calls: 1_000_000_001 }],
    ['category', { category: 'Data Sets' }],
    ['category', { category: '-data' }],
    ['category', { category: 'x'.repeat(51) }],
    ['timeout_seconds', { timeout_seconds: 0 }],
    ['timeout_seconds', { timeout_seconds: 301 }],
    ['status', { status: 'removed' }],
    ['provider_id', { provider_id: uuidv7() }],
  ])('refuses an invalid %s, and the refusal names it: %j', async (field, fields) => {
    const error = await refused('POST /services', { by: provider, body: { ...BODY, ...fields } });
    expect(error.code).toBe('invalid_request');
    expect(error.message).toMatch(new RegExp(`^${field}: `));
  });

  it.each([
    'http://127.0.0.1/',
    'http://127.1/',
    'http://2130706433/',
    'http://0x7f000001/',
    'http://0x7f.0.0.1/',
    'http://0177.0.0.1/',
    'http://017700000001/',
    'http://\uff11\uff12\uff17.0.0.1/',
    'http://127\u30020\u30020\u30021/',
    'http://127.0.0.1./',
    'http://0/',
    'http://10.1.2.4:8080/x',
    'http://169.254.169.254/latest/meta-data',
    'http://2852039166/',
    'http://100.100.100.200/',
    'http://224.0.0.1/',
    'http://255.255.255.255/',
    'http://[::]/',
    'http://[::1]/',
    'http://[::ffff:127.0.0.1]/',
    'http://[::ffff:7f00:1]/',
    'http://[0:0:0:0:0:ffff:0a01:0204]/',
    'http://[64:ff9b::7f00:1]/',
    'http://[64:ff9b::169.254.169.254]/',
    'http://[2002:7f00:1::]/',
    'http://[fe80::1]/',
    'http://[fd00:ec2::254]/',
    'http://[ff02::1]/',
    'http://localhost/',
    'http://LOCALHOST./',
    'http://a.localhost:8080/',
  ])('refuses an endpoint that is not a public internet address: %s', async (endpoint) => {
    const error = await refused('POST /services', { by: provider, body: { ...BODY, endpoint } });
    expect([error.code, error.message]).toEqual(['invalid_request', expect.stringMatching(/^endpoint: .*public/)]);
    const id = await create();
    const change = await refused(`PATCH /services/${id}`, { by: provider, body: { endpoint } });
    expect(change.code).toBe('invalid_request');
  });

  it.each([
    'http://10.1.2.3:8080/',
    'http://0xa010203/',
    'http://8.8.8.8/',
    'https://[2606:4700::1111]/',
    'http://not-localhost/',
  ])('accepts an endpoint that is public, or that the operator allows: %s', async (endpoint) => {
    expect((await post({ ...BODY, endpoint })).status).toBe(201);
  });

  it.each(Object.keys(BODY))('requires %s', async (field) => {
    const { [field]: _, ...rest } = BODY as Record<string, unknown>;
    const error = await refused('POST /services', { by: provider, body: rest });
    expect(error.message).toMatch(new RegExp(`^${field}: `));
  });

  it('counts an emoji as one character, and stores every text unchanged', async () => {
    const texts = { name: '😀'.repeat(100), description: `${'字'.repeat(1_998)}\n😀` };
    const { body: whole } = await request(`GET /services/${await create(texts)}`);
    expect(whole).toMatchObject(texts);
  });
});
