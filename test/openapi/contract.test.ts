import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Key, Marketplace, startService, type TestService } from '../integration/marketplace.ts';
import { importWorker } from '../support/build.ts';
import { emptyBucket } from '../support/empty-bucket.ts';
import { until } from '../support/wait.ts';
import { Contract, type Operation } from './contract.ts';
import { Driver, type Sent } from './driver.ts';
import { compileClient, generateClient, runClient } from './generated-client.ts';
import { redoclyFindings, spectralFindings } from './lint.ts';

const TOP_UP = 'https://pay.example.com/top-up';
const OPERATOR = { name: 'Tolls & $& <Sons>', contact: 'help@example.com', terms_url: 'https://example.com/terms?a&b' };
const OPERATOR_SETTINGS = {
  OPERATOR_NAME: OPERATOR.name,
  OPERATOR_CONTACT: OPERATOR.contact,
  TERMS_URL: OPERATOR.terms_url,
};
/** The largest body that any operation takes. */
const MAX_BODY = 2_097_152;
const MAX_CALL_BODY = 1_000;
const ONE_OPERATION = { method: 'GET', path: '/one', summary: 'The only one' };
const MCP = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
const UNKNOWN_ID = '00000000-0000-7000-8000-000000000000';
const UNKNOWN_KEY = `acf_${'0'.repeat(22)}`;

/** Responses to `/hang`. */
const hanging: ServerResponse[] = [];

let market: Marketplace;
let service: TestService;
let driver: Driver;
let document: string;
/** Keys of admins: one has 300 requests a minute, fewer than this file sends. */
let admins: Key[];
let buyer: Key;
let suspended: Key;
/** Its own bucket and that of its reads are empty. No other admin has its account. */
let limited: Key;

beforeAll(async () => {
  // Compiled before the first document is sent: compiling takes longer than reading a document may.
  importWorker();
  const SECRETS_KEY = Buffer.alloc(32, 'a key').toString('base64');
  const settings = {
    MAX_REQUEST_BODY_BYTES: String(MAX_CALL_BODY),
    TOP_UP_URL: TOP_UP,
    SECRETS_KEY,
    ...OPERATOR_SETTINGS,
  };
  market = await Marketplace.start({ ...settings, PRICE_NOTICE_SECONDS: '60' }, { asksNewEndpoints: true });
  // A service that answers with the status that its path names, in text that is no JSON; to `/hang` it answers when it is told to.
  service = await startService((request, response) => {
    if (request.url === '/hang') {
      hanging.push(response);
      return;
    }
    response.statusCode = Number(request.url?.slice(1)) || 200;
    const isProgram = request.url === '/greet';
    response.setHeader('Content-Type', isProgram ? 'application/json' : 'text/plain');
    response.end(isProgram ? '"the service says so"' : 'the service says so');
  });
  document = await (await market.request('/api/v1/openapi.json')).text();
  driver = new Driver(market.baseUrl, new Contract(JSON.parse(document)));
  admins = await Promise.all([1, 2, 3].map(() => adminKey(300)));
  buyer = await market.buyer(1);
  limited = await adminKey(1, (await market.buyer(0)).account_id);
  for (const page of ['discover', 'keys/me']) await market.request(`/api/v1/${page}`, { key: limited });
  suspended = await market.buyer(0);
  await setStatus(suspended, 'suspended');
});
afterAll(async () => {
  driver.close();
  await market.stop();
  await service.close();
});

async function adminKey(limit: number, account_id = market.admin.account_id): Promise<Key> {
  const { admin } = market;
  const body = { role: 'admin', account_id };
  const key = await market.json<Key>('/api/v1/keys', { key: admin, method: 'POST', body });
  await market.json(`/api/v1/keys/${key.key_id}`, { key: admin, method: 'PATCH', body: { rate_limit: limit } });
  return key;
}

async function setStatus({ account_id }: Key, status: string): Promise<void> {
  await market.json(`/api/v1/admin/accounts/${account_id}`, { key: market.admin, method: 'PATCH', body: { status } });
}

/** A request of an account that has revoked and rotated as many keys as it may for now. */
async function outOfControl(): Promise<Sent> {
  const { redis, keys } = market.stores;
  await emptyBucket(redis, keys.control(keys.shardOf(limited.account_id), limited.account_id));
  return { key: limited };
}

/** A request by a key whose account is suspended, which only Redis knows. */
async function suspendedInRedis(): Promise<Sent> {
  const key = await market.buyer(0);
  await market.balance(key);
  const { redis, keys } = market.stores;
  await redis.command('hset', [keys.key(keys.shardOf(key.account_id), key.key_id), 'status', 'suspended']);
  return { key };
}

/** A request of a page of the gateway, in a browser that is signed in with the key. */
async function signedIn(key: Key): Promise<Sent & { readonly id: string }> {
  const Origin = market.baseUrl;
  const operation = driver.contract.operation('postSession');
  const answer = await driver.send(operation, { key, headers: { Origin } });
  driver.contract.check(operation, answer);
  const Cookie = String(answer.headers['set-cookie']).split(';')[0] as string;
  return { headers: { Origin, Cookie }, id: JSON.parse(answer.body).id };
}

/** A request of a browser that is signed in, once its account has nothing left for such requests. */
async function signedInOutOfControl(): Promise<Sent> {
  const key = await market.buyer(0);
  const sent = await signedIn(key);
  const { redis, keys } = market.stores;
  await emptyBucket(redis, keys.control(keys.shardOf(key.account_id), key.account_id));
  return sent;
}
const WITH_COOKIE = ['getSession', 'deleteSession', 'deleteSessionById', 'postSessionToken'];

let turn = 0;
const anAdmin = (): Key => admins[turn++ % admins.length] as Key;

/** Errors that need a broken store, a caller that dawdles, an overloaded service or a fault of the gateway: their own tests make those. */
const NEEDS_DAMAGE = new Set(['internal', 'unavailable', 'upstream_busy', 'body_too_slow']);
/** Requests have to meet for these: test/routes/openapi-import.test.ts and service-secrets.test.ts make them. */
const NEEDS_LUCK = ['putServicesByIdOpenapi', 'putServicesByIdOperations', 'patchServicesById'].map(
  (id) => `${id} conflict`,
);
const isMadeHere = ({ operationId }: Operation, code: string): boolean =>
  !NEEDS_DAMAGE.has(code) && !NEEDS_LUCK.includes(`${operationId} ${code}`);

/** How any operation is brought to give these errors, whatever it does. Ids in its path exist nowhere. */
const ANYWHERE: Readonly<Record<string, (operation: Operation) => Sent>> = {
  invalid_request: () => ({ key: anAdmin(), query: 'nonsense=1&nonsense=2' }),
  unsupported_framing: () => ({ key: anAdmin(), headers: { 'Transfer-Encoding': 'gzip' } }),
  invalid_json: () => ({ key: anAdmin(), body: '{' }),
  unauthorized: () => ({ headers: { Authorization: 'Bearer acf_wrong' } }),
  forbidden: ({ body }) => ({ key: suspended, body }),
  payload_too_large: () => ({ key: anAdmin(), body: 'x'.repeat(MAX_BODY + 1) }),
  rate_limited: () => ({ key: limited }),
  not_found: ({ body }) => ({ key: anAdmin(), body }),
  service_not_found: ({ body }) => ({ key: anAdmin(), body }),
  not_acceptable: () => ({ key: anAdmin(), headers: { Accept: 'text/csv' } }),
};
const NOWHERE = {
  key_id: UNKNOWN_KEY,
  id: UNKNOWN_ID,
  account_id: UNKNOWN_ID,
  usage_id: UNKNOWN_ID,
  service_id: UNKNOWN_ID,
  file: 'nothing.js',
  buyer: 'b'.repeat(32),
};

/** What gives the codes that are not to be had ANYWHERE, or not in that way. */
const SPECIAL: Readonly<Record<string, () => Promise<Sent>>> = {
  // The listing is looked for before the document is read.
  'putServicesByIdOpenapi invalid_json': async () => {
    const path = await market.service({ endpoint: service.url });
    return { key: anAdmin(), params: { id: path.split('/').at(-1) as string }, body: '{' };
  },
  'postServicesByIdSigningSecret conflict': async () => {
    const path = await market.service({ endpoint: service.url });
    return { key: anAdmin(), params: { id: path.split('/').at(-1) as string } };
  },
  'putServicesByIdBuyersByBuyer conflict': async () => {
    const path = await market.service({ endpoint: service.url });
    const id = path.split('/').at(-1) as string;
    await market.stores.sql`
      UPDATE services SET blocked_buyers =
        (SELECT string_agg(lpad(n::text, 32, '0'), ',') FROM generate_series(1, 200) n)
      WHERE id = ${id}`;
    return { key: anAdmin(), params: { id, buyer: 'b'.repeat(32) }, body: { status: 'blocked' } };
  },
  // A batch.
  'postMcp invalid_request': async () => ({ key: anAdmin(), body: [] }),
  // Redis knows that the key was revoked, and the gateway has not heard of it yet.
  'postMcp unauthorized': async () => {
    const key = await market.buyer(0);
    await market.balance(key);
    const { redis, keys } = market.stores;
    await redis.command('hset', [keys.key(keys.shardOf(key.account_id), key.key_id), 'status', 'revoked']);
    return { key, body: {} };
  },
  'postKeys not_found': async () => ({
    key: anAdmin(),
    body: { role: 'buyer', account_id: UNKNOWN_ID },
  }),
  'postKeys conflict': async () => {
    const key = await market.buyer(0);
    await market.stores.sql`
      INSERT INTO api_keys (key_id, account_id, role, secret_hash)
      SELECT 'acf_' || lpad(n::text, 22, '0'), ${key.account_id}, 'buyer', repeat('0', 64) FROM generate_series(1, 1000) n`;
    return { key, body: { role: 'buyer' } };
  },
  'patchKeysByKeyId forbidden': async () => ({
    key: buyer,
    params: { key_id: buyer.key_id },
    body: { rate_limit: 100 },
  }),
  'patchKeysByKeyId conflict': async () => {
    const body = { label: 'of an agent', budget: { amount: 1, period: 'day' }, max_price: 1, expires_at: '2099-01-01' };
    const { key_id } = await driver.expect<Key>('postKeys', 201, { key: buyer, body });
    return { key: buyer, params: { key_id }, body: { budget: { amount: 1, period: 'week' } } };
  },
  'postServices conflict': async () => {
    const key = await adminKey(300);
    const fields = { name: 'x', description: '', endpoint: service.url, price: 0, category: 'x' };
    await market.stores.sql`
      INSERT INTO services (id, provider_id, name, description, endpoint, price, free_calls, timeout_seconds, category)
      SELECT gen_random_uuid(), ${key.account_id}, 'x', '', ${service.url}, 0, 0, 60, 'x' FROM generate_series(1, 200)`;
    return { key, body: fields };
  },
  // Once the gateway knows it too, the account may read its own money.
  ...Object.fromEntries(
    ['getKeysMe', 'getUsageMe', 'getUsage', 'getStatementMe'].map((operation) => [
      `${operation} forbidden`,
      suspendedInRedis,
    ]),
  ),
  'getBalanceMe forbidden': async () => ({ key: market.provider }),
  'getEarningsMe forbidden': async () => ({ key: buyer }),
  'getUsage not_found': async () => ({ key: buyer, query: `key_id=${UNKNOWN_KEY}` }),
  'postSession rate_limited': outOfControl,
  ...Object.fromEntries(
    WITH_COOKIE.flatMap((operation) => [
      [`${operation} rate_limited`, signedInOutOfControl],
      [`${operation} unauthorized`, async () => ({ headers: { Origin: market.baseUrl }, body: {} })],
      [`${operation} forbidden`, async () => ({ headers: { Origin: 'https://elsewhere.example' } })],
    ]),
  ),
  'deleteSessionById not_found': async () => signedIn(buyer),
  'postKeysByKeyIdRotate rate_limited': outOfControl,
  'deleteKeysByKeyId rate_limited': outOfControl,
  'postKeysByKeyIdRotate conflict': async () => {
    const { key_id } = await market.buyer(0);
    await market.json(`/api/v1/keys/${key_id}`, { key: market.admin, method: 'DELETE' });
    return { key: anAdmin(), params: { key_id }, body: {} };
  },
  'patchAdminAccountsById conflict': async () => {
    const key = anAdmin();
    const { account_id } = await market.json<Key>('/api/v1/keys/me', { key });
    return { key, params: { id: account_id }, body: { status: 'suspended' } };
  },
  'postAdminAccountsByIdClose conflict': async () => ({ key: anAdmin(), params: { id: buyer.account_id } }),
  // A call that cost nothing.
  'postUsageByUsageIdRefund conflict': async () => {
    const response = await market.request(`${await market.service({ endpoint: service.url })}/200`, { key: buyer });
    await market.settled();
    const params = { usage_id: response.headers.get('x-acf-usage-id') as string };
    return { key: anAdmin(), params, body: { reason: 'Cut off', reference: 'too much' } };
  },
  'postAdminCredits conflict': async () => {
    await market.credit(buyer, 0.5, 'used before');
    return { key: anAdmin(), body: { account_id: buyer.account_id, amount: 0.25, reference: 'used before' } };
  },
  'postAdminDebits conflict': async () => ({
    key: anAdmin(),
    body: { account_id: buyer.account_id, amount: 1_000, reference: 'too much', reason: 'a test' },
  }),
  'postAdminPayouts conflict': async () => ({
    key: anAdmin(),
    body: { account_id: buyer.account_id, amount: 1_000, reference: 'too much' },
  }),
  // There is no drift.
  'postAdminReconciliationByAccountId conflict': async () => ({
    key: anAdmin(),
    params: { account_id: buyer.account_id },
    body: { believe: 'postgres', reason: 'a test', reference: 'no drift' },
  }),
};

/**
 * An operator asks for a comparison that cannot store the report of a shard yet.
 * @returns `end` resolves when the operator was told that it goes on, and when it is over after that
 */
async function beginLongComparison() {
  const { sql } = market.stores;
  let release = (): void => {};
  const barred = new Promise<void>((resolve, reject) => {
    const holding = sql.begin(async (tx) => {
      await tx`SELECT FROM reconciliations WHERE shard = 0 FOR UPDATE`;
      resolve();
      await new Promise<void>((end) => {
        release = end;
      });
    });
    holding.catch(reject);
  });
  await barred;
  const asked = driver.expect<{ checked_at: string }>('postAdminReconciliation', 202, { key: anAdmin() });
  const answer = asked.finally(() => release());
  answer.catch(() => {});
  return {
    async end(): Promise<void> {
      const { checked_at: before } = await answer;
      await until(async () => {
        const now = await driver.expect<{ checked_at: string }>('getAdminReconciliation', 200, { key: anAdmin() });
        return now.checked_at > before;
      });
    },
  };
}

describe('each error of each operation matches the OpenAPI document', () => {
  it('before and while its own code runs', async () => {
    const operations = driver.contract.operations.filter(({ template }) => !template.startsWith('/api/v1/proxy/'));
    expect(operations.length).toBeGreaterThan(20);
    for (const operation of operations) {
      for (const code of driver.contract.errorCodes(operation)) {
        if (!isMadeHere(operation, code)) continue;
        const special = SPECIAL[`${operation.operationId} ${code}`];
        const sent = special === undefined ? ANYWHERE[code]?.(operation) : await special();
        if (sent === undefined) throw new Error(`nothing here makes ${operation.operationId} answer ${code}`);
        await driver.expectError(operation.operationId, code, { params: NOWHERE, ...sent });
      }
    }
  });

  it('even where the document omits an error: then no such request gets that error', async () => {
    const operations = driver.contract.operations.filter(({ template }) => !template.startsWith('/api/v1/proxy/'));
    // GET has no body, so none is too long; the gateway refuses one anyway.
    const { payload_too_large: _, not_acceptable: __, ...tried } = ANYWHERE;
    for (const operation of operations) {
      const declared = new Set(driver.contract.errorCodes(operation));
      for (const [code, sent] of Object.entries(tried)) {
        if (declared.has(code)) continue;
        driver.contract.check(operation, await driver.send(operation, { params: NOWHERE, ...sent(operation) }));
      }
    }
  });

  it('for a call, with each method', async () => {
    const idOf = async (options: Parameters<Marketplace['service']>[0]): Promise<string> =>
      (await market.service(options)).split('/').at(-1) as string;
    const free = await idOf({ endpoint: service.url });
    const dear = await idOf({ endpoint: service.url, price: 5 });
    const narrow = await idOf({ endpoint: service.url, only_operations: true, operations: [ONE_OPERATION] });
    const tools = await idOf({ endpoint: service.url, protocol: 'mcp' });
    const slow = await idOf({ endpoint: service.url, timeout_seconds: 1 });
    const byUse = await idOf({ endpoint: service.url, price: 0.001, max_price: 0.01 });
    const away = await startService(() => {});
    await away.close();
    const dead = await idOf({ endpoint: away.url });
    const budget = { amount: 1, period: 'day' };
    const thrifty = await driver.expect<Key>('postKeys', 201, { key: buyer, body: { budget } });
    const to = (service_id: string, path = ''): Pick<Sent, 'params'> => ({ params: { service_id, path } });
    const sent: Readonly<Record<string, Sent>> = {
      invalid_request: { key: buyer, ...to(free), headers: { 'X-ACF-Max-Amount': '$1' } },
      unsupported_framing: { key: buyer, ...to(free), headers: { 'Transfer-Encoding': 'gzip' } },
      unauthorized: to(free),
      forbidden: { key: await market.anotherProvider(), ...to(free) },
      insufficient_balance: { key: buyer, ...to(dear) },
      budget_exceeded: { key: thrifty, ...to(dear) },
      free_calls_used: { key: buyer, ...to(dear), headers: { 'X-ACF-Free-Only': 'true' } },
      service_not_found: { key: buyer, ...to(UNKNOWN_ID) },
      invalid_json: { key: buyer, ...to(tools), body: '{', headers: MCP },
      not_acceptable: { key: buyer, ...to(tools), body: '{}', headers: { 'Content-Type': 'application/json' } },
      method_not_allowed: { key: buyer, ...to(tools) },
      operation_not_found: { key: buyer, ...to(narrow, 'other') },
      price_exceeds_maximum: { key: buyer, ...to(dear), headers: { 'X-ACF-Max-Amount': '1' } },
      payload_too_large: { key: buyer, ...to(free), body: 'x'.repeat(MAX_CALL_BODY + 1) },
      upgrade_not_supported: { key: buyer, ...to(free), headers: { Connection: 'Upgrade', Upgrade: 'websocket' } },
      rate_limited: { key: limited, ...to(free) },
      upstream_error: { key: buyer, ...to(dead) },
      upstream_timeout: { key: buyer, ...to(slow, 'hang') },
    };
    const operations = driver.contract.operations.filter(({ template }) => template.startsWith('/api/v1/proxy/'));
    expect(operations).toHaveLength(6);
    const keyed = (value: string, target: Pick<Sent, 'params'>): Sent => ({
      key: buyer,
      ...target,
      headers: { 'Idempotency-Key': value },
    });
    const { redis, keys } = market.stores;
    const claims = keys.claims(keys.shardOf(buyer.account_id), buyer.account_id);
    const claimed = async (state: string): Promise<[string, string][]> =>
      Object.entries((await redis.command('hgetall', [claims])) as Record<string, string>).filter(([, text]) =>
        text.startsWith(state),
      );
    const patient = await idOf({ endpoint: service.url, timeout_seconds: 300 });
    const underWay = ({ operationId }: Operation): Sent => keyed(`${operationId}-slow`, to(patient, 'hang'));
    const open = operations.map((operation) => driver.send(operation, underWay(operation)));
    await until(async () => (await claimed('o')).length === operations.length);
    await Promise.all(
      operations.map(async (operation) => {
        const { operationId } = operation;
        const codes = driver.contract.errorCodes(operation);
        for (const [code, request] of Object.entries(sent)) {
          if (codes.includes(code)) await driver.expectError(operationId, code, request);
        }
        await driver.expect(operationId, 200, { key: buyer, ...to(free) });
        await driver.expect(operationId, 200, { key: buyer, ...to(byUse), headers: { 'X-ACF-Usage-Event': 'true' } });
        await driver.expect(operationId, 418, { key: buyer, ...to(free, '418') });
        await driver.expect(operationId, 404, { key: buyer, ...to(free, '404') });
        const once = keyed(operationId, to(free));
        await driver.expect(operationId, 200, once);
        const again = await driver.send(operation, once);
        driver.contract.check(operation, again);
        expect(again.headers['idempotent-replayed']).toBe('true');
        await driver.expectError(operationId, 'idempotency_mismatch', keyed(operationId, to(free, 'other')));
        await driver.expectError(operationId, 'call_in_progress', underWay(operation));
      }),
    );
    for (const response of hanging) response.end();
    await Promise.all(open);
    for (const [name, text] of await claimed('k')) await redis.command('hset', [claims, name, `n${text.slice(1)}`]);
    for (const { operationId } of operations) {
      await driver.expectError(operationId, 'answer_not_kept', keyed(operationId, to(free)));
    }
  });

  it('and says how to pay when the balance does not cover a call', async () => {
    const top_up = `${TOP_UP}?account_id=${buyer.account_id}`;
    const dear = await market.service({ endpoint: service.url, price: 5 });
    const answer = await (await market.request(`${dear}/x`, { key: buyer })).json();
    expect(answer).toMatchObject({ error: 'insufficient_balance', required: 5, top_up, operator: OPERATOR });
    expect(answer).toHaveProperty('message', expect.stringContaining(top_up));
    expect(await market.balance(buyer)).toMatchObject({ top_up });
  });
});

describe('each success of each operation matches the OpenAPI document', () => {
  it('for keys', async () => {
    const key = await driver.expect<Key>('postKeys', 201, { body: { owner_id: 'somebody', role: 'buyer' } });
    await driver.expect('getKeysMe', 200, { key });
    await driver.expect('getKeys', 200, { key, query: 'limit=1' });
    const params = { key_id: key.key_id };
    const { secret } = await driver.expect<Key>('postKeysByKeyIdRotate', 200, { key, params, body: {} });
    await driver.expect('patchKeysByKeyId', 200, { key: anAdmin(), params, body: { rate_limit: 120 } });
    await driver.expect('deleteKeysByKeyId', 200, { key: { ...key, secret }, params });
  });

  it('for sessions', async () => {
    const session = await signedIn(await market.buyer(0));
    await driver.expect('postSessionToken', 200, { ...session, body: { id: session.id } });
    await driver.expect('getSession', 200, { ...session, query: 'everywhere=true' });
    await driver.expect('deleteSessionById', 200, { ...session, params: { id: session.id } });
    await driver.expect('deleteSession', 200, { ...(await signedIn(await market.buyer(0))), query: 'everywhere=true' });
  });

  it('for services, in each of their states', async () => {
    const key = market.provider;
    const body = {
      ...(driver.contract.operation('postServices').body as object),
      name: 'Held against the document',
      endpoint: service.url,
      idle_seconds: 60,
      max_price: 10,
      docs_url: 'https://docs.example/',
      health_path: '/health',
      upstream_headers: { 'X-Api-Key': 'x' },
      upstream_query: { key: 'x' },
      signed: true,
      forward_headers: ['cookie'],
      operations: [
        {
          method: 'GET',
          path: '/a/{b}',
          summary: 'All of it',
          input: {},
          output: {},
          example: { query: {}, body: 1, response: [] },
        },
        { method: 'POST', path: '/*', summary: 'Little of it' },
      ],
    };
    const { id } = await driver.expect<{ id: string }>('postServices', 201, { key, body });
    const [aBuyer, blocked] = [{ id, buyer: 'b'.repeat(32) }, { status: 'blocked' }];
    await driver.expect('putServicesByIdBuyersByBuyer', 200, { key, params: aBuyer, body: blocked });
    const params = { id };
    expect(await driver.expect('getDiscoverById', 200, { params })).toHaveProperty('operations.0.price_label');
    await driver.expect('postServicesByIdSigningSecret', 200, { key, params });
    const openapi = driver.contract.operation('putServicesByIdOpenapi').body;
    await driver.expect('putServicesByIdOpenapi', 200, { key, params, body: openapi, query: 'dry_run=true' });
    await driver.expect('putServicesByIdOpenapi', 200, { key, params, body: openapi });
    await driver.expect('getServicesById', 200, { params });
    await driver.expect('getServicesById', 200, { key, params, query: 'lang=de' });
    await driver.expect('getServicesByIdStats', 200, { params });
    await driver.expect('getServices', 200, { key, query: 'mine=true&limit=1' });
    const operations = { operations: [{ method: 'GET', path: '/a', summary: 'A', price: 0 }] };
    await driver.expect('putServicesByIdOperations', 200, { key, params, body: operations, query: 'dry_run=true' });
    await driver.expect('putServicesByIdOperations', 200, { key, params, body: operations });
    // Changes of a listing that nobody has called are not announced.
    expect((await market.request(`/api/v1/proxy/${id}/b`, { key: buyer })).status).toBe(200);
    await driver.expect('patchServicesById', 200, { key, params, body: { free_calls: null, price: 0.01 } });
    const dearer = { operations: [{ method: 'GET', path: '/a', remove: true }], price: 5 };
    await driver.expect('patchServicesById', 200, { key, params, body: dearer, query: 'dry_run=true' });
    await driver.expect('patchServicesById', 200, { key, params, body: dearer });
    for (const operation of ['getServicesById', 'getDiscoverById']) {
      const shown = await driver.expect(operation, 200, { key, params });
      expect(shown).toHaveProperty('next_price.operations', [{ method: 'GET', path: '/a', old_price: 0 }]);
      expect(shown).toHaveProperty('docs_url');
    }
    await until(async () => 'reachable' in (await driver.expect<object>('getServicesById', 200, { key, params })));
    const elsewhere = { endpoint: 'https://service.example', signed: false };
    const moved = await driver.expect('patchServicesById', 200, { key, params, body: elsewhere });
    expect(moved).toMatchObject({
      signed: false,
      forgotten_upstream_headers: ['x-api-key'],
      forgotten_upstream_query: ['key'],
    });
    await driver.expect('getDiscover', 200);
    const page = await driver.expect('getDiscover', 200, { query: 'limit=1&q=held&lang=ja' });
    expect(page).toMatchObject({ services: [{ id }], total: 1 });
    await driver.expect('getDiscover', 304, { headers: { 'If-None-Match': '*' } });
    await driver.expect('deleteServicesById', 200, { key, params });
    expect(await driver.expect('getServicesById', 200, { key, params })).toMatchObject({ status: 'removed' });
  });

  it('for money', async () => {
    const path = await market.service({ endpoint: service.url, price: 0.01, free_calls: 1 });
    const spender = await market.buyer(1);
    for (const at of ['200', '404', '500']) await market.request(`${path}/${at}`, { key: spender });
    const records = await market.records(spender);
    expect(records.map(({ status }) => status)).toEqual([500, 404, 200]);
    await driver.expect('getUsageMe', 200, { key: spender });
    await driver.expect('getUsageMe', 200, { key: spender, headers: { Accept: 'text/csv' }, query: 'limit=1' });
    const ofKey = { key: spender, query: `key_id=${spender.key_id}` };
    expect(await driver.expect('getUsage', 200, ofKey)).toMatchObject({
      key_id: spender.key_id,
      by_key: [{ label: null, calls: 3 }],
    });
    await driver.expect('getUsage', 200, { ...ofKey, headers: { Accept: 'text/csv' } });
    const params = { usage_id: records[1]?.usage_id as string };
    for (const key of [spender, market.provider, anAdmin()])
      await driver.expect('getUsageByUsageId', 200, { key, params });
    const service_id = path.split('/').at(-1) as string;
    const calls = { key: market.provider, params: { id: service_id } };
    await driver.expect('getServicesByIdCalls', 200, calls);
    await driver.expect('getServicesByIdCalls', 200, { ...calls, headers: { Accept: 'text/csv' }, query: 'limit=1' });
    await driver.expect('getServicesByIdStats', 200, { params: { id: service_id } });
    await driver.expect('getBalanceMe', 200, { key: spender });
    const profile = { display_name: 'Weather & Co', contact: 'help@weather.example', url: 'https://weather.example' };
    const seller = await market.anotherProvider();
    await driver.expect('patchAccountsMe', 200, { key: seller, body: profile });
    expect(await driver.expect('getAccountsMe', 200, { key: seller })).toMatchObject(profile);
    expect(await driver.expect('getEarningsMe', 200, { key: market.provider })).toMatchObject({
      by_service: expect.arrayContaining([expect.objectContaining({ gross: 0.01 })]),
    });
    expect(await driver.expect('getStatementMe', 200, { key: spender })).toMatchObject({
      balance: 0.99,
      movements: [{ kind: 'charge' }, { kind: 'credit' }],
    });
    await driver.expect('getStatementMe', 200, { key: market.provider, query: 'limit=1' });
    await driver.expect('getStatementMe', 200, { key: spender, headers: { Accept: 'text/csv' }, query: 'limit=1' });
    const statement = { key: anAdmin(), params: { id: spender.account_id } };
    expect(await driver.expect('getAdminAccountsByIdStatement', 200, statement)).toMatchObject({
      balance: 0.99,
      movements: [{ kind: 'charge' }, { kind: 'credit' }],
    });
    const csv = { ...statement, headers: { Accept: 'text/csv' }, query: 'limit=1' };
    await driver.expect('getAdminAccountsByIdStatement', 200, csv);
  });

  it('for tools for agents, in both revisions of the protocol', async () => {
    const [key, headers] = [anAdmin(), MCP];
    const { body } = driver.contract.operation('postMcp');
    const { method, params } = body as { method: string; params: { name: string } };
    const modern = { ...headers, 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': method, 'Mcp-Name': params.name };
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    const message = { ...(body as object), params: { ...params, _meta } };
    expect(await driver.expect('postMcp', 200, { body, headers })).toMatch(/^event: message\ndata: {"result"/);
    expect(await driver.expect('postMcp', 200, { key, body: message, headers: modern })).toHaveProperty('result');
    const unknown = { ...message, method: 'subscriptions/listen', params: { _meta, notifications: {} } };
    const renamed = { ...modern, 'Mcp-Method': 'subscriptions/listen' };
    expect(await driver.expect('postMcp', 200, { key, body: unknown, headers: renamed })).toHaveProperty('error');
    const notification = { jsonrpc: '2.0', method: 'notifications/initialized' };
    await driver.expect('postMcp', 202, { key, body: notification, headers });
    await driver.expect('postMcp', 400, { key, body: { a: 1 }, headers });
    await driver.expect('postMcp', 400, { key, body: message, headers: renamed });
    await driver.expect('postMcp', 403, { key, body, headers: { ...headers, Origin: 'https://evil.example' } });
    const other = { ...message, method: 'other' };
    await driver.expect('postMcp', 404, { key, body: other, headers: { ...modern, 'Mcp-Method': 'other' } });
    await driver.expect('postMcp', 406, { key, body, headers: { ...headers, Accept: 'application/json' } });
    await driver.expect('postMcp', 415, { key, body, headers: { ...headers, 'Content-Type': 'text/plain' } });
  });

  it('for the operator', async () => {
    const credit = { key: anAdmin(), body: { account_id: buyer.account_id, amount: 0.5, reference: 'a credit' } };
    await driver.expect('postAdminCredits', 201, credit);
    await driver.expect('postAdminCredits', 200, credit);
    const debit = { ...credit.body, amount: 0.25, reference: 'a debit', reason: 'Paid twice' };
    for (const status of [201, 200]) await driver.expect('postAdminDebits', status, { key: anAdmin(), body: debit });
    const provider = await market.json<Key>('/api/v1/keys/me', { key: market.provider });
    const payout = { account_id: provider.account_id, amount: 0.001, reference: 'a payout' };
    for (const status of [201, 200]) await driver.expect('postAdminPayouts', status, { key: anAdmin(), body: payout });
    const path = await market.service({ endpoint: service.url, price: 0.01 });
    const usage_id = (await market.request(`${path}/200`, { key: buyer })).headers.get('x-acf-usage-id') as string;
    await market.settled();
    const refund = {
      key: anAdmin(),
      params: { usage_id },
      body: { amount: 0.004, reason: 'Cut off', reference: 'a refund' },
    };
    for (const status of [201, 200]) await driver.expect('postUsageByUsageIdRefund', status, refund);
    for (const key of [anAdmin(), buyer, market.provider]) {
      const record = await driver.expect('getUsageByUsageId', 200, { key, params: { usage_id } });
      expect(record).toMatchObject({ refunded: 0.004, refunds: [{ reference: 'a refund', by: 'operator' }] });
    }
    const sold = { key: market.provider, query: 'ledger=earnings' };
    const { movements } = await driver.expect<{ movements: object[] }>('getStatementMe', 200, sold);
    expect(movements.slice(0, 2)).toMatchObject([
      { kind: 'refund', usage_id },
      { kind: 'fee', usage_id },
    ]);
    for (const list of ['Credits', 'Debits', 'Payouts', 'Refunds']) {
      expect(await driver.expect(`getAdmin${list}`, 200, { key: anAdmin(), query: 'limit=1' })).toMatchObject({
        [list.toLowerCase()]: [expect.objectContaining({ reference: expect.any(String) })],
      });
    }
    const params = { id: suspended.account_id };
    await driver.expect('deleteAdminAccountsByIdProfile', 200, { key: anAdmin(), params });
    await driver.expect('patchAdminAccountsById', 200, { key: anAdmin(), params, body: { status: 'active' } });
    // A wallet that differs from the books, so that the page has drifts to show.
    const { redis, keys } = market.stores;
    await redis.command('hincrby', [keys.wallet(keys.shardOf(buyer.account_id), buyer.account_id), 'balance', '7']);
    const page = await driver.expect<{ totals: object }>('postAdminReconciliation', 200, { key: anAdmin() });
    expect(page.totals).toMatchObject({ drifting_accounts: 1, drift: 0.000007 });
    const decision = {
      key: anAdmin(),
      params: { account_id: buyer.account_id },
      body: { believe: 'redis', reason: 'It had more', reference: 'a correction' },
    };
    for (const status of [201, 200]) await driver.expect('postAdminReconciliationByAccountId', status, decision);
    expect(await driver.expect('getAdminReconciliation', 200, { key: anAdmin() })).toMatchObject({
      corrections: [{ drift: 0.000007, reference: 'a correction' }],
    });
  });

  it("for the operator's lists", async () => {
    const path = await market.service({ endpoint: service.url, price: 0.01 });
    const id = path.split('/').at(-1) as string;
    await market.request(`${path}/200`, { key: buyer });
    await market.settled();
    await driver.expect('patchAdminServicesById', 200, { key: anAdmin(), params: { id }, body: { status: 'paused' } });
    const { account_id } = await market.buyer(0);
    await driver.expect('postAdminAccountsByIdClose', 200, { key: anAdmin(), params: { id: account_id } });
    for (const name of ['Accounts', 'Keys', 'Services', 'Calls', 'Audit']) {
      const page = await driver.expect<object>(`getAdmin${name}`, 200, { key: anAdmin(), query: 'limit=3' });
      expect(Object.values(page)[0]?.length, name).toBeGreaterThan(0);
    }
    const params = { id: buyer.account_id };
    expect(await driver.expect('getAdminAccountsById', 200, { key: anAdmin(), params })).toHaveProperty('held');
    expect(await driver.expect('getAdminTraffic', 200, { key: anAdmin() })).toMatchObject({ totals: { workers: 1 } });
    expect(await driver.expect('getAdminInstances', 200, { key: anAdmin() })).toMatchObject({ silent: [] });
    expect(await driver.expect('getAdminStats', 200, { key: anAdmin() })).toMatchObject({ accounts: { closed: 1 } });
  });

  it('for each list of the operator as a CSV file, with the fields of its entries as columns', async () => {
    const lists = driver.contract.operations.filter(({ method, template }) => {
      return method === 'GET' && template.startsWith('/api/v1/admin/') && !template.includes('{');
    });
    const longComparison = await beginLongComparison();
    const files = new Map<string, string>();
    for (const { operationId, responses } of lists) {
      if ('406' in responses) continue;
      const key = anAdmin();
      const page = await driver.expect<object>(operationId, 200, { key });
      const rows = Object.values(page).find((value) => Array.isArray(value)) as Record<string, unknown>[];
      const csv = await driver.expect<string>(operationId, 200, { key, headers: { Accept: 'text/csv' } });
      const [header = ''] = csv.split('\r\n');
      expect(header.split(',').sort(), operationId).toEqual(
        expect.arrayContaining(Object.keys(rows[0] as object).sort()),
      );
      files.set(operationId, csv);
    }
    expect(lists.filter(({ responses }) => '406' in responses).map(({ operationId }) => operationId)).toEqual([
      'getAdminStats',
      'getAdminTraffic',
    ]);
    // Nested values are JSON, and what is absent is an empty cell.
    expect(files.get('getAdminAudit')).toMatch(/,account\.credit,account,[0-9a-f-]+,.*"{""amount"":0\.5,.*}",/);
    expect(files.get('getAdminReconciliation')?.split('\r\n')).toHaveLength(market.stores.keys.shards + 2);
    const [key, headers] = [anAdmin(), { Accept: 'text/csv' }];
    const first = await market.request('/api/v1/admin/keys?limit=1', { key, headers });
    const cursor = first.headers.get('X-ACF-Next-Cursor') as string;
    const [, one] = (await first.text()).split('\r\n');
    expect(one).toMatch(`${cursor},`);
    const rest = await (await market.request(`/api/v1/admin/keys?cursor=${cursor}`, { key, headers })).text();
    // More rows than a page in JSON has by default: the file has all that follow.
    const [all] = await market.stores.sql<{ count: number }[]>`SELECT count(*)::int AS count FROM api_keys`;
    expect(rest.split('\r\n')).toHaveLength((all?.count as number) + 1);
    await longComparison.end();
  });

  it('for the page that says who runs the gateway', async () => {
    const { info } = JSON.parse(document);
    expect(info.contact).toEqual({ name: OPERATOR.name, email: OPERATOR.contact });
    expect(info.termsOfService).toBe(OPERATOR.terms_url);
    const textOf = async (path: string, headers = {}): Promise<string> =>
      (await market.request(path, { headers })).text();
    expect(JSON.parse(await textOf('/'))).toMatchObject({ operator: OPERATOR });
    const page = await textOf('/llms.txt');
    for (const text of Object.values(OPERATOR)) expect(page).toContain(text);
    expect(page).not.toContain('{{');
    const welcome = await textOf('/', { Accept: 'text/html' });
    expect(welcome).toContain('Operated by Tolls &amp; $&amp; &lt;Sons&gt;.');
    expect(welcome).toContain('href="mailto:help@example.com"');
    expect(welcome).toContain('href="https://example.com/terms?a&amp;b"');
  });

  it('for the gateway itself', async () => {
    await driver.expect('getHealthz', 200);
    await driver.expect('getReadyz', 200);
    await driver.expect('getWellKnownMcpServerJson', 200);
    await driver.expect('getLlmsTxt', 200);
    await driver.expect('getOpenapiJson', 200);
    await driver.expect('getRoot', 200);
    await driver.expect('getRoot', 200, { headers: { Accept: 'text/html' } });
    const page = await driver.expect<string>('getDocs', 200);
    const files = [...page.matchAll(/(?:src|href)="\/docs\/([^"]+)"/g)].map(([, file = '']) => file);
    expect(files).toHaveLength(4);
    for (const file of files) await driver.expect('getDocsByFile', 200, { params: { file } });
  });
});

describe('the OpenAPI document', () => {
  it('has only operations whose responses and errors were all compared here', () => {
    // Draining and a Redis that is away, which test/integration/lifecycle.test.ts and stores-away.test.ts make.
    const elsewhere = ['getReadyz 503'];
    const expected = driver.contract.operations.flatMap((operation) => [
      ...Object.entries(operation.responses)
        .filter(
          ([status, { content }]) => /^\d+$/.test(status) && content?.['application/json']?.examples === undefined,
        )
        .map(([status]) => `${operation.operationId} ${status}`),
      ...driver.contract
        .errorCodes(operation)
        .filter((code) => isMadeHere(operation, code))
        .map((code) => `${operation.operationId} ${statusOf(operation, code)} ${code}`),
    ]);
    expect(expected.length).toBeGreaterThan(200);
    expect(expected.filter((each) => !driver.contract.seen.has(each) && !elsewhere.includes(each))).toEqual([]);
  });

  it('has a schema and an example for every body and header, and each example is valid', () => {
    for (const { operationId, responses } of driver.contract.operations) {
      for (const [status, { headers, content }] of Object.entries(responses)) {
        const where = `${operationId} ${status}`;
        for (const [name, { example, schema }] of Object.entries(headers)) {
          expect([where, name, example === undefined || example === '']).toEqual([where, name, false]);
          expect([where, name, driver.contract.schemaFaults(schema, example)]).toEqual([where, name, []]);
        }
        if (!['202', '304'].includes(status))
          expect([where, Object.keys(content ?? {}).length]).not.toEqual([where, 0]);
        for (const { schema, example, examples } of Object.values(content ?? {})) {
          const values = examples === undefined ? [example] : Object.values(examples).map(({ value }) => value);
          expect([where, values.filter((value) => value === undefined || value === '')]).toEqual([where, []]);
          for (const value of values) {
            expect([where, driver.contract.schemaFaults(schema as Record<string, unknown>, value)]).toEqual([
              where,
              [],
            ]);
          }
        }
      }
    }
  });

  it('has no default that its own schema would refuse', () => {
    const faults: unknown[] = [];
    let defaults = 0;
    JSON.parse(document, (_name, node) => {
      if (typeof node?.type !== 'string' || node.default === undefined) return node;
      defaults++;
      faults.push(...driver.contract.schemaFaults(node, node.default));
      return node;
    });
    expect(faults).toEqual([]);
    expect(defaults).toBeGreaterThan(2);
  });

  it('describes every parameter', () => {
    for (const { operationId, parameters } of driver.contract.operations) {
      expect([operationId, parameters.filter(({ description }) => !description).map(({ name }) => name)]).toEqual([
        operationId,
        [],
      ]);
    }
  });

  it('passes `redocly lint` without a finding', async () => {
    expect(await redoclyFindings(document)).toEqual([]);
  });

  it("passes spectral's rules for OpenAPI without a finding", async () => {
    expect(await spectralFindings(document)).toEqual([]);
  });

  it('fails these tests and linters when a fault is added', async () => {
    const { contract } = driver;
    const operation = contract.operation('getBalanceMe');
    // A key of its own: the others may have used up their rate limit by now, and a 429 is as the document says, too.
    const good = await driver.send(operation, { key: await market.buyer(1) });
    expect(good.status).toBe(200);
    expect(contract.faults(operation, good)).toEqual([]);
    const body = JSON.parse(good.body) as Record<string, unknown>;
    const changed = (change: object): string => JSON.stringify({ ...body, ...change });
    for (const wrong of [
      { ...good, body: changed({ balance: '1' }) },
      { ...good, body: changed({ more: 1 }) },
      { ...good, body: changed({ held: undefined }) },
      { ...good, status: 202 },
      { ...good, headers: { ...good.headers, 'x-more': '1' } },
      { ...good, headers: { ...good.headers, 'x-ratelimit-limit': 'many' } },
      { ...good, headers: { ...good.headers, 'x-request-id': undefined } },
    ]) {
      expect(contract.faults(operation, wrong)).toHaveLength(1);
    }
    const poor = JSON.stringify({ openapi: '3.1.0', info: { title: 'x', version: '1' }, paths: { '/x': { get: {} } } });
    expect((await redoclyFindings(poor)).join()).toMatch(/security-defined/);
    expect((await spectralFindings(poor)).join()).toMatch(/operation-operationId/);
  });
});

it('a client with types that openapi-typescript generates from the document compiles, calls, and knows each field', async () => {
  const body = {
    name: 'program',
    description: '',
    category: 'test',
    price: 0.25,
    free_calls: 1,
    endpoint: service.url,
  };
  await market.json('/api/v1/services', { key: market.provider, method: 'POST', body });
  const client = await generateClient(document);
  try {
    await compileClient(client.dir);
    expect(await runClient(client.dir, market.baseUrl)).toEqual({
      service: 'program',
      price: 0.25,
      free: 1,
      status: 200,
      amount: '0',
      answer: 'the service says so',
      outcome: 'completed',
      code: 'forbidden',
      text: false,
      wrong: false,
    });
  } finally {
    client.remove();
  }
});

function statusOf({ responses }: Operation, code: string): string | undefined {
  return Object.keys(responses).find(
    (status) => code in (responses[status]?.content?.['application/json']?.examples ?? {}),
  );
}
