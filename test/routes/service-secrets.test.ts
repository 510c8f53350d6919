import { describe, expect, it } from 'vitest';
import { OperationsReader } from '../../src/catalog/operations/operations-reader.ts';
import { selectListing, updateListing } from '../../src/catalog/sql.ts';
import { newKeyId, newSecret } from '../../src/keys/credentials.ts';
import { uuidv7 } from '../../src/platform/ids.ts';
import { servicesRoutes } from '../../src/routes/services.ts';
import { Sealer } from '../../src/secrets/sealer.ts';
import { ServiceSecrets } from '../../src/secrets/service-secrets.ts';
import { AddressPolicy } from '../../src/upstream/index.ts';
import { ask, bodyOf, NO_NOTICE, NO_WATCH, refusalOf } from '../support/listings.ts';
import { writingAfter } from '../support/writing-after.ts';
import {
  addresses,
  admin,
  BODY,
  catalog,
  create,
  post,
  provider,
  refused,
  request,
  secrets,
  sql,
  stranger,
  useServices,
} from './use-services.ts';

useServices();

const HTTPS = 'https://service.example/api';
const listed = (fields: object) => ({ ...BODY, endpoint: HTTPS, ...fields });
const messageOf = async (fields: object): Promise<string> => {
  const { code, message } = await refusalOf(post(listed(fields)));
  expect(code).toBe('invalid_request');
  return message;
};

describe('upstream_headers', () => {
  it.each([
    'Host',
    'Content-Length',
    'transfer_encoding',
    'Connection',
    'Keep-Alive',
    'TE',
    'Trailer',
    'Upgrade',
    'HTTP2-Settings',
    'Expect',
    'Via',
    'Proxy-Authorization',
    'proxy_connection',
    'X-ACF-Buyer',
    'x_acf_usage_id',
    'Signature',
    'Signature-Input',
  ])('cannot set %s, which the gateway writes itself', async (name) => {
    expect(await messageOf({ upstream_headers: { [name]: 'x' } })).toBe(
      `upstream_headers: ${name} cannot be set: the gateway writes it itself.`,
    );
  });

  it.each(['', 'a b', 'a:', 'a\r\nb', 'é', ':path', 'x'.repeat(65)])('cannot have the name %j', async (name) => {
    const message = await messageOf({ upstream_headers: { [name]: 'value' } });
    expect(message).toBe('upstream_headers: each name must be that of an HTTP header, of at most 64 characters.');
  });

  it.each(['', ' ', ' a', 'a ', 'a\nb', 'a\r\nX: y', 'a\tb', 'é', 'a\u0000', '\u{1f600}'])(
    'cannot have the value %j, and a refusal does not repeat values',
    async (value) => {
      const message = await messageOf({ upstream_headers: { 'X-Key': `${value}` } });
      expect(message).toMatch(/^upstream_headers\.X-Key: must /);
      expect(await messageOf({ upstream_headers: { 'X-Key': `hunter2${value}\n` } })).not.toContain('hunter2');
    },
  );

  it('is bounded in number and size', async () => {
    const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`x-${i}`, 'v']));
    expect(await messageOf({ upstream_headers: many(11) })).toContain('must NOT have more than 10 properties');
    expect(await messageOf({ upstream_headers: { 'x-a': 'v'.repeat(4_097) } })).toContain('4096');
    const two = { 'x-a': 'v'.repeat(4_096), 'x-b': 'v'.repeat(4_090) };
    expect((await post(listed({ upstream_headers: two }))).status).toBe(201);
    expect(await messageOf({ upstream_headers: { ...two, 'x-c': 'v' } })).toContain('at most 8192 characters');
    expect((await post(listed({ upstream_headers: many(10) }))).status).toBe(201);
  });

  it('accepts any other name, each once, but no API key of Tollgate as a value', async () => {
    const names = { Authorization: 'Bearer a b', 'X-Forwarded-Proto': 'https', Cookie: 'a=b; c' };
    const made = bodyOf(await post(listed({ upstream_headers: JSON.parse('{"__proto__":"x","A_b":"y"}') })));
    expect(made.upstream_headers).toEqual(['__proto__', 'a_b']);
    const others = bodyOf(await post(listed({ upstream_headers: names })));
    expect(others.upstream_headers).toEqual(['authorization', 'x-forwarded-proto', 'cookie']);
    expect(await messageOf({ upstream_headers: { 'X-Key': 'a', x_key: 'b' } })).toContain('is given twice');
    const ours = `Bearer ${newKeyId()}:${newSecret()}`;
    expect(await messageOf({ upstream_headers: { 'X-Key': ours } })).toContain(
      'must not contain an API key of Tollgate',
    );
  });

  it.each([
    ['http://service.example', false],
    ['http://93.184.216.34', false],
    ['http://10.1.2.3:8080', true],
    ['https://93.184.216.34', true],
  ])('may go to %s: %s', async (endpoint, may) => {
    const made = post(listed({ endpoint, upstream_headers: { 'x-key': 'a' } }));
    if (may) expect((await made).status).toBe(201);
    else expect((await refusalOf(made)).message).toMatch(/^upstream_headers: needs an https endpoint/);
  });

  it('is checked against the endpoint that the same change sets, or else against the endpoint that the listing has', async () => {
    const id = await create();
    const by = provider;
    const upstream_headers = { 'x-key': 'a' };
    expect((await refused(`PATCH /services/${id}`, { by, body: { upstream_headers } })).code).toBe('invalid_request');
    const both = await request(`PATCH /services/${id}`, { by, body: { upstream_headers, endpoint: HTTPS } });
    expect(bodyOf(both).upstream_headers).toEqual(['x-key']);
    for (const [endpoint, forgets] of [
      ['HTTPS://Service.Example:443/v2', false],
      ['https://service.example:8443', true],
    ] as const) {
      const moved = bodyOf(await request(`PATCH /services/${id}`, { by, body: { endpoint } }));
      expect([moved.upstream_headers.length, moved.forgotten_upstream_headers]).toEqual(
        forgets ? [0, ['x-key']] : [1, undefined],
      );
    }
    expect((await selectListing(sql, id))?.upstreamHeaders).toBeNull();
  });
});

describe('upstream_query', () => {
  it.each(['', 'a b', 'a=b', 'a&b', 'é', 'x'.repeat(65)])('cannot have the name %j', async (name) => {
    const message = await messageOf({ upstream_query: { [name]: 'value' } });
    expect(message).toMatch(/^upstream_query: each name must have 1 to 64 characters/);
  });

  it('accepts each name once, however a server normalises it, and no value that could not be a key', async () => {
    const made = bodyOf(await post(listed({ upstream_query: { 'api.Key': 'a b/c?', key2: 'x' } })));
    expect(made.upstream_query).toEqual(['api.Key', 'key2']);
    expect(await messageOf({ upstream_query: { api_key: 'a', 'API.KEY[]': 'b' } })).toContain('is given twice');
    expect(await messageOf({ upstream_query: { key: 'hunter2\n' } })).toMatch(
      /^upstream_query\.key: must (?!.*hunter2)/,
    );
    expect(await messageOf({ upstream_query: { key: 'v'.repeat(513) } })).toContain('512');
    const ours = `${newKeyId()}:${newSecret()}`;
    expect(await messageOf({ upstream_query: { key: ours } })).toContain('must not contain an API key of Tollgate');
    const plain = { endpoint: 'http://service.example', upstream_query: { key: 'a' } };
    expect(await messageOf(plain)).toMatch(/^upstream_query: needs an https endpoint/);
  });
});

describe('who may change secrets', () => {
  it('only the provider and admins', async () => {
    const { id, signing_secret } = bodyOf(await post(listed({ signed: true })));
    for (const body of [{ upstream_headers: { a: 'b' } }, { signed: false }]) {
      expect((await refused(`PATCH /services/${id}`, { by: stranger, body })).code).toBe('forbidden');
    }
    const renew = `POST /services/${id}/signing-secret`;
    expect((await refused(renew, { by: stranger })).code).toBe('forbidden');
    expect((await refused(`POST /services/${uuidv7()}/signing-secret`, { by: provider })).code).toBe(
      'service_not_found',
    );
    for (const by of [provider, admin]) {
      const { headers, body } = await request(renew, { by });
      expect(headers?.['Cache-Control']).toBe('no-store');
      expect(bodyOf({ status: 200, body }).signing_secret).not.toBe(signing_secret);
    }
    await request(`DELETE /services/${id}`, { by: provider });
    expect((await refused(renew, { by: provider })).code).toBe('service_not_found');
    expect(await selectListing(sql, id)).toMatchObject({ signingKeys: null, upstreamHeaders: null });
  });
});

describe('a gateway without SECRETS_KEY', () => {
  const without = new ServiceSecrets(new Sealer([]));
  const routes = () =>
    servicesRoutes({
      catalog,
      sql,
      operations: new OperationsReader(sql),
      maxListings: 20,
      addresses,
      secrets: without,
      notice: NO_NOTICE,
      watch: NO_WATCH,
    });

  it('refuses what needs that key, and says who can help', async () => {
    for (const [field, value] of [
      ['upstream_headers', { a: 'b' }],
      ['signed', true],
    ] as const) {
      const body = listed({ [field]: value });
      const { code, message } = await refusalOf(ask(routes(), 'POST /services', { by: provider, body }));
      expect([code, message]).toEqual([
        'invalid_request',
        `${field}: this gateway keeps no secrets: its operator has not set SECRETS_KEY.`,
      ]);
    }
    const none = listed({ upstream_headers: {}, signed: false, forward_headers: ['cookie'] });
    expect((await ask(routes(), 'POST /services', { by: provider, body: none })).status).toBe(201);
    const { id } = bodyOf(await post(listed({ signed: true })));
    const renew = ask(routes(), `POST /services/${id}/signing-secret`, { by: provider });
    expect((await refusalOf(renew)).code).toBe('unavailable');
  });
});

describe('simultaneous changes of a listing', () => {
  it('are all kept: a change that depends on the listing is made on its state at that moment', async () => {
    const { id } = bodyOf(await post(listed({ signed: true, upstream_headers: { 'x-key': 'a' } })));
    const by = provider;
    const changes = [
      request(`PATCH /services/${id}`, { by, body: { endpoint: 'https://elsewhere.example' } }),
      request(`PATCH /services/${id}`, { by, body: { name: 'Renamed' } }),
      request(`POST /services/${id}/signing-secret`, { by }),
    ];
    expect((await Promise.all(changes)).map(({ status }) => status)).toEqual([200, 200, 200]);
    const after = await selectListing(sql, id);
    expect(after).toMatchObject({ name: 'Renamed', endpoint: 'https://elsewhere.example', upstreamHeaders: null });
    expect(secrets.open(after as NonNullable<typeof after>).signingKeys).toHaveLength(2);
  });

  it('are refused with 409 if they go on without end', async () => {
    const { id } = bodyOf(await post(listed({ signed: true })));
    // Another change of the listing comes between each reading and writing.
    const restless = new ServiceSecrets(new Sealer([Buffer.alloc(32, 'test key')]));
    const make = restless.newSigningKey.bind(restless);
    let others: Promise<unknown> = Promise.resolve();
    restless.newSigningKey = (...args) => {
      others = updateListing(sql, id, { name: 'again' }, 'any');
      return make(...args);
    };
    const routes = servicesRoutes({
      catalog,
      sql: writingAfter(sql, () => others),
      operations: new OperationsReader(sql),
      maxListings: 20,
      addresses: new AddressPolicy([]),
      secrets: restless,
      notice: NO_NOTICE,
      watch: NO_WATCH,
    });
    const answer = ask(routes, `POST /services/${id}/signing-secret`, { by: provider });
    expect((await refusalOf(answer)).code).toBe('conflict');
  });
});
