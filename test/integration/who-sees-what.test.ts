// Who sees which column. Every column of a call, of its parties' keys and accounts, and of the listing has a unique value. Everybody asks
// every operation of the API, and the raw responses are searched for these values. The tables of fields say who may see which; nobody may
// see a column that none of them has. A new column is included automatically.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { CALL } from '../../src/accounts/call-fields.ts';
import { LISTING } from '../../src/catalog/listing-fields.ts';
import { KEY } from '../../src/keys/key-fields.ts';
import type { Audience, Fields } from '../../src/platform/fields.ts';
import { until } from '../support/wait.ts';
import { authorization, type Key, Marketplace, startService, type TestService } from './marketplace.ts';

type Actor = 'stranger' | 'buyer' | 'another buyer' | 'provider' | 'another provider' | 'admin';
const EVERYBODY: Actor[] = ['stranger', 'another buyer', 'another provider', 'provider', 'buyer', 'admin'];

/** A row of the scene: whose it is, who is the other party, and who may see it at all. */
type Scene = {
  readonly table: string;
  readonly where: string;
  readonly owner: Actor;
  readonly counterpart?: Actor;
  readonly anyone: readonly Actor[];
  readonly fields: Fields;
  /** Columns whose values are a few words or numbers, by a constraint of the table or because the scene needs theirs. */
  readonly unmarked: readonly string[];
};
type Marker = { readonly columns: string[]; readonly seenBy: Set<Actor>; readonly mayBeSeenBy: Set<Actor> };

/** The next number for a type. It is in no text by chance. */
const NUMBERS: Record<string, number> = {
  bigint: 8_123_456_789_123,
  integer: 1_812_345_678,
  smallint: 31_007,
};
/** A refund: nobody sees the numbers of its journal row or the sums before it. Its fee is for the two who share it. */
const REFUND = {
  amount: { ...CALL.refunded, column: 'amount' },
  fee: { ...CALL.fee, column: 'fee' },
  reason: { ...CALL.path, column: 'reason' },
  reference: { ...CALL.path, column: 'reference' },
  created_at: { ...CALL.created_at, column: 'created_at' },
  // The same values as in the row of the call.
  usage_id: CALL.usage_id,
  account_id: CALL.account_id,
  provider_id: CALL.provider_id,
  service_id: CALL.service_id,
  key_id: CALL.key_id,
  call_at: { ...CALL.created_at, column: 'call_at' },
} as const satisfies Fields;
const SECRET = 'a-header-value-that-nobody-sees';

let market: Marketplace;
let fresh: Awaited<ReturnType<Marketplace['anotherGateway']>>;
let service: TestService;
let keys: Readonly<Record<Actor, Key | undefined>>;
let scenes: readonly Scene[];
/** The values that stand for each parameter of a path. */
let ids: Readonly<Record<string, readonly string[]>>;
const markers = new Map<string, Marker>();

/** Who may see a column: the audiences of all fields whose SQL names it. */
function viewers({ fields, owner, counterpart, anyone }: Scene, column: string): Actor[] {
  const by: Readonly<Record<Audience, readonly Actor[]>> = {
    anyone,
    owner: [owner, 'admin'],
    admin: ['admin'],
    counterpart: counterpart === undefined ? ['admin'] : [counterpart, 'admin'],
  };
  const uses = new RegExp(`\\b${column}\\b`);
  return Object.values(fields).flatMap((field) => (uses.test(field.column ?? '') ? by[field.audience] : []));
}

/**
 * How a value is written in responses; null if it cannot be recognised there. A number is compared without its point, as dollars have six
 * decimals more than micro-dollars. JSON drops zeros at the end of decimals, so a number that ends in zero cannot be recognised.
 */
function written(value: unknown): string | null {
  if (value instanceof Date) return value.toISOString();
  if (typeof value === 'number' || typeof value === 'bigint') {
    return Number(value) > 30_000 && Number(value) % 10 !== 0 ? String(value) : null;
  }
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value);
  return /marker-[\w-]+/.exec(text)?.[0] ?? (text.length >= 12 ? text : null);
}

const numbersIn = (text: string): Set<string> =>
  new Set(
    [...text.matchAll(/(?<![\w.-])-?(\d+(?:\.\d+)?)(?![\w-])/g)].map(([, digits = '']) =>
      digits.replace('.', '').replace(/^0+/, ''),
    ),
  );

/** Gives each column of the row a value of its own, where its type and its constraints permit that, and remembers all of them. */
async function mark(scene: Scene): Promise<void> {
  const { sql } = market.stores;
  const { table, where, unmarked } = scene;
  const columns = await sql<{ name: string; type: string }[]>`
    SELECT column_name AS name, data_type AS type FROM information_schema.columns
    WHERE table_schema = 'public' AND table_name = ${table} ORDER BY ordinal_position`;
  expect(columns.length).toBeGreaterThan(0);
  // Buyers see since when a provider has its account. They read that from the id, which may have the same millisecond.
  const isOpening = table === 'accounts' || table === 'api_keys';
  if (isOpening) await sql.unsafe(`UPDATE ${table} SET created_at = created_at - interval '1 second' WHERE ${where}`);
  const without: string[] = [];
  for (const { name, type } of columns) {
    const read = async (): Promise<unknown> =>
      (await sql.unsafe<{ value: unknown }>(`SELECT ${name} AS value FROM ${table} WHERE ${where}`))[0]?.value;
    const number = NUMBERS[type];
    if (number !== undefined) NUMBERS[type] = number - 10;
    const planted = type === 'text' ? `'marker-${table}-${name}-${scenes.indexOf(scene)}'` : (number ?? null);
    // On a busy machine the call may take 30 ms and more: a number that the public statistics of its service have, too.
    const isTime = name === 'latency_us';
    if (!unmarked.includes(name) && planted !== null && (isTime || written(await read()) === null)) {
      await sql.unsafe(`UPDATE ${table} SET ${name} = ${planted} WHERE ${where}`);
    }
    const value = type === 'date' ? null : written(await read());
    if (value === null) without.push(name);
    else {
      const marker = markers.get(value) ?? { columns: [], seenBy: new Set(), mayBeSeenBy: new Set() };
      marker.columns.push(`${table}.${name}`);
      for (const actor of viewers(scene, name)) marker.mayBeSeenBy.add(actor);
      markers.set(value, marker);
    }
  }
  expect([table, without]).toEqual([table, unmarked]);
}

beforeAll(async () => {
  const SECRETS_KEY = Buffer.alloc(32, 'a key').toString('base64');
  market = await Marketplace.start({ SECRETS_KEY, PRICE_NOTICE_SECONDS: '3600' });
  service = await startService((_, response) => response.end('{}'));
  const { provider } = market;
  const owned = { key: provider, method: 'POST' } as const;
  const { id } = await market.json<{ id: string }>('/api/v1/services', {
    ...owned,
    body: {
      name: 'marker-services-name',
      description: 'marker-services-description',
      category: 'marker-services-category',
      endpoint: `${service.url}/marker-services-endpoint`,
      docs_url: 'https://docs.example/marker-services-docs',
      health_path: '/marker-services-health',
      price: 0.001,
      signed: true,
      only_operations: true,
      upstream_headers: { 'x-marker-header': SECRET },
      upstream_query: { 'marker-parameter': SECRET },
      operations: [{ method: 'GET', path: '/{any}', summary: 'marker-services-operations' }],
    },
  });
  await market.json('/api/v1/accounts/me', { key: provider, method: 'PATCH', body: { display_name: 'x' } });
  const buyer = await market.buyer(1);
  const call = await market.request(`/api/v1/proxy/${id}/marker-call`, {
    key: buyer,
  });
  const usageId = call.headers.get('X-ACF-Usage-Id') as string;
  expect([call.status, usageId]).toEqual([200, expect.any(String)]);
  await market.settled();
  await market.stores.sql`UPDATE calls SET budgets = 'acf_0123456789abcdefghijkl.20783' WHERE usage_id = ${usageId}`;
  await market.stores.sql`INSERT INTO call_replays SELECT day, usage_id, 1 FROM calls WHERE usage_id = ${usageId}`;
  const refund = { amount: 0.0004, reason: 'marker-refunds-reason', reference: 'marker-refunds-reference' };
  await market.json(`/api/v1/usage/${usageId}/refund`, { ...owned, body: refund });
  // What calls cost from then on is announced.
  const dearer = [{ method: 'GET', path: '/marker-next', summary: 'marker-services-next-operations', price: 0.002 }];
  await market.json(`/api/v1/services/${id}`, {
    key: provider,
    method: 'PATCH',
    body: { price: 0.003, operations: dearer },
  });
  for (const key of [buyer, provider]) {
    await market.json(`/api/v1/keys/${key.key_id}/rotate`, { key, method: 'POST', body: { overlap_seconds: 3600 } });
  }
  keys = {
    stranger: undefined,
    buyer,
    provider,
    admin: market.admin,
    'another buyer': await market.buyer(1),
    'another provider': await market.anotherProvider(),
  };
  ids = {
    id: [id],
    service_id: [id],
    usage_id: [usageId],
    key_id: [buyer.key_id, provider.key_id],
    file: ['x'],
    account_id: [buyer.account_id, provider.account_id],
  };
  const account = {
    fields: { owner_id: KEY.owner_id, suspension_reason: KEY.suspension_reason },
    unmarked: ['status', 'closed_at', 'summed_from'],
  };
  const ofChild = ['ancestors', 'budget_amount', 'budget_period', 'budget_number', 'services', 'expires_at'];
  const key = { fields: KEY, unmarked: ['role', 'rate_limit', 'status', 'by_operator', ...ofChild] };
  const of = (table: string, owner: 'buyer' | 'provider', column: string, value: string) => ({
    table,
    owner,
    anyone: [owner, 'admin'] as const,
    where: `${column} = '${value}'`,
  });
  scenes = [
    {
      table: 'calls',
      where: `usage_id = '${usageId}'`,
      owner: 'buyer',
      counterpart: 'provider',
      fields: CALL,
      anyone: ['buyer', 'provider', 'admin'],
      unmarked: ['day', 'free_tier', 'clamped', 'at_cap'],
    },
    {
      table: 'refunds',
      where: `usage_id = '${usageId}'`,
      owner: 'buyer',
      counterpart: 'provider',
      fields: REFUND,
      anyone: ['buyer', 'provider', 'admin'],
      unmarked: ['credit_seq', 'succeeded', 'carried', 'whole'],
    },
    {
      table: 'call_replays',
      where: `usage_id = '${usageId}'`,
      owner: 'buyer',
      counterpart: 'provider',
      fields: { usage_id: CALL.usage_id, replays: CALL.replays },
      anyone: ['buyer', 'provider', 'admin'],
      unmarked: ['day'],
    },
    { ...of('accounts', 'buyer', 'id', buyer.account_id), ...account },
    { ...of('accounts', 'provider', 'id', provider.account_id), ...account },
    { ...of('api_keys', 'buyer', 'key_id', buyer.key_id), ...key },
    { ...of('api_keys', 'provider', 'key_id', provider.key_id), ...key },
    {
      table: 'profiles',
      where: `account_id = '${provider.account_id}'`,
      owner: 'provider',
      anyone: EVERYBODY,
      fields: LISTING,
      unmarked: [],
    },
    {
      table: 'services',
      where: `id = '${id}'`,
      owner: 'provider',
      anyone: EVERYBODY,
      fields: LISTING,
      unmarked: [
        ...['status', 'protocol', 'timeout_seconds', 'idle_seconds', 'max_price', 'only_operations'],
        ...['next_max_price', 'next_only_operations'],
      ],
    },
  ];
  for (const scene of scenes) await mark(scene);
  // It has nothing in memory of how these rows were before.
  fresh = await market.anotherGateway();
});
afterAll(async () => {
  await fresh.stop();
  await market.stop();
  await service.close();
});

type Content = { readonly content?: Readonly<Record<string, { readonly example?: unknown }>> };
type Operation = {
  readonly parameters: readonly { readonly name: string }[];
  readonly requestBody?: Content;
  readonly responses: Readonly<Record<string, Content>>;
};
type Document = { readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>> };
type Asked = { readonly method: string; readonly path: string; readonly accept: string; readonly body: unknown };

/** Every operation of the document, which is made of the routes, for each row. Those that may end a key, a listing or an account are last. */
function requests(document: Document): Asked[] {
  const made = Object.entries(document.paths).flatMap(([template, operations]) =>
    Object.entries(operations).flatMap(([method, { parameters, requestBody, responses }]) => {
      const body = Object.values(requestBody?.content ?? {})[0]?.example;
      // The list of own listings is the only one that needs a parameter.
      const query = parameters.some(({ name }) => name === 'mine') ? '?mine=true' : '';
      const [, name] = /\{(\w+)\}/.exec(template) ?? [];
      const values = name === undefined ? [''] : ids[/accounts/.test(template) ? 'account_id' : name];
      if (values === undefined) throw new Error(`${template}: no value for ${name}`);
      const types = Object.keys(responses['200']?.content ?? { 'application/json': {} });
      // A stream does not end by itself. It says the same as the JSON.
      const accepts = types.filter((type) => type !== 'text/event-stream');
      return values.flatMap((value) => {
        const path = template.replace(`{${name}}`, value).replace('{path}', 'x') + query;
        return accepts.map((accept) => ({ method: method.toUpperCase(), path, accept, body }));
      });
    }),
  );
  const ends = ({ method, path }: Asked): boolean =>
    method === 'DELETE' || /\/(rotate|close)$|admin\/accounts\//.test(path);
  const turnOf = (asked: Asked): number => (asked.method === 'GET' ? 0 : ends(asked) ? 2 : 1);
  return made.sort((a, b) => turnOf(a) - turnOf(b));
}

it('the API shows each column to its audience, and to nobody else', async () => {
  const document = await market.json<Document>('/api/v1/openapi.json');
  const wrong = new Set<string>();
  let answers = 0;
  for (const { method, path, accept, body } of requests(document)) {
    const ask = async (actor: Actor): Promise<void> => {
      const key = keys[actor];
      const headers: Record<string, string> = { Accept: accept, 'Content-Type': 'application/json' };
      if (key !== undefined) headers.Authorization = authorization(key);
      const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
      // A fast machine asks for more than the minute's requests: the bucket fills up again.
      const answered = async (): Promise<Response | null> => {
        const response = await fetch(fresh.baseUrl + path, init);
        return response.status === 429 ? null : response;
      };
      const response = await until(answered, 60_000);
      const text = [...response.headers.values(), await response.text()].join('\n');
      if (response.ok) answers++;
      const numbers = numbersIn(text);
      for (const [value, { columns, seenBy, mayBeSeenBy }] of markers) {
        if (/^\d+$/.test(value) ? !numbers.has(value) : !text.includes(value)) continue;
        seenBy.add(actor);
        if (!mayBeSeenBy.has(actor)) wrong.add(`${actor} sees ${columns} at ${method} ${path}`);
      }
      expect(text).not.toContain(SECRET);
    };
    // One after the other, so that what one of them ends is there for those before.
    if (method === 'DELETE') for (const actor of EVERYBODY) await ask(actor);
    else await Promise.all(EVERYBODY.map(ask));
  }
  expect(answers).toBeGreaterThan(100);
  expect([...wrong]).toEqual([]);
  for (const { columns, seenBy, mayBeSeenBy } of markers.values()) {
    expect([columns, [...seenBy].sort()]).toEqual([columns, [...mayBeSeenBy].sort()]);
  }
});
