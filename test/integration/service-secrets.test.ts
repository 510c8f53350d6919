import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CHANNEL } from '../../src/catalog/sql.ts';
import { type Listening, startListening } from '../support/listening.ts';
import { until } from '../support/wait.ts';
import { echo, type Key, Marketplace, startService, type TestService } from './marketplace.ts';

const PROVIDERS_KEY = 'Bearer sk-providers-own-key';
const COVERED = '("@method" "@authority" "@path" "@query" "x-acf-usage-id" "x-acf-buyer")';

let market: Marketplace;
let service: TestService;
let elsewhere: TestService;
let buyer: Key;
/** A signed listing whose service is `service`. */
let signed: { id: string; signing_secret: string };
/** The verifying examples, with the secret of `signed`. */
let examples: (Listening & { name: string })[];

type Shown = {
  readonly id: string;
  readonly upstream_headers?: string[];
  readonly upstream_query?: string[];
  readonly signed?: boolean;
  readonly signing_keyid?: string;
  readonly signing_secret?: string;
  readonly forward_headers?: string[];
  readonly forgotten_upstream_headers?: string[];
  readonly forgotten_upstream_query?: string[];
};
type Received = { method: string; url: string; headers: string[]; body: string };

beforeAll(async () => {
  market = await Marketplace.start({ SECRETS_KEY: Buffer.alloc(32, 'a key').toString('base64') });
  [service, elsewhere] = await Promise.all([startService(echo), startService(echo)]);
  buyer = await market.buyer(1);
  signed = (await list({ signed: true })) as typeof signed;
  const env = { SIGNING_SECRET: signed.signing_secret };
  examples = await Promise.all(
    ['server.mjs', 'server.py'].map(async (name) => ({
      name,
      ...(await startListening(`examples/verify-signature/${name}`, env)),
    })),
  );
});
afterAll(async () => {
  for (const { child } of examples) child.kill();
  await market.stop();
  await Promise.all([service.close(), elsewhere.close()]);
});

function list(fields: object): Promise<Shown> {
  const body = { name: 'n', description: '', category: 'test', price: 0.01, endpoint: service.url, ...fields };
  return market.json('/api/v1/services', { key: market.provider, method: 'POST', body });
}
const change = (id: string, body: object): Promise<Shown> =>
  market.json(`/api/v1/services/${id}`, { key: market.provider, method: 'PATCH', body });
const look = (id: string, key?: Key): Promise<Shown> => market.json(`/api/v1/services/${id}`, { key });

/** Makes a call. @returns what the service received; of a header that came twice, both values */
async function call(id: string, path = '/', headers: Record<string, string> = {}, key: Key | null = buyer) {
  const options = key === null ? { headers } : { key, headers };
  const received = await market.json<Received>(`/api/v1/proxy/${id}${path}`, options);
  const values: Record<string, string> = {};
  for (let i = 0; i < received.headers.length; i += 2) {
    const name = received.headers[i] as string;
    const value = received.headers[i + 1] as string;
    values[name] = name in values ? `${values[name]}, ${value}` : value;
  }
  return { ...received, values };
}

describe('headers that a listing adds', () => {
  it("reach the service instead of the caller's headers, and nobody sees more than their names", async () => {
    const upstream_headers = { Authorization: PROVIDERS_KEY, 'X-Tenant': 'acme' };
    const made = await list({ upstream_headers });
    const { values } = await call(made.id, '/', { 'X-Tenant': 'mine', x_tenant: 'mine' });
    expect(values).toMatchObject({ authorization: PROVIDERS_KEY, 'x-tenant': 'acme' });
    expect(values).not.toHaveProperty('x_tenant');
    const seen = [made, await look(made.id, market.provider), await look(made.id, market.admin)];
    for (const shown of seen) expect(shown.upstream_headers).toEqual(['authorization', 'x-tenant']);
    expect(await look(made.id)).not.toHaveProperty('upstream_headers');
    const rows = await market.stores.sql`SELECT row_to_json(s)::text AS row FROM services s`;
    for (const text of [JSON.stringify(seen), JSON.stringify(rows), market.log.lines.join()]) {
      expect(text).not.toContain('providers-own');
    }
  });

  it('are replaced as a whole, kept when other fields change, and cleared by {}', async () => {
    const { id } = await list({ upstream_headers: { 'X-A': '1', 'X-B': '2' } });
    expect((await change(id, { price: 0 })).upstream_headers).toEqual(['x-a', 'x-b']);
    expect((await change(id, { upstream_headers: { 'x-b': '3' } })).upstream_headers).toEqual(['x-b']);
    expect((await call(id, '/', { 'x-a': 'mine' })).values).toMatchObject({ 'x-a': 'mine', 'x-b': '3' });
    expect((await change(id, { upstream_headers: {} })).upstream_headers).toEqual([]);
    expect((await call(id)).values).not.toHaveProperty('x-b');
  });

  it('are deleted when the endpoint moves to another origin, and not when its path changes', async () => {
    const { id } = await list({ upstream_headers: { 'x-key': 'secret' } });
    expect(await change(id, { endpoint: `${service.url}/v2` })).toMatchObject({ upstream_headers: ['x-key'] });
    const moved = await change(id, { endpoint: elsewhere.url });
    expect(moved).toMatchObject({ upstream_headers: [], forgotten_upstream_headers: ['x-key'] });
    expect((await call(id)).values).not.toHaveProperty('x-key');
    const again = await change(id, { endpoint: service.url, upstream_headers: { 'x-key': 'other' } });
    expect(again).not.toHaveProperty('forgotten_upstream_headers');
    expect((await call(id)).values['x-key']).toBe('other');
  });

  it('make the call fail with a free 503 if they cannot be decrypted: no call is sent without them', async () => {
    const [mine, theirs] = [await list({ upstream_headers: { 'x-key': 'mine' } }), await list({})];
    const { sql } = market.stores;
    const logged = market.log.lines.length;
    // Somebody who can write to the database moves the secret to a listing of their own.
    await sql`
      WITH moved AS (
        UPDATE services SET updated_at = now() + interval '1 second', upstream_headers =
          (SELECT upstream_headers FROM services WHERE id = ${mine.id})
        WHERE id = ${theirs.id} RETURNING id)
      SELECT pg_notify(${CHANNEL}, id::text) FROM moved`;
    const before = await market.balance(buyer);
    const refused = await until(async () => {
      const response = await market.request(`/api/v1/proxy/${theirs.id}/`, { key: buyer });
      if (response.status === 503) return response;
      before.balance = (await market.balance(buyer)).balance;
      return null;
    });
    expect(refused.headers.get('retry-after')).toBe('60');
    expect(await refused.json()).toMatchObject({ error: 'unavailable', message: expect.stringContaining('operator') });
    expect((await market.balance(buyer)).balance).toBe(before.balance);
    const lines = market.log.lines.slice(logged).filter((line) => line.includes('cannot be decrypted'));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(`"service_id":"${theirs.id}","unreadable":["x-key"]`);
  });
});

it('a listing whose endpoint is moved in the database sends its headers nowhere: calls get 503 until it is moved back', async () => {
  const { id } = await list({ upstream_headers: { 'x-key': 'mine' }, price: 0 });
  const moveTo = async (endpoint: string): Promise<void> => {
    await market.stores.sql`
      WITH moved AS (
        UPDATE services SET endpoint = ${endpoint}, updated_at = greatest(now(), updated_at) + interval '1 second'
        WHERE id = ${id} RETURNING id)
      SELECT pg_notify(${CHANNEL}, id::text) FROM moved`;
    await until(async () => {
      const shown = await market.json<{ endpoint: string }>(`/api/v1/services/${id}`, { key: market.provider });
      return shown.endpoint === endpoint;
    });
  };
  await moveTo(elsewhere.url);
  const refused = await market.request(`/api/v1/proxy/${id}/`, { key: buyer });
  expect([refused.status, (await refused.text()).includes('mine')]).toEqual([503, false]);
  await moveTo(`${service.url}/v2`);
  expect((await call(id)).values['x-key']).toBe('mine');
});

describe('parameters that a listing adds to the query', () => {
  const SECRET = 'sk-providers-own/key+1';

  it("reach the service instead of the caller's parameters, and nobody sees more than their names", async () => {
    const made = await list({ upstream_query: { api_key: SECRET } });
    const { url } = await call(made.id, '/a?b=%20c&API%5Fkey=mine&d');
    expect(url).toBe('/a?b=%20c&d&api_key=sk-providers-own%2Fkey%2B1');
    expect(new URL(url, service.url).searchParams.getAll('api_key')).toEqual([SECRET]);
    expect((await call(made.id, '/a')).url).toBe('/a?api_key=sk-providers-own%2Fkey%2B1');
    const seen = [made, await look(made.id, market.provider), await look(made.id, market.admin)];
    for (const shown of seen) expect(shown.upstream_query).toEqual(['api_key']);
    expect(await look(made.id)).not.toHaveProperty('upstream_query');
    const rows = await market.stores.sql`SELECT row_to_json(s)::text AS row FROM services s`;
    for (const text of [JSON.stringify(seen), JSON.stringify(rows), market.log.lines.join()]) {
      expect(text).not.toContain('providers-own');
    }
  });

  it('are covered by the signature, as they are sent', async () => {
    const made = (await list({ upstream_query: { api_key: SECRET }, signed: true })) as typeof signed;
    const { values, url, method } = await call(made.id, '/a?b');
    const params = values['signature-input']?.replace('sig1=', '');
    const base = [
      ['@method', method],
      ['@authority', new URL(service.url).host],
      ['@path', '/a'],
      ['@query', url.slice(2)],
      ['x-acf-usage-id', values['x-acf-usage-id']],
      ['x-acf-buyer', values['x-acf-buyer']],
      ['@signature-params', params],
    ].map(([name, value]) => `"${name}": ${value}`);
    const expected = createHmac('sha256', made.signing_secret).update(base.join('\n')).digest('base64');
    expect(values.signature).toBe(`sig1=:${expected}:`);
  });

  it('do not appear in response headers, in errors or in the log', async () => {
    const talkative = await startService((request, response) => {
      const here = `http://${request.headers.host}`;
      if (request.url?.startsWith('/cut')) return void response.socket?.destroy();
      const next = encodeURIComponent(`${here}${request.url}`);
      const location = request.url?.startsWith('/login')
        ? `https://login.example/?next=${next}`
        : `${request.url}&page=2`;
      const headers = { location, link: `<${here}${request.url}>; rel="next"`, 'x-request-line': `GET ${request.url}` };
      response.writeHead(201, { ...headers, 'x-other': 'stays' }).end();
    });
    const { id } = await list({ endpoint: talkative.url, upstream_query: { api_key: SECRET } });
    const ask = (path: string) => market.request(`/api/v1/proxy/${id}${path}`, { key: buyer });
    const led = await ask('/a?b=1');
    expect(led.headers.get('location')).toBe(`/api/v1/proxy/${id}/a?b=1&page=2`);
    expect(led.headers.get('x-other')).toBe('stays');
    expect((await ask('/login')).headers.get('location')).toBeNull();
    const failed = await ask('/cut');
    expect(failed.status).toBe(502);
    for (const text of [JSON.stringify([...led.headers]), await failed.text(), market.log.lines.join()]) {
      expect(text).not.toContain('providers-own');
    }
    await talkative.close();
  });

  it('are deleted when the endpoint moves to another origin, and cleared by {}', async () => {
    const { id } = await list({ upstream_query: { key: SECRET } });
    expect(await change(id, { endpoint: `${service.url}/v2` })).toMatchObject({ upstream_query: ['key'] });
    const moved = await change(id, { endpoint: elsewhere.url });
    expect(moved).toMatchObject({ upstream_query: [], forgotten_upstream_query: ['key'] });
    expect((await call(id)).url).toBe('/');
    await change(id, { upstream_query: { key: 'other' } });
    expect((await call(id)).url).toBe('/?key=other');
    expect((await change(id, { upstream_query: {} })).upstream_query).toEqual([]);
    expect((await call(id, '/?key=mine')).url).toBe('/?key=mine');
  });
});

describe('credentials of the caller', () => {
  it('reach a service that asks for them if the call agrees, but never together with a key of the gateway', async () => {
    const { id } = await list({ forward_headers: ['x-api-key', 'authorization'], upstream_headers: { 'x-a': '1' } });
    const discovered = await market.json<Shown>(`/api/v1/discover/${id}`);
    for (const shown of [await look(id), discovered]) {
      expect(shown.forward_headers).toEqual(['x-api-key', 'authorization']);
    }
    const agreed = { 'X-ACF-Forward': 'X-Api-Key, Authorization' };
    const ours = `${buyer.key_id}:${buyer.secret}`;
    // The key pays in Authorization, and the service's own credentials travel in X-Api-Key; then the other way around.
    const one = await call(id, '/', { ...agreed, 'X-Api-Key': 'sk-callers' });
    expect(one.values['x-api-key']).toBe('sk-callers');
    const other = await call(id, '/', { ...agreed, 'X-Api-Key': ours, Authorization: 'Bearer sk-callers' }, null);
    expect(other.values.authorization).toBe('Bearer sk-callers');
    const both = await call(id, '/', { ...agreed, 'X-Api-Key': ours, 'X-Other': `a ${ours}` });
    for (const { headers } of [one, other, both]) {
      expect(headers.join()).not.toContain(buyer.secret);
      expect(headers.map((name) => name.toLowerCase())).not.toContain('x-acf-forward');
    }
    expect(Object.keys(both.values)).not.toContain('x-api-key');
    expect((await call(id, '/', { 'X-Api-Key': 'sk-callers' })).values).not.toHaveProperty('x-api-key');
    expect(await change(id, { forward_headers: [] })).not.toHaveProperty('forward_headers');
    expect((await call(id, '/', { ...agreed, 'X-Api-Key': 'sk-callers' })).values).not.toHaveProperty('x-api-key');
  });
});

/** Sends a request to an example server, as anybody could who knows where the service is. */
async function ask(port: number, line: string, headers: Record<string, string>, body = ''): Promise<number> {
  const [method, path] = line.split(' ') as [string, string];
  const length = { 'content-length': String(Buffer.byteLength(body)) };
  const sent = httpRequest({ host: '127.0.0.1', port, method, path, headers: { ...headers, ...length } });
  const answered = once(sent, 'response');
  sent.end(body);
  const [response] = await answered;
  response.resume();
  return response.statusCode;
}

/** Status by example, in their order. */
const askBoth = (line: string, headers: Record<string, string>, body?: string): Promise<number[]> =>
  Promise.all(examples.map(({ port }) => ask(port, line, headers, body)));

describe('a signed call', () => {
  const OK = [200, 200];
  const REFUSED = [401, 401];

  it('is accepted by the examples, and nothing that its signature covers can be changed', async () => {
    const { method, url, values } = await call(signed.id, '/v1/a%2Fb?x=1&y=%20', { Signature: 'sig1=:AAAA:' });
    const { host, 'x-acf-usage-id': usageId, 'x-acf-buyer': buyerName, ...rest } = values as Record<string, string>;
    const captured = {
      host,
      'x-acf-usage-id': usageId,
      'x-acf-buyer': buyerName,
      signature: rest.signature,
      'signature-input': rest['signature-input'],
    } as Record<string, string>;
    expect(captured.signature).toMatch(/^sig1=:[A-Za-z0-9+/]{43}=:$/);
    const line = `${method} ${url}`;
    expect(await askBoth(line, captured)).toEqual(OK);
    for (const path of ['//a', '/?', '/a?', '/a?b?%3F', '/%C3%A9;x=1//b']) {
      const { values: its, ...there } = await call(signed.id, path);
      expect([path, await askBoth(`${there.method} ${there.url}`, its)]).toEqual([path, OK]);
    }
    // The body is not covered.
    expect(await askBoth(line, captured, 'another body')).toEqual(OK);
    for (const wrong of ['GET /v1/a/b?x=1&y=%20', 'GET /v1/a%2Fb?x=1', 'GET /v1/a%2Fb', 'POST /v1/a%2Fb?x=1&y=%20']) {
      expect([wrong, await askBoth(wrong, captured)]).toEqual([wrong, REFUSED]);
    }
    const input = captured['signature-input'] as string;
    for (const changed of [
      { host: 'other.example' },
      { 'x-acf-buyer': 'somebody' },
      { 'x-acf-usage-id': 'another' },
      { signature: '' },
      { signature: 'sig1=:AAAA:' },
      { 'signature-input': '' },
      { 'signature-input': input.replace(' "x-acf-buyer"', '') },
      { 'signature-input': input.replace(/created=\d/, 'created=2') },
      { 'signature-input': `sig1=();created=1, ${input.replace('sig1', 'sig2')}` },
    ]) {
      expect([changed, await askBoth(line, { ...captured, ...changed })]).toEqual([changed, REFUSED]);
    }
  });

  it('to an MCP server is signed, has the headers of its listing, and forwards what the caller agreed to forward', async () => {
    const added = { upstream_headers: { 'x-key': 'providers' }, forward_headers: ['x-auth-token'] };
    const { id } = await list({ ...added, protocol: 'mcp', signed: true });
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo', arguments: {} } };
    const accept = 'application/json, text/event-stream';
    const headers = { accept, 'X-ACF-Forward': 'x-auth-token', 'X-Auth-Token': 'callers', x_key: 'mine' };
    const received = await market.json<Received>(`/api/v1/proxy/${id}/mcp`, {
      key: buyer,
      method: 'POST',
      headers,
      body,
    });
    const names = received.headers.filter((_, i) => i % 2 === 0);
    const sent = (name: string): string | undefined => received.headers[2 * names.indexOf(name) + 1];
    expect([sent('x-key'), sent('x-auth-token')]).toEqual(['providers', 'callers']);
    expect(sent('signature-input')).toMatch(/^sig1=/);
    expect(names).not.toContain('x_key');
    expect(names).not.toContain('x-acf-forward');
  });

  it('ends where its body ends, whatever the framing: a body is never taken for the next request', async () => {
    const inner = 'GET /inner HTTP/1.1\r\nHost: h\r\n\r\n';
    const chunks = `4\r\nabcd\r\n${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`;
    const first = `POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`;
    for (const { name, port } of examples) {
      const socket = connect(port, '127.0.0.1');
      socket.end(`${first}GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`);
      const answers = await text(socket);
      expect([name, answers.match(/HTTP\/1\.1 \d+/g)]).toEqual([name, ['HTTP/1.1 401', 'HTTP/1.1 401']]);
    }
  });

  it('is accepted for five minutes only, so that a captured call cannot be repeated for ever', async () => {
    const at = (seconds: number): Record<string, string> => {
      const params = `${COVERED};created=${Math.floor(Date.now() / 1000) + seconds};keyid="k";alg="hmac-sha256"`;
      const base = `"@method": GET\n"@authority": h\n"@path": /\n"@query": ?\n"x-acf-usage-id": u\n"x-acf-buyer": b\n"@signature-params": ${params}`;
      const signature = createHmac('sha256', signed.signing_secret).update(base).digest('base64');
      const own = { host: 'h', 'x-acf-usage-id': 'u', 'x-acf-buyer': 'b' };
      return { ...own, 'signature-input': `sig1=${params}`, signature: `sig1=:${signature}:` };
    };
    for (const seconds of [0, -290, 290]) expect(await askBoth('GET /', at(seconds))).toEqual(OK);
    for (const seconds of [-310, 310]) expect(await askBoth('GET /', at(seconds))).toEqual(REFUSED);
  });

  it('is accepted by the examples through the gateway, before and after the secret was replaced', async () => {
    const through = async (): Promise<number[]> => {
      const statuses: number[] = [];
      for (const { port } of examples) {
        await change(signed.id, { endpoint: `http://127.0.0.1:${port}/base` });
        const options = { key: buyer, method: 'POST', body: { a: 1 } };
        statuses.push((await market.request(`/api/v1/proxy/${signed.id}/a?b`, options)).status);
      }
      return statuses;
    };
    expect(await through()).toEqual(OK);
    const path = `/api/v1/services/${signed.id}/signing-secret`;
    const before = await look(signed.id, market.provider);
    const answer = await market.request(path, { key: market.provider, method: 'POST' });
    expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'no-store']);
    const renewed = (await answer.json()) as Shown;
    expect(renewed.signing_secret).toMatch(/^sgs_[\w-]{43}$/);
    expect(renewed.signing_secret).not.toBe(signed.signing_secret);
    // The examples still know the old secret only.
    expect(await through()).toEqual(OK);
    await change(signed.id, { endpoint: service.url });
    const { values } = await call(signed.id);
    const keyids = [...(values['signature-input'] ?? '').matchAll(/keyid="([^"]*)"/g)].map(([, keyid]) => keyid);
    expect(keyids).toEqual([renewed.signing_keyid, before.signing_keyid]);
    // Another new one ends the oldest at once.
    await market.json(path, { key: market.provider, method: 'POST' });
    expect(await through()).toEqual(REFUSED);
  });

  it('needs signed: true, which shows the secret once; signed: false ends it', async () => {
    const made = await list({ signed: true });
    expect(made).toMatchObject({ signed: true, signing_secret: expect.stringMatching(/^sgs_/) });
    for (const shown of [await change(made.id, { signed: true }), await look(made.id, market.provider)]) {
      expect(shown).toMatchObject({ signed: true, signing_keyid: made.signing_keyid });
      expect(shown).not.toHaveProperty('signing_secret');
    }
    expect(await look(made.id)).not.toHaveProperty('signed');
    expect(await change(made.id, { signed: false })).toMatchObject({ signed: false });
    expect((await call(made.id)).values).not.toHaveProperty('signature');
    const path = `/api/v1/services/${made.id}/signing-secret`;
    const refused = await market.request(path, { key: market.provider, method: 'POST' });
    expect([refused.status, ((await refused.json()) as { error: string }).error]).toEqual([409, 'conflict']);
    const again = await change(made.id, { signed: true });
    expect(again.signing_secret).not.toBe(made.signing_secret);
  });
});

it('a gateway that starts reports which keys encrypt the secrets', async () => {
  const { stop } = await market.anotherGateway();
  await until(() => market.log.lines.some((line) => /"first_key":[1-9]\d*,"other_keys":0,"unreadable":1\b/.test(line)));
  await stop();
  expect(market.log.lines.join()).not.toContain('providers-own');
});

describe('a service that refuses credentials', () => {
  it('is paid nothing if they belong to its listing (also by use or with free calls), but is paid if the caller sent them', async () => {
    const denying = await startService((_request, response) => {
      response.writeHead(401, { 'X-ACF-Charge': '0.04' }).end('key expired');
    });
    const caller = await market.buyer(1);
    let first: string | undefined;
    const own = { 'X-ACF-Forward': 'x-auth-token', 'X-Auth-Token': 'callers' };
    const forwards = { endpoint: denying.url, forward_headers: ['x-auth-token'], max_price: 0.05 };
    const added = { ...forwards, upstream_headers: { 'x-key': 'expired' } };
    const costOf = async (fields: object, headers = {}): Promise<(number | string | null)[]> => {
      const { id } = await list(fields);
      first ??= id;
      const response = await market.request(`/api/v1/proxy/${id}/`, { key: caller, headers });
      expect(await response.text()).toBe('key expired');
      return [response.status, response.headers.get('x-acf-amount')];
    };
    expect(await costOf(added)).toEqual([401, '0']);
    expect(await costOf({ ...added, free_calls: 1 })).toEqual([401, '0']);
    expect(await costOf({ ...forwards, upstream_query: { key: 'expired' } })).toEqual([401, '0']);
    expect(await costOf(added, own)).toEqual([401, '0.04']);
    expect(await costOf(forwards)).toEqual([401, '0.04']);
    const refunded = ['refunded:upstream_denied', 0];
    const records = await market.records(caller);
    expect(records.map(({ outcome, amount }) => [outcome, amount])).toEqual([
      ['completed', 0.04],
      ['completed', 0.04],
      refunded,
      refunded,
      refunded,
    ]);
    expect(await market.balance(caller)).toMatchObject({ balance: 0.92, held: 0 });
    // The provider is told why, and the buyer is not.
    const calls = await market.json<{ records: object[] }>(`/api/v1/services/${first}/calls`, { key: market.provider });
    const { usage_id } = records.at(-1) as { usage_id: string };
    expect(calls.records).toMatchObject([{ usage_id }]);
    expect(calls.records[0]).toHaveProperty('cause', 'credentials_refused');
    expect(records.at(-1)).not.toHaveProperty('cause');
    await denying.close();
  });
});
