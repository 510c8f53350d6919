import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Witness } from '../conformance/witness.ts';
import { authorization, type Key } from '../integration/market-client.ts';
import { RawCaller, requestText } from '../integration/raw-caller.ts';
import { WorkerStack } from '../integration/worker-stack.ts';
import { buildSources } from '../support/build.ts';
import { tellEachServer } from '../support/redis-kind.ts';
import { until } from '../support/wait.ts';
import { type RawServer, rawServer } from '../upstream/helpers.ts';
import { dumpPostgres, dumpRedis, encodingsOf, spellingsOf } from './stored-texts.ts';

/** A log line that an attacker would like to put into our log. */
const FORGED = '{"level":60,"msg":"forged"}';

let stack: WorkerStack;
let witness: Witness;
let broken: RawServer;
let answers = '';
/** All keys of this test: of admin and provider, of a buyer before and after the rotation, and a key that was revoked. */
const used: Key[] = [];
/** SECRETS_KEY, and what it encrypts: headers that a listing adds to its calls, and secrets that sign them. */
const SECRETS_KEY = Buffer.alloc(32, 'a key for secrets').toString('base64');
const PROVIDERS_KEY = 'the-key-that-a-provider-has-at-their-own-service';
const sealed = [SECRETS_KEY, PROVIDERS_KEY];

const proxied = (path: string, key: Key, init: Parameters<WorkerStack['request']>[1] = {}): Promise<number> =>
  noted(stack.request(path, { key, ...init }));

/** Keeps everything that the caller received. */
async function noted(answer: Promise<Response>): Promise<number> {
  const response = await answer;
  answers += `${JSON.stringify([...response.headers])}\n${await response.text()}\n`;
  return response.status;
}

async function say(text: string): Promise<void> {
  const caller = await RawCaller.connect(stack.baseUrl);
  caller.send(text);
  answers += (await caller.end()).toString('latin1');
  caller.destroy();
}

beforeAll(async () => {
  stack = await WorkerStack.start(buildSources(), { LOG_LEVEL: 'debug', ANONYMOUS_RATE_LIMIT: '10000', SECRETS_KEY });
  witness = await Witness.open();
  broken = await rawServer(async (peer) => {
    const request = await peer.takeRequest();
    // The gateway logs the fault in this response.
    peer.send(`HTTP/1.1 200 OK\r\nX: \x1b[31m\r\n${FORGED}\r\n${request}`);
    peer.socket.end();
  });
  const service = await stack.service({ endpoint: `${witness.url}/base`, price: 0.001 });
  const failing = await stack.service({ endpoint: broken.url, price: 0.001 });
  for (const path of [service, failing]) await stack.listedEverywhere(path);
  const buyer = await stack.buyer(1);
  const revoked = await stack.anotherKey(buyer);
  used.push(stack.admin, stack.provider, buyer, revoked);

  await inOrder(service, failing, buyer);
  await inError(service, failing, buyer, revoked);
  await rotate(service, buyer);
  await withSecrets(buyer);
  await cutStores();
  expect(await until(async () => (await stack.request(`${service}/after`, { key: buyer })).status === 200)).toBe(true);
  await stack.settled();
});
afterAll(async () => {
  await stack.stop();
  await witness.close();
  await broken.close();
});

async function inOrder(service: string, failing: string, buyer: Key): Promise<void> {
  expect(await proxied(`${service}/x?api_key=${buyer.secret}`, buyer)).toBe(200);
  const headers = { Cookie: `session=${buyer.secret}`, 'Proxy-Authorization': authorization(buyer) };
  expect(await proxied(`${service}/x`, buyer, { method: 'POST', body: { a: 1 }, headers })).toBe(200);
  expect(await proxied(failing, buyer)).toBe(502);
  for (const path of ['/api/v1/usage/me', '/api/v1/balance/me', '/api/v1/keys/me', '/api/v1/keys']) {
    expect(await proxied(path, buyer)).toBe(200);
  }
}

async function inError(service: string, failing: string, buyer: Key, revoked: Key): Promise<void> {
  const wrong = { ...buyer, secret: `${buyer.secret.slice(0, -1)}${buyer.secret.endsWith('a') ? 'b' : 'a'}` };
  expect(await proxied(service, wrong)).toBe(401);
  expect(await proxied(`/api/v1/proxy/${buyer.secret}`, buyer)).toBe(404);
  expect(await proxied(`/api/v1/keys/${revoked.key_id}`, buyer, { method: 'DELETE' })).toBe(200);
  expect(await proxied(service, revoked)).toBe(401);
  const body = `{"owner_id": "${buyer.secret}`;
  const json = ['Content-Type: application/json', 'Connection: close'];
  await say(requestText('POST /api/v1/keys', { key: buyer, headers: json, body }));
  const lines = [`X: a\x1b[2J\n${FORGED}`, `X\n${FORGED}: y`, `Host: ${FORGED}`];
  for (const line of lines)
    await say(requestText(`GET ${failing}`, { key: buyer, headers: [line, 'Connection: close'] }));
  for (const path of [`${failing}/%0a${FORGED.replaceAll('"', '%22')}`, `${failing}/%1b%5b2J`]) {
    await say(requestText(`GET ${path}`, { key: buyer, headers: ['Connection: close'] }));
  }
  await say(requestText(`GET ${failing}/\n${FORGED}`, { key: buyer }));
}

async function rotate(service: string, buyer: Key): Promise<void> {
  const answer = await stack.request(`/api/v1/keys/${buyer.key_id}/rotate`, { key: buyer, method: 'POST', body: {} });
  const rotated = { ...buyer, ...((await answer.json()) as Pick<Key, 'secret'>) };
  expect(rotated.secret).not.toBe(buyer.secret);
  used.push(rotated);
  for (const key of [rotated, buyer]) expect(await proxied(service, key)).toBe(200);
}

/** A listing with secrets: listed, refused, called, failing, with a new signing secret, and damaged. */
async function withSecrets(buyer: Key): Promise<void> {
  const { provider: key } = stack;
  const fields = { name: 'n', description: '', category: 'c', price: 0.001, endpoint: `${broken.url}/` };
  const upstream_headers = { 'X-Api-Key': PROVIDERS_KEY };
  const upstream_query = { key: PROVIDERS_KEY };
  const body = { ...fields, upstream_headers, upstream_query, signed: true };
  for (const wrong of [`${PROVIDERS_KEY}\n`, `${PROVIDERS_KEY}é`, PROVIDERS_KEY.repeat(100)]) {
    const refused = { ...body, upstream_headers: { 'X-Api-Key': wrong } };
    expect(await proxied('/api/v1/services', key, { method: 'POST', body: refused })).toBe(400);
  }
  const made = await stack.json<{ id: string; signing_secret: string }>('/api/v1/services', {
    key,
    method: 'POST',
    body,
  });
  const path = `/api/v1/services/${made.id}`;
  await stack.listedEverywhere(`/api/v1/proxy/${made.id}`);
  expect(await proxied(`/api/v1/proxy/${made.id}`, buyer)).toBe(502);
  const renewed = await stack.json<typeof made>(`${path}/signing-secret`, { key, method: 'POST' });
  sealed.push(made.signing_secret, renewed.signing_secret);
  expect(await proxied(path, key, { method: 'PATCH', body: { upstream_headers, price: 0.002 } })).toBe(200);
  for (const asked of [path, '/api/v1/services?mine=true', `/api/v1/discover/${made.id}`]) {
    expect(await proxied(asked, key)).toBe(200);
  }
  await stack.stores.sql`
    WITH damaged AS (
      UPDATE services SET upstream_headers = replace(upstream_headers, 's1:', 's0:'), updated_at = now() + interval '1 second'
      WHERE id = ${made.id} RETURNING id)
    SELECT pg_notify('tollgate_services', id::text) FROM damaged`;
  await until(async () => (await proxied(`/api/v1/proxy/${made.id}`, buyer)) === 503);
}

/** Makes the drivers of both stores fail, because drivers may put the failed command or query into their errors. */
async function cutStores(): Promise<void> {
  await tellEachServer(stack.stores, 'client', ['kill', 'type', 'normal', 'skipme', 'yes']);
  await stack.stores.sql`
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()`;
}

describe('a secret', () => {
  const expectNone = (text: string): void => {
    expect(text.length).toBeGreaterThan(100);
    for (const key of used) {
      for (const spelling of spellingsOf(key)) expect(text.includes(spelling), key.key_id).toBe(false);
    }
    for (const secret of sealed) {
      for (const spelling of [secret, ...encodingsOf(secret)]) expect(text.includes(spelling), secret).toBe(false);
    }
  };

  it('is not in the log (its key id may be)', () => {
    expectNone(stack.supervisor.output);
  });

  it('is in no answer except the one that issued it', () => expectNone(answers));

  it('is not in the metrics', async () => {
    const metrics = await (await fetch(`http://127.0.0.1:${stack.env.METRICS_PORT}/metrics`)).text();
    for (const key of ['first', 'other', 'unreadable']) {
      expect(metrics).toContain(`tollgate_listing_secrets{worker="1",key="${key}"}`);
    }
    expectNone(metrics);
  });

  it('is not in Postgres, although the key is', async () => {
    const dump = await dumpPostgres(stack.stores);
    for (const { key_id } of used) expect(dump).toContain(key_id);
    expectNone(dump);
  });

  it('is not in Redis, although the key is', async () => {
    const dump = await dumpRedis(stack.stores);
    expect(dump).toContain((used[2] as Key).key_id);
    expectNone(dump);
  });

  it('reaches no service, except in a query that the caller wrote, which is passed on byte for byte', () => {
    const heads = witness.connections.flat().map((bytes) => bytes.toString('latin1'));
    expectNone(heads.join('').replaceAll(/\?api_key=\S+/g, ''));
  });

  it('cannot be derived from the data in Postgres: the digest does not open anything', async () => {
    const rows = await stack.stores.sql<{ key_id: string; secret_hash: string }[]>`
      SELECT key_id, secret_hash FROM api_keys`;
    expect(rows.length).toBeGreaterThanOrEqual(4);
    for (const { key_id, secret_hash } of rows) {
      for (const secret of [secret_hash, `sk_${secret_hash}`, `sk_${secret_hash.slice(0, 49)}`]) {
        expect(await noted(stack.request('/api/v1/keys/me', { key: { key_id, secret, account_id: '' } }))).toBe(401);
      }
    }
  });
});

describe('the log', () => {
  it('has one object on each line, no unprintable characters, and no line that a caller or a service wrote', () => {
    const lines = stack.supervisor.output.split('\n').slice(0, -1);
    expect(lines.some((line) => line.includes('service failed'))).toBe(true);
    for (const line of lines) {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
      expect(line).not.toMatch(/[\x00-\x1f\x7f]/);
      expect((JSON.parse(line) as { msg: string }).msg).not.toBe('forged');
    }
  });
});
