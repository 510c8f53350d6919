// Sessions as bytes: what the gateway sets, takes and refuses. What browsers make of it: test/web/sessions.test.ts.

import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newKeyId, newSecret } from '../../src/keys/credentials.ts';
import { emptyBucket } from '../support/empty-bucket.ts';
import { until } from '../support/wait.ts';
import { authorization, echo, type Key, Marketplace, startService, type TestService } from './marketplace.ts';

type Shown = { readonly id: string; readonly key_id: string; readonly role: string; readonly is_here: boolean };
type Body = {
  readonly sessions: Shown[];
  readonly bearer: string;
  readonly expires_at: string;
  readonly key_id: string;
  readonly account_status: string;
  readonly headers: readonly string[];
};
type Answer = { readonly status: number; readonly headers: IncomingHttpHeaders; readonly body: Body };
type Ask = { readonly key?: Key; readonly headers?: Record<string, string>; readonly body?: unknown };

let market: Marketplace;
let service: TestService;

beforeAll(async () => {
  market = await Marketplace.start({ MAX_RATE_LIMIT: '10000' });
  service = await startService(echo);
});
afterAll(async () => {
  await market.stop();
  await service.close();
});

/** Sends exactly these headers, `Host` and `Origin` too, which `fetch` would not. */
function send(
  method: string,
  path: string,
  { key, headers = {}, body }: Ask = {},
  at = market.baseUrl,
): Promise<Answer> {
  const text = body === undefined ? '' : JSON.stringify(body);
  const all = {
    ...(key === undefined ? {} : { Authorization: authorization(key) }),
    ...(text === '' ? {} : { 'Content-Type': 'application/json', 'Content-Length': String(text.length) }),
    ...headers,
  };
  return new Promise((resolve, reject) => {
    const sent = httpRequest(at + path, { method, headers: all, agent: false }, async (response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk as Buffer);
      const received = Buffer.concat(chunks).toString();
      const isJson = response.headers['content-type']?.startsWith('application/json');
      resolve({
        status: response.statusCode ?? 0,
        headers: response.headers,
        body: isJson ? JSON.parse(received) : received,
      });
    });
    sent.on('error', reject);
    sent.end(text);
  });
}

/** A browser with a page of the gateway: it keeps the cookie, and sends it where the cookie's path says. */
class Person {
  readonly headers: Record<string, string>;
  cookie = '';
  readonly #at: string;

  constructor({
    at = market.baseUrl,
    page = newSecret(),
    origin = at,
  }: { readonly at?: string; readonly page?: string | null; readonly origin?: string } = {}) {
    this.#at = at;
    this.headers = { Origin: origin, ...(page === null ? {} : { 'X-ACF-Page-Secret': page }) };
  }

  async ask(method: string, path = '', { headers, ...more }: Ask = {}): Promise<Answer> {
    const cookie: Record<string, string> = this.cookie === '' ? {} : { Cookie: this.cookie };
    const answer = await send(
      method,
      `/api/v1/session${path}`,
      { ...more, headers: { ...this.headers, ...cookie, ...headers } },
      this.#at,
    );
    const [set] = answer.headers['set-cookie'] ?? [];
    if (set !== undefined) this.cookie = set.includes('Max-Age=0;') ? '' : (set.split(';')[0] ?? '');
    return answer;
  }

  async signIn(key: Key): Promise<Shown> {
    const answer = await this.ask('POST', '', { key });
    expect([answer.status, answer.body]).toEqual([201, expect.objectContaining({ key_id: key.key_id })]);
    return answer.body as unknown as Shown;
  }

  async bearer(id?: string): Promise<string> {
    const answer = await this.ask('POST', '/token', id === undefined ? {} : { body: { id } });
    expect(answer.status).toBe(200);
    return answer.body.bearer;
  }

  async list(query = ''): Promise<Shown[]> {
    return (await this.ask('GET', query)).body.sessions;
  }
}

const whoIs = async (bearer: string, at = market.baseUrl): Promise<Answer> =>
  send('GET', '/api/v1/keys/me', { headers: { Authorization: `Bearer ${bearer}` } }, at);
const statusOf = async (bearer: string): Promise<number> => (await whoIs(bearer)).status;

describe('signing in', () => {
  it('sets a cookie that is host-only, HttpOnly, strict and for /api/v1/session only, and its bearer acts as the key', async () => {
    const key = await market.buyer(1);
    const person = new Person();
    const answer = await person.ask('POST', '', { key });
    const port = new URL(market.baseUrl).port;
    expect(answer.headers['set-cookie']).toEqual([
      expect.stringMatching(
        new RegExp(
          `^tollgate-session-${port}=acf_[0-9A-Za-z]{22}:sk_[0-9A-Za-z]{49}; Path=/api/v1/session; Max-Age=12095\\d\\d; HttpOnly; SameSite=Strict$`,
        ),
      ),
    ]);
    expect(answer.headers['cache-control']).toBe('no-store');
    const bearer = await person.bearer();
    expect(bearer).toMatch(new RegExp(`^${key.key_id}:sk_[0-9A-Za-z]{49}$`));
    expect(bearer).not.toBe(`${key.key_id}:${key.secret}`);
    expect((await whoIs(bearer)).body).toMatchObject({ key_id: key.key_id, account_id: key.account_id, role: 'buyer' });
    expect(await person.list()).toMatchObject([
      { key_id: key.key_id, account_id: key.account_id, role: 'buyer', is_here: true },
    ]);
  });

  it('sets a Secure __Secure- cookie on https, where a cookie without that prefix is ignored', async () => {
    const key = await market.buyer(0);
    const host = 'gateway.example';
    const person = new Person({ origin: `https://${host}` });
    const answer = await person.ask('POST', '', { key, headers: { Host: host } });
    expect(answer.headers['set-cookie']?.[0]).toMatch(
      /^__Secure-tollgate-session=.*; HttpOnly; SameSite=Strict; Secure$/,
    );
    expect((await person.ask('POST', '/token', { headers: { Host: host } })).status).toBe(200);
    person.cookie = person.cookie.replace('__Secure-', '');
    expect((await person.ask('POST', '/token', { headers: { Host: host } })).status).toBe(401);
  });

  it('with the key of an admin is recorded in the audit', async () => {
    const { id } = await new Person().signIn(market.admin);
    const { acts } = await market.json<{ acts: Record<string, unknown>[] }>('/api/v1/admin/audit?action=key.sign_in', {
      key: market.admin,
    });
    const of = { actor: market.admin.key_id, subject_id: market.admin.key_id, after: { session: id }, outcome: 'done' };
    expect(acts[0]).toMatchObject({ action: 'key.sign_in', subject_type: 'key', before: null, ...of });
  });

  it('with the key of an admin lasts 12 hours', async () => {
    const person = new Person();
    const { headers } = await person.ask('POST', '', { key: market.admin });
    expect(headers['set-cookie']?.[0]).toMatch(/Max-Age=(43200|431\d\d);/);
  });

  it('stores the secrets as hashes: neither cookie, bearer nor page secret is in Postgres', async () => {
    const person = new Person();
    await person.signIn(await market.buyer(0));
    const bearer = await person.bearer();
    const [row] = await market.stores.sql<{ text: string }[]>`SELECT json_agg(s)::text AS text FROM sessions s`;
    for (const secret of [person.cookie.split(':')[1], bearer.split(':')[1], person.headers['X-ACF-Page-Secret']]) {
      expect(secret).toMatch(/^sk_/);
      expect(row?.text).not.toContain(secret);
    }
    expect(market.log.lines.join('')).not.toContain(person.cookie.split('=')[1]);
  });

  it('with another account adds it under a new cookie; the former cookie is worthless a minute after the new one was seen', async () => {
    const [first, second] = [await market.buyer(0), await market.anotherProvider()];
    const person = new Person();
    const { id } = await person.signIn(first);
    const before = person.cookie;
    await person.signIn(second);
    expect(person.cookie).not.toBe(before);
    expect((await person.list()).map((one) => one.key_id)).toEqual([second.key_id, first.key_id]);
    expect((await whoIs(await person.bearer(id))).body.key_id).toBe(first.key_id);
    // A request that another tab has sent meanwhile.
    expect((await person.ask('GET', '', { headers: { Cookie: before } })).status).toBe(200);
    await market.stores.sql`
      UPDATE sessions SET previous_until = now() WHERE key_id IN (${first.key_id}, ${second.key_id}) AND previous_until > now()`;
    expect((await person.ask('GET', '', { headers: { Cookie: before } })).status).toBe(401);
    expect((await person.ask('POST', '/token', { headers: { Cookie: before } })).status).toBe(401);
  });

  it('with the former cookie does not prolong that cookie, however often it is repeated', async () => {
    const keys = [await market.buyer(0), await market.buyer(0), await market.buyer(0)] as const;
    const ids = keys.map(({ key_id }) => key_id);
    const until = async (): Promise<Date[]> => {
      const rows = await market.stores.sql<{ until: Date }[]>`
        SELECT DISTINCT date_trunc('milliseconds', previous_until) AS until FROM sessions WHERE key_id = ANY(${ids})`;
      return rows.map((row) => row.until);
    };
    const person = new Person();
    await person.signIn(keys[0]);
    const thief = Object.assign(new Person(), person);
    await person.signIn(keys[1]);
    await person.bearer();
    const first = await until();
    expect(first).toEqual([expect.any(Date)]);
    for (let i = 0; i < 2; i++) {
      await thief.signIn(keys[2]);
      expect(thief.cookie).not.toBe(person.cookie);
      await person.bearer();
    }
    expect(await until()).toEqual(first);
    await market.stores.sql`UPDATE sessions SET previous_until = now() WHERE key_id = ANY(${ids})`;
    expect((await thief.ask('GET')).status).toBe(401);
    expect((await thief.ask('POST', '/token')).status).toBe(401);
    expect((await person.ask('GET')).status).toBe(200);
  });

  it('whose answer is lost signs nobody out, and leaves no session that nobody can use', async () => {
    const [first, second] = [await market.buyer(0), await market.buyer(0)];
    const person = new Person();
    const { id } = await person.signIn(first);
    await person.bearer();
    const before = person.cookie;
    const lost = await person.signIn(second);
    person.cookie = before;
    expect((await person.ask('POST', '/token', { body: { id } })).status).toBe(200);
    expect(new Set((await person.list()).map((one) => one.id))).toEqual(new Set([id, lost.id]));
    await market.stores
      .sql`UPDATE sessions SET created_at = now() - interval '1 minute' WHERE key_id IN (${first.key_id}, ${second.key_id})`;
    expect((await person.list('?everywhere=true')).map((one) => one.id)).toEqual([id]);
    expect((await person.ask('POST', '/token', { body: { id: lost.id } })).status).toBe(401);
    // Another try.
    const again = await person.signIn(second);
    for (const one of [id, again.id])
      expect((await person.ask('POST', '/token', { body: { id: one } })).status).toBe(200);
  });

  it('at the same time as another sign-in ends no session, whichever cookie the browser has in the end', async () => {
    for (const winner of [0, 1]) {
      const keys = await Promise.all([market.buyer(0), market.buyer(0), market.buyer(0)]);
      const person = new Person();
      await person.signIn(keys[0] as Key);
      await person.bearer();
      const twins = [new Person(), new Person()].map((twin) => Object.assign(twin, person));
      await Promise.all(twins.map((twin, i) => twin.signIn(keys[i + 1] as Key)));
      person.cookie = (twins[winner] as Person).cookie;
      const ids = (await person.list()).map(({ key_id }) => key_id);
      expect(new Set(ids)).toEqual(new Set(keys.map(({ key_id }) => key_id)));
      for (const { id } of await person.list()) await person.bearer(id);
      await market.stores
        .sql`UPDATE sessions SET previous_until = now() WHERE key_id = ANY(${ids}) AND previous_until > now()`;
      expect(await person.list()).toHaveLength(3);
    }
  });

  it('with the same key again replaces its session', async () => {
    const key = await market.buyer(0);
    const person = new Person();
    await person.signIn(key);
    const bearer = await person.bearer();
    const { id } = await person.signIn(key);
    expect((await person.list()).map((one) => one.id)).toEqual([id]);
    expect(await statusOf(bearer)).toBe(401);
  });

  it('with a ninth account ends the session that was used least recently', async () => {
    const person = new Person();
    const ids: string[] = [];
    for (let n = 0; n < 8; n++) ids.push((await person.signIn(await market.buyer(0))).id);
    // The first is used: now the second is the oldest.
    await person.bearer(ids[0]);
    const last = await person.signIn(await market.buyer(0));
    const left = (await person.list()).map(({ id }) => id);
    expect(new Set(left)).toEqual(new Set([ids[0], ...ids.slice(2), last.id]));
  });

  it('with a ninth account does not count a session that has already ended', async () => {
    const person = new Person();
    const keys: Key[] = [];
    for (let n = 0; n < 8; n++) keys.push(await market.buyer(0));
    const ids: string[] = [];
    for (const key of keys) ids.push((await person.signIn(key)).id);
    // Its row is the one that was used last, and is not removed yet.
    await market.stores.sql`UPDATE sessions SET expires_at = now() WHERE id = ${ids[7] as string}`;
    const last = await person.signIn(await market.buyer(0));
    const left = (await person.list()).map(({ id }) => id);
    expect(new Set(left)).toEqual(new Set([...ids.slice(0, 7), last.id]));
  });
});

describe('a bearer', () => {
  it('takes tokens of calls from the bucket of its key', async () => {
    const key = await market.buyer(0);
    await market.json(`/api/v1/keys/${key.key_id}`, { key: market.admin, method: 'PATCH', body: { rate_limit: 2 } });
    const path = await market.service({ endpoint: service.url });
    const person = new Person();
    await person.signIn(key);
    const headers = { Authorization: `Bearer ${await person.bearer()}` };
    const calls = [
      await send('GET', path, { key }),
      await send('GET', path, { headers }),
      await send('GET', path, { headers }),
    ];
    expect(calls.map(({ status }) => status)).toEqual([200, 200, 429]);
    expect(calls.map((call) => call.headers['x-ratelimit-remaining'])).toEqual(['1', '0', '0']);
  });

  it('takes tokens of other requests from one bucket that the key cannot use up, and that all of its sessions share', async () => {
    const key = await market.buyer(0);
    await market.json(`/api/v1/keys/${key.key_id}`, { key: market.admin, method: 'PATCH', body: { rate_limit: 2 } });
    const people = [new Person(), new Person()] as const;
    for (const person of people) await person.signIn(key);
    const [first, second] = await Promise.all(people.map((person) => person.bearer()));
    // The program with the key has used up what it may send and read.
    for (const path of ['/api/v1/keys/me', '/api/v1/discover']) {
      for (let n = 0; n < 2; n++) await send('GET', path, { key });
      expect((await send('GET', path, { key })).status).toBe(429);
    }
    const asked = [];
    for (const [path, bearer] of [
      ['/api/v1/keys/me', first],
      ['/api/v1/statement/me', second],
      ['/api/v1/keys/me', second],
    ] as const) {
      asked.push(await send('GET', path, { headers: { Authorization: `Bearer ${bearer}` } }));
    }
    expect(asked.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(asked.map(({ headers }) => headers['x-ratelimit-remaining'])).toEqual(['119', '118', '117']);
    const { redis, keys } = market.stores;
    await emptyBucket(redis, keys.person(keys.shardOf(key.account_id), key.key_id));
    expect(await statusOf(first as string)).toBe(429);
  });

  it('is the same for all tabs of a browser for half of its lifetime; then it is replaced, and both are valid', async () => {
    const person = new Person();
    const { id } = await person.signIn(await market.buyer(0));
    const first = await person.bearer();
    expect(await person.bearer()).toBe(first);
    await market.stores.sql`UPDATE sessions SET bearer_expires_at = now() + interval '7 minutes' WHERE id = ${id}`;
    const second = await person.bearer();
    expect(second).not.toBe(first);
    expect([await statusOf(first), await statusOf(second)]).toEqual([200, 200]);
  });

  it('expires', async () => {
    const person = new Person();
    const { id } = await person.signIn(await market.buyer(0));
    const bearer = await person.bearer();
    const { expires_at: at } = (await person.ask('POST', '/token')).body;
    expect(Date.parse(at) - Date.now()).toBeLessThanOrEqual(900_000);
    await market.stores.sql`UPDATE sessions SET bearer_expires_at = now() + interval '1 second' WHERE id = ${id}`;
    expect(await statusOf(bearer)).toBe(200);
    // This gateway has it in memory now, with the time when it expires.
    await until(async () => (await statusOf(bearer)) === 401);
    expect((await person.ask('POST', '/token')).status).toBe(200);
  });

  it('cannot sign in: a thief cannot turn its minutes into days', async () => {
    const person = new Person();
    await person.signIn(await market.buyer(0));
    const bearer = await person.bearer();
    for (const headers of [{ Authorization: `Bearer ${bearer}` }, { 'X-Api-Key': bearer }]) {
      const answer = await new Person().ask('POST', '', { headers });
      expect([answer.status, answer.headers['set-cookie']]).toEqual([403, undefined]);
    }
  });

  it('ends at once when its owner signs out, on other gateways too', async () => {
    const other = await market.anotherGateway();
    try {
      const person = new Person();
      await person.signIn(await market.buyer(0));
      const bearer = await person.bearer();
      expect([await statusOf(bearer), (await whoIs(bearer, other.baseUrl)).status]).toEqual([200, 200]);
      const answer = await person.ask('DELETE');
      expect([answer.status, answer.body, person.cookie]).toEqual([200, { ended: 1 }, '']);
      expect(await statusOf(bearer)).toBe(401);
      // A message of Postgres is on its way to the other one.
      await until(async () => (await whoIs(bearer, other.baseUrl)).status === 401);
    } finally {
      await other.stop();
    }
  });

  it('reaches no service in any header, nor does the cookie, even if the listing and the caller agree on cookies', async () => {
    const key = await market.buyer(0);
    const person = new Person();
    await person.signIn(key);
    const bearer = await person.bearer();
    const path = await market.service({ endpoint: service.url, forward_headers: ['cookie', 'x-api-key'] });
    const { status, body } = await send('GET', path, {
      key,
      headers: {
        ...{ Cookie: person.cookie, 'X-Note': person.cookie, 'X-Api-Key': bearer, 'X-Bearer': bearer },
        ...{ 'X-ACF-Forward': 'cookie, x-api-key', 'X-ACF-Page-Secret': 'half' },
      },
    });
    expect(status).toBe(200);
    expect(body.headers.join('\n')).not.toMatch(/sk_|half/);
  });
});

describe('a session ends', () => {
  it('with its key: the next call is 401, and there is no new bearer', async () => {
    const key = await market.buyer(0);
    const person = new Person();
    await person.signIn(key);
    const bearer = await person.bearer();
    expect(await statusOf(bearer)).toBe(200);
    await market.json(`/api/v1/keys/${key.key_id}`, { key, method: 'DELETE' });
    expect(await statusOf(bearer)).toBe(401);
    expect((await person.ask('POST', '/token')).status).toBe(401);
  });

  it('with the secret that signed in: after a rotation it ends when the overlap does', async () => {
    const key = await market.buyer(0);
    const person = new Person();
    await person.signIn(key);
    const bearer = await person.bearer();
    const rotate = (overlap_seconds: number) =>
      market.json<{ secret: string }>(`/api/v1/keys/${key.key_id}/rotate`, {
        headers: { Authorization: `Bearer ${bearer}` },
        method: 'POST',
        body: { overlap_seconds },
      });
    const { secret } = await rotate(60);
    expect(await statusOf(bearer)).toBe(200);
    const other = new Person();
    await other.signIn({ ...key, secret });
    await rotate(0);
    expect(await statusOf(bearer)).toBe(401);
    for (const one of [person, other]) expect((await one.ask('POST', '/token')).status).toBe(401);
  });

  it('with its account', async () => {
    const key = await market.buyer(0);
    const person = new Person();
    await person.signIn(key);
    const bearer = await person.bearer();
    await market.json(`/api/v1/admin/accounts/${key.account_id}/close`, { key: market.admin, method: 'POST' });
    expect([
      await statusOf(bearer),
      (await person.ask('POST', '/token')).status,
      (await person.ask('GET')).status,
    ]).toEqual([401, 401, 401]);
    const left = await market.stores.sql`SELECT FROM sessions WHERE key_id = ${key.key_id}`;
    expect(left).toHaveLength(0);
  });

  it('but not when its account is suspended, so that the owner can read why', async () => {
    const key = await market.buyer(0);
    const person = new Person();
    await person.signIn(key);
    await market.json(`/api/v1/admin/accounts/${key.account_id}`, {
      key: market.admin,
      method: 'PATCH',
      body: { status: 'suspended' },
    });
    const bearer = await person.bearer();
    expect((await whoIs(bearer)).body.account_status).toBe('suspended');
    expect((await send('GET', '/api/v1/keys', { headers: { Authorization: `Bearer ${bearer}` } })).status).toBe(403);
    await new Person().signIn(key);
  });

  it('with the key above its child key, or when the child key expires', async () => {
    const parent = await market.buyer(0);
    const child = (body: object) => market.json<Key>('/api/v1/keys', { key: parent, method: 'POST', body });
    const [revoked, expiring] = [await child({ label: 'a' }), await child({ label: 'b' })];
    const person = new Person();
    const { id } = await person.signIn(revoked);
    const bearer = await person.bearer(id);
    expect(await statusOf(bearer)).toBe(200);
    const { id: second } = await person.signIn(expiring);
    await market.stores
      .sql`UPDATE api_keys SET expires_at = now() - interval '1 second' WHERE key_id = ${expiring.key_id}`;
    expect((await person.ask('POST', '/token', { body: { id: second } })).status).toBe(401);
    await market.json(`/api/v1/keys/${parent.key_id}`, { key: parent, method: 'DELETE' });
    expect([await statusOf(bearer), (await person.ask('POST', '/token', { body: { id } })).status]).toEqual([401, 401]);
  });

  it('when its time is over', async () => {
    const person = new Person();
    const { id } = await person.signIn(await market.buyer(0));
    await market.stores.sql`UPDATE sessions SET expires_at = now() - interval '1 second' WHERE id = ${id}`;
    expect((await person.ask('POST', '/token')).status).toBe(401);
  });
});

describe('signing out', () => {
  it('ends one session, all sessions of this browser, or all sessions that the key may end anywhere', async () => {
    const key = await market.buyer(0);
    const sibling = await market.anotherKey(key);
    const [here, there, stranger] = [new Person(), new Person(), new Person()];
    const other = await market.buyer(0);
    await stranger.signIn(other);
    const one = await here.signIn(key);
    const two = await here.signIn(sibling);
    const far = await there.signIn(sibling);
    expect((await here.list()).map(({ id }) => id)).toEqual([two.id, one.id]);
    expect(await here.list('?everywhere=true')).toMatchObject([
      { id: far.id, is_here: false },
      { id: two.id, is_here: true },
      { id: one.id, is_here: true },
    ]);
    expect((await here.ask('DELETE', `/${two.id}`)).body).toEqual({ ended: 1 });
    expect((await here.list()).map(({ id }) => id)).toEqual([one.id]);
    const [foreign] = await stranger.list();
    for (const id of [foreign?.id, two.id, 'x']) expect((await here.ask('DELETE', `/${id}`)).status).toBe(404);
    expect((await here.ask('DELETE', '?everywhere=true')).body).toEqual({ ended: 2 });
    expect((await there.ask('GET')).status).toBe(401);
    expect(await stranger.list()).toHaveLength(1);
  });

  it('with a child key or a lower role does not reach the sessions above it', async () => {
    const provider = await market.anotherProvider();
    const buyer = await market.json<Key>('/api/v1/keys', { key: provider, method: 'POST', body: { role: 'buyer' } });
    const child = await market.json<Key>('/api/v1/keys', { key: buyer, method: 'POST', body: { label: 'child' } });
    const people = [];
    for (const key of [provider, buyer, child]) {
      const person = new Person();
      await person.signIn(key);
      people.push(person);
    }
    const seen = await Promise.all(
      people.map(async (one) => (await one.list('?everywhere=true')).map((row) => row.key_id)),
    );
    expect(seen.map((keys) => new Set(keys))).toEqual([
      new Set([provider.key_id, buyer.key_id, child.key_id]),
      new Set([buyer.key_id, child.key_id]),
      new Set([child.key_id]),
    ]);
  });
});

describe('a client that is not a page of the gateway', () => {
  const own = (): URL => new URL(market.baseUrl);
  it.each([
    ['a proxied document, whose origin is hidden', () => ({ Origin: 'null' })],
    ['a page of another port of the host', () => ({ Origin: `http://127.0.0.1:${Number(own().port) + 1}` })],
    ['a page of another name of the host', () => ({ Origin: `http://localhost:${own().port}` })],
    ['a sibling subdomain', () => ({ Origin: 'https://evil.example.com', Host: 'gateway.example.com' })],
    ['a page of another site', () => ({ Origin: 'https://evil.example' })],
    ['a page whose name was rebound to the gateway', () => ({ Origin: 'http://evil.example', Host: 'evil.example' })],
    ['a page of a name without https', () => ({ Origin: 'http://gateway.example', Host: 'gateway.example' })],
    ['a page of the other scheme', () => ({ Origin: own().origin, 'Sec-Fetch-Site': 'cross-site' })],
    ['a page of the same site', () => ({ Origin: own().origin, 'Sec-Fetch-Site': 'same-site' })],
    ['an address that was typed', () => ({ Origin: own().origin, 'Sec-Fetch-Site': 'none' })],
  ])('%s: cannot sign in, cannot read, use or end a session, and cannot read the answers', async (_who, headersOf) => {
    const key = await market.buyer(0);
    const person = new Person();
    await person.signIn(key);
    const headers = { ...headersOf(), 'X-ACF-Page-Secret': person.headers['X-ACF-Page-Secret'] as string };
    // With the right cookie under each name that it could have.
    const value = person.cookie.split('=')[1];
    const port = own().port;
    const Cookie = [
      'tollgate-session',
      `tollgate-session-${port}`,
      '__Secure-tollgate-session',
      `__Secure-tollgate-session-${port}`,
    ]
      .map((name) => `${name}=${value}`)
      .join('; ');
    const signIn = await send('POST', '/api/v1/session', { key, headers });
    expect([signIn.status, signIn.headers['set-cookie']]).toEqual([403, undefined]);
    for (const [method, path] of [
      ['POST', '/token'],
      ['GET', ''],
      ['GET', '?everywhere=true'],
      ['DELETE', ''],
      ['DELETE', `/${newKeyId()}`],
    ] as const) {
      const answer = await send(method, `/api/v1/session${path}`, { headers: { ...headers, Cookie } });
      expect([method, path, answer.status]).toEqual([method, path, 403]);
      expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control-'))).toEqual([]);
    }
    expect(await person.list()).toHaveLength(1);
  });

  it('cannot change anything by a request without Origin, which every browser sends', async () => {
    const person = new Person();
    await person.signIn(await market.buyer(0));
    const { Origin: _, ...headers } = person.headers;
    const Cookie = person.cookie;
    for (const [method, path] of [
      ['POST', '/token'],
      ['DELETE', ''],
    ] as const) {
      expect((await send(method, `/api/v1/session${path}`, { headers: { ...headers, Cookie } })).status).toBe(403);
    }
    expect((await send('GET', '/api/v1/session', { headers: { ...headers, Cookie } })).status).toBe(200);
  });

  it('preflights are refused', async () => {
    for (const path of ['/api/v1/session', '/api/v1/session/token', '/api/v1/session/x']) {
      const answer = await send('OPTIONS', path, {
        headers: {
          Origin: 'https://evil.example',
          'Access-Control-Request-Method': 'POST',
          'Access-Control-Request-Headers': 'authorization',
        },
      });
      expect(answer.status).toBe(405);
      expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control-'))).toEqual([]);
    }
  });
});

describe('a cookie', () => {
  it('is read by no other route', async () => {
    const person = new Person();
    await person.signIn(market.admin);
    const path = await market.service({ endpoint: service.url });
    const headers = { ...person.headers, Cookie: person.cookie };
    for (const target of ['/api/v1/keys/me', '/api/v1/admin/stats', path, '/api/v1/sessions', '/api/v1/sessiontoken']) {
      expect([target, (await send('GET', target, { headers })).status]).toEqual([
        target,
        target.includes('session') ? 404 : 401,
      ]);
    }
  });

  it('is not accepted as an API key', async () => {
    const person = new Person();
    await person.signIn(await market.buyer(0));
    expect(await statusOf(person.cookie.split('=')[1] as string)).toBe(401);
  });

  it('that another port of the host has seen is worthless without the secret that the page keeps', async () => {
    const person = new Person();
    await person.signIn(await market.buyer(0));
    const thief = new Person({ page: null });
    thief.cookie = person.cookie;
    expect((await thief.ask('POST', '/token')).status).toBe(401);
    const guess = new Person();
    guess.cookie = person.cookie;
    expect((await guess.ask('POST', '/token')).status).toBe(401);
  });

  it('that a sibling subdomain has planted signs nobody in, and keeps nobody from signing in or out', async () => {
    const planter = new Person({ page: null });
    await planter.signIn(await market.buyer(0));
    const victim = new Person();
    const both = (): Ask => ({ headers: { Cookie: [planter.cookie, victim.cookie].filter(Boolean).join('; ') } });
    expect((await victim.ask('POST', '/token', both())).status).toBe(401);
    const key = await market.buyer(0);
    expect((await victim.ask('POST', '', { key, ...both() })).status).toBe(201);
    expect((await victim.ask('GET', '', both())).body.sessions).toMatchObject([{ key_id: key.key_id }]);
    // With what the planter knows nobody reaches the victim's session.
    expect(await planter.list()).toHaveLength(1);
    expect((await victim.ask('DELETE', '', both())).body).toEqual({ ended: 1 });
    expect(await planter.list()).toHaveLength(1);
  });

  it('beside another known cookie counts as none without a page secret: one of the two was planted', async () => {
    const [one, two] = [new Person({ page: null }), new Person({ page: null })];
    for (const person of [one, two]) await person.signIn(await market.buyer(0));
    const headers = { Cookie: `${one.cookie}; ${two.cookie}` };
    expect((await one.ask('POST', '/token', { headers })).status).toBe(401);
  });

  it('that is wrong or forged is 401, and counts against the address as a wrong secret does', async () => {
    const small = await Marketplace.start({ ANONYMOUS_RATE_LIMIT: '60' });
    try {
      const person = new Person({ at: small.baseUrl });
      await person.signIn(await small.buyer(0));
      const [name, value = ''] = person.cookie.split('=');
      const left = async (headers: Record<string, string>, path: string): Promise<[number, number]> => {
        const method = path.includes('session') ? 'POST' : 'GET';
        const answer = await send(method, path, { headers: { ...person.headers, ...headers } }, small.baseUrl);
        expect(answer.headers['x-ratelimit-limit']).toBe('60');
        return [answer.status, Number(answer.headers['x-ratelimit-remaining'])];
      };
      const flipped = (text: string, at: number): string =>
        `${text.slice(0, at)}${text[at] === 'A' ? 'B' : 'A'}${text.slice(at + 1)}`;
      const cookies = fc.oneof(
        fc.constant(`${newKeyId()}:${newSecret()}`),
        fc.integer({ min: 4, max: value.length - 1 }).map((at) => flipped(value, at)),
        fc.integer({ min: 0, max: value.length - 1 }).map((length) => value.slice(0, length)),
        fc.string({ maxLength: 100 }).map((text) => text.replace(/[^!-~]|;/g, '')),
      );
      let [, before] = await left({ Authorization: `Bearer ${newKeyId()}:${newSecret()}` }, '/api/v1/keys/me');
      await fc.assert(
        fc.asyncProperty(cookies, async (forged) => {
          const [status, after] = await left({ Cookie: `${name}=${forged}` }, '/api/v1/session/token');
          expect(status).toBe(401);
          // A token a second comes back.
          expect(after).toBeLessThanOrEqual(before + 1);
          before = after;
        }),
        { numRuns: 30 },
      );
      expect(before).toBeLessThan(50);
      let status = 0;
      for (let n = 0; n < 120 && status !== 429; n++)
        [status] = await left({ Cookie: `${name}=x` }, '/api/v1/session/token');
      expect(status).toBe(429);
      // A valid one draws on the bucket of its account for such things, which the address does not touch.
      const answer = await person.ask('POST', '/token');
      expect([answer.status, answer.headers['x-ratelimit-limit']]).toEqual([200, '30']);
    } finally {
      await small.stop();
    }
  });
});
