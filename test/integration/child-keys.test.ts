// What a child key learns and changes. An account has a tree of keys, each with a call, a label and limits that are nowhere else. One
// key in the middle asks every operation of the API, the tools and the pages: no answer may contain anything of the keys above and beside
// it, of what the account sells, or of its sums. The key without a parent sees all of it, which proves that the search can find it.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { authorization, type Key, Marketplace, startService, type TestService } from './marketplace.ts';
import { agent, REVISIONS } from './mcp-agent.ts';

type Operation = {
  readonly parameters: readonly { readonly name: string; readonly in: string }[];
  readonly security: readonly object[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly example?: unknown }>> };
  readonly responses: Readonly<Record<string, { readonly content?: object }>>;
};
type Document = { readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>> };
type Asked = {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly accept: string;
  readonly body: unknown;
  readonly isPublic: boolean;
};
type Member = Key & { readonly name: string; readonly usageId: string };

/** The routes that need a key, and answer a child key. */
const FOR_CHILDREN = [
  'DELETE /api/v1/keys/{key_id}',
  'GET /api/v1/balance/me',
  'GET /api/v1/keys',
  'GET /api/v1/keys/me',
  'GET /api/v1/usage',
  'GET /api/v1/usage/me',
  'GET /api/v1/usage/{usage_id}',
  'PATCH /api/v1/keys/{key_id}',
  'POST /api/v1/keys/{key_id}/rotate',
  'POST /api/v1/session',
];
/** Where the ids of the asker's sibling are among those of all keys. */
const SIBLING = 4;
const PAGES = ['/', '/docs', '/llms.txt', '/console', '/console/buyer', '/services'];

let market: Marketplace;
let service: TestService;
let document: Document;
/** Priced by use, so that each call costs what it asks for. Its provider has nothing to do with the account. */
let proxyPath: string;

beforeAll(async () => {
  // The walk is longer than a minute's requests.
  market = await Marketplace.start({ ANONYMOUS_RATE_LIMIT: '100000', MAX_RATE_LIMIT: '10000' });
  service = await startService((request, response) => {
    const charge = new URL(request.url ?? '', 'http://service').searchParams.get('charge') ?? '0';
    response.setHeader('X-ACF-Charge', charge);
    response.end('{}');
  });
  document = await market.json<Document>('/api/v1/openapi.json');
  proxyPath = await market.service({ endpoint: service.url, price: 0.001, max_price: 5 });
});
afterAll(async () => {
  await market?.stop();
  await service?.close();
});

/** Another key: without `role` in the body, one below `by`. */
const child = (by: Key, body: object): Promise<Key> => market.json('/api/v1/keys', { key: by, method: 'POST', body });

/** Every operation for each value that its path may name, those that may end a key or a listing last. */
function requests(ids: Readonly<Record<string, readonly string[]>>): Asked[] {
  const made = Object.entries(document.paths).flatMap(([template, operations]) =>
    Object.entries(operations).flatMap(([lower, { parameters, security, requestBody, responses }]) => {
      const method = lower.toUpperCase();
      const bodies = bodiesOf(method, Object.values(requestBody?.content ?? {})[0]?.example);
      const paths = pathsOf(template, ids);
      // Lists that take the name of a key or a call are asked for those of others, too.
      const queries = ['', ...parameters.flatMap((one) => (one.in === 'query' ? queriesOf(one.name, ids) : []))];
      const accepts = Object.keys(responses['200']?.content ?? { 'application/json': {} });
      return paths.flatMap((path) =>
        queries.flatMap((query) =>
          accepts
            // A stream does not end by itself. It says the same as the JSON.
            .filter((accept) => accept !== 'text/event-stream')
            .flatMap((accept) =>
              bodies.map((body) => ({
                ...{ name: `${method} ${template}`, method, accept, body, path: path + query },
                isPublic: security.length === 0 || security.some((scheme) => Object.keys(scheme).length === 0),
              })),
            ),
        ),
      );
    }),
  );
  const turnOf = ({ method, path }: Asked): number =>
    method === 'GET' ? 0 : method === 'DELETE' || /\/(rotate|close)$/.test(path) ? 2 : 1;
  return made.sort((a, b) => turnOf(a) - turnOf(b));
}

/** A change is asked for whole, and each part of it alone: one that is refused must not stand for the others. */
function bodiesOf(method: string, example: unknown): unknown[] {
  if (method !== 'PATCH') return [example];
  return [example, ...Object.entries(example as object).map(([name, value]) => ({ [name]: value }))];
}

/** The paths of a template, for each value that its parameters may have. */
function pathsOf(template: string, ids: Readonly<Record<string, readonly string[]>>): string[] {
  const [place, parameter = ''] = /\{(\w+)\}/.exec(template) ?? [];
  if (place === undefined) return [template];
  const values = ids[template.includes('/accounts/{id}') ? 'account_id' : parameter];
  if (values === undefined) throw new Error(`${template}: no value for ${parameter}`);
  return values.flatMap((value) => pathsOf(template.replace(place, value), ids));
}

function queriesOf(name: string, ids: Readonly<Record<string, readonly string[]>>): string[] {
  if (name === 'mine') return ['?mine=true'];
  if (name === 'key_id') return (ids.key_id ?? []).map((id) => `?key_id=${id}`);
  if (name !== 'cursor') return [];
  // That of the key above is no different: every page behind a cursor is made alike.
  return [ids.key_id, ids.usage_id].map((of) => `?cursor=${of?.[SIBLING]}`);
}

describe.each(['buyer', 'provider'] as const)('a child key of a %s account', (role) => {
  /** All keys by name. Those of the asker's own tree are `asker` and `below`. */
  let keys: Readonly<Record<'root' | 'beside' | 'uncle' | 'parent' | 'sibling' | 'nephew' | 'asker' | 'below', Member>>;
  /** What no answer to `asker` may have, and what it is. */
  const secrets = new Map<string, string>();
  let ids: Readonly<Record<string, readonly string[]>>;
  let number = 0;

  /** Amounts that are nowhere else; they do not end in zero. */
  const amount = (whole: number): number => whole + (120_001 + (role === 'buyer' ? 0 : 5_000) + 10 * number) / 1e6;

  async function call(key: Key, name: string): Promise<Member> {
    const charge = amount(0);
    const path = `${proxyPath}/path-of-${role}-${name}`;
    const response = await market.request(`${path}?charge=${charge}`, { key });
    expect([name, response.status, response.headers.get('x-acf-amount')]).toEqual([name, 200, String(charge)]);
    const usageId = response.headers.get('x-acf-usage-id') as string;
    secrets.set(usageId, `call of ${name}`).set(`path-of-${role}-${name}`, `path of ${name}`);
    secrets.set(String(charge), `amount of ${name}`).set(key.key_id, `key ${name}`);
    return { ...key, name, usageId };
  }

  /** @param depth  how many keys are above it: none of its limits exceeds theirs */
  async function member(by: Key, name: string, depth: number): Promise<Member> {
    number++;
    const [label, budget, max_price] = [`label-of-${role}-${name}`, amount(9 - depth), amount(4 - depth)];
    const own = name === 'asker' ? { amount: 3, period: 'day' } : { amount: budget, period: 'month' };
    const key = await child(by, { label, budget: own, max_price });
    secrets.set(label, `label of ${name}`).set(String(max_price), `max_price of ${name}`);
    if (name !== 'asker') secrets.set(String(budget), `budget of ${name}`);
    return call({ ...key, account_id: by.account_id }, name);
  }

  beforeAll(async () => {
    const root = role === 'buyer' ? await market.buyer(100) : await market.anotherProvider();
    if (role === 'provider') await market.credit(root, 100, 'of a provider');
    // A provider's key calls only its own listings, so a buyer's key stands for it where there are calls.
    // By an operator: `GET /keys/me` tells keys without a parent of it.
    const { account_id } = root;
    const other = role === 'buyer' ? 'buyer' : 'admin';
    const beside = await child(market.admin, { role: other, account_id, label: `label-of-${role}-beside` });
    secrets.set(`label-of-${role}-beside`, 'label of beside');
    const patch = { key: market.admin, method: 'PATCH', body: { rate_limit: 10_000, label: `label-of-${role}-root` } };
    await market.json(`/api/v1/keys/${root.key_id}`, patch);
    secrets.set(`label-of-${role}-root`, 'label of the root');
    number = 50;
    const rootMember = role === 'buyer' ? await call(root, 'root') : { ...root, name: 'root', usageId: beside.key_id };
    secrets.set(root.key_id, 'key root');
    number = 60;
    const besideMember = await call(beside, 'beside');
    number = 0;
    const [uncle, parent] = [await member(root, 'uncle', 1), await member(root, 'parent', 1)];
    const [sibling, asker] = [await member(parent, 'sibling', 2), await member(parent, 'asker', 2)];
    const [nephew, below] = [await member(sibling, 'nephew', 3), await member(asker, 'below', 3)];
    keys = { root: rootMember, beside: besideMember, uncle, parent, sibling, nephew, asker, below };
    const own = [asker, below].flatMap(({ key_id, name, usageId }) => [key_id, usageId, `-of-${role}-${name}`]);
    for (const [secret, what] of secrets)
      if (own.some((part) => secret.includes(part)) || /of (asker|below)$/.test(what)) secrets.delete(secret);
    // A key is told which one is above it.
    secrets.delete(parent.key_id);
    await market.settled();
    const { total_spent } = await market.json<{ total_spent: number }>('/api/v1/usage', { key: root });
    secrets.set(String(total_spent), 'what the account has spent');
    if (role === 'buyer') secrets.set(String((await market.balance(root)).balance), 'what the account has left');
    const services = [proxyPath.slice(proxyPath.lastIndexOf('/') + 1)];
    const calls = Object.values(keys).map(({ usageId }) => usageId);
    if (role === 'provider') {
      const { id, usageId } = await sell(root);
      services.push(id);
      calls.push(usageId);
    }
    ids = {
      ...{ id: services, service_id: services, usage_id: calls, file: ['x'], account_id: [root.account_id] },
      key_id: Object.values(keys).map(({ key_id }) => key_id),
      ...{ buyer: ['0'.repeat(32)], path: ['x'] },
    };
  });

  /** Lists a service of the account, which somebody else calls. */
  async function sell(root: Key): Promise<{ id: string; usageId: string }> {
    const body = { endpoint: `${service.url}/secret-endpoint`, health_path: '/secret-health', name: 'sold' };
    const listing = { ...body, description: '', category: 'test', price: 0.654321 };
    const { id } = await market.json<{ id: string }>('/api/v1/services', { key: root, method: 'POST', body: listing });
    const sold = await market.request(`/api/v1/proxy/${id}/secret-sale`, { key: await market.buyer(1) });
    const usageId = sold.headers.get('x-acf-usage-id') as string;
    await market.settled();
    for (const secret of ['secret-endpoint', 'secret-health', 'secret-sale']) secrets.set(secret, secret);
    secrets.set(usageId, 'sold call');
    return { id, usageId };
  }

  const found = (text: string): string[] => [...secrets].filter(([it]) => text.includes(it)).map(([, what]) => what);

  async function ask(
    key: Key,
    { method, path, accept, body }: Asked,
  ): Promise<{ ok: boolean; status: number; text: string }> {
    // As a page of the gateway: sessions are for no other.
    const own = { Accept: accept, 'Content-Type': 'application/json', Origin: market.baseUrl };
    const headers = { ...own, Authorization: authorization(key) };
    const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
    const response = await fetch(market.baseUrl + path, init);
    const text = [...response.headers.values(), await response.text()].join('\n');
    return { ok: response.ok, status: response.status, text };
  }

  /** Everything that a child key has no business with, as it is stored. */
  const rows = (): Promise<unknown> => market.stores.sql`
    SELECT (SELECT json_agg(k ORDER BY key_id) FROM api_keys k
            WHERE account_id = ${keys.root.account_id} AND key_id <> ${keys.asker.key_id}
              AND NOT ancestors @> ARRAY[${keys.asker.key_id}::text]) AS keys,
           (SELECT json_agg(a) FROM accounts a WHERE id = ${keys.root.account_id}) AS accounts,
           (SELECT json_agg(s ORDER BY id) FROM services s) AS services,
           (SELECT json_agg(p ORDER BY account_id) FROM profiles p) AS profiles`;

  it('sees and changes only itself and the keys below it, at every route', async () => {
    const { root, asker } = keys;
    const before = await rows();
    // What is searched for can be found: the key without a parent sees each of it.
    const seen = new Set<string>();
    for (const asked of requests(ids).filter(({ method, path }) => method === 'GET' && !path.includes('cursor='))) {
      for (const what of found((await ask(root, asked)).text)) seen.add(what);
    }
    expect([...secrets.values()].filter((what) => !seen.has(what))).toEqual([]);

    const [failed, leaks]: [string[], string[]] = [[], []];
    const answers = new Set<string>();
    for (const asked of requests(ids)) {
      const { ok, status, text } = await ask(asker, asked);
      if (status === 429 || status >= 500) failed.push(`${asked.method} ${asked.path}: ${text}`);
      if (ok && !asked.isPublic) answers.add(asked.name);
      // What was asked for may be named again.
      for (const what of found(text.replaceAll(asked.path, ''))) leaks.push(`${what} at ${asked.method} ${asked.path}`);
    }
    expect(failed).toEqual([]);
    expect(leaks).toEqual([]);
    expect(await rows()).toEqual(before);
    // Routes answer child keys only on purpose: anyone who adds one must decide what it shows them.
    expect([...answers].filter((name) => !name.includes('/proxy/')).sort()).toEqual(FOR_CHILDREN);
  });

  it('has tools and pages that show no more than the routes do', async () => {
    const { asker } = keys;
    const tools = await agent(REVISIONS[0], market.baseUrl, asker);
    const [service_id] = ids.id ?? [];
    const args = { discover_services: {}, get_service: { service_id }, get_usage: {}, get_balance: {} };
    const call_service = { service_id, method: 'GET', path: '/x' };
    for (const [name, arg] of Object.entries({ ...args, call_service })) {
      const answer = await tools.call(name, arg);
      expect([name, answer.isError, found(JSON.stringify(answer))]).toEqual([name, false, []]);
    }
    await tools.close();
    for (const path of [...PAGES, `/services/${service_id}`]) {
      const asked = { name: path, method: 'GET', path, accept: 'text/html', body: undefined, isPublic: true };
      expect([path, found((await ask(asker, asked)).text)]).toEqual([path, []]);
    }
  });
});
