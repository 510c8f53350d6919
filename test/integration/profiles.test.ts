// What a provider says of itself: who sets it, where it is shown, and how it ends.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../support/wait.ts';
import { type Key, Marketplace } from './marketplace.ts';

const PROFILE = { display_name: 'Weather & Co', contact: 'help@weather.example', url: 'https://weather.example/us' };
const BODY = { name: 'Weather', description: '', category: 'test', price: 0, endpoint: 'http://localhost:9/' };

let market: Marketplace;
let other: Awaited<ReturnType<Marketplace['anotherGateway']>>;

beforeAll(async () => {
  market = await Marketplace.start({ OPERATOR_NAME: 'Acme, Inc.', UPSTREAM_ALLOW_CIDRS: '127.0.0.0/8,::1/128' });
  other = await market.anotherGateway();
});
afterAll(async () => {
  await other.stop();
  await market.stop();
});

type Shown = { id: string; provider?: Record<string, unknown> };

const list = (key: Key): Promise<Shown> => market.json('/api/v1/services', { key, method: 'POST', body: BODY });
const say = (key: Key, body: object) => market.request('/api/v1/accounts/me', { key, method: 'PATCH', body });
const found = async (id: string, baseUrl = market.baseUrl): Promise<Shown | undefined> => {
  const { services } = (await (await fetch(`${baseUrl}/api/v1/discover`)).json()) as { services: Shown[] };
  return services.find((service) => service.id === id);
};
const etag = async (): Promise<string | null> => (await market.request('/api/v1/discover')).headers.get('etag');
const clear = (accountId: string) =>
  market.request(`/api/v1/admin/accounts/${accountId}/profile`, { key: market.admin, method: 'DELETE' });
const acts = (accountId: string) =>
  market.stores.sql`
    SELECT before, actor_account_id AS by FROM audit WHERE subject_id = ${accountId} AND action = 'account.clear_profile'`;

describe('the profile of a provider', () => {
  it('is shown on its listings (as a name alone in searches), soon on all gateways, and changes their ETag', async () => {
    const provider = await market.anotherProvider();
    const { id } = await list(provider);
    expect((await found(id))?.provider).toBeUndefined();
    expect(await market.json(`/api/v1/services/${id}`)).toMatchObject({
      provider: { since: expect.any(String), services: 1 },
    });
    const before = await etag();
    const answer = await say(provider, PROFILE);
    expect([answer.status, await answer.json()]).toMatchObject([200, { ...PROFILE, services: 1 }]);
    expect((await found(id))?.provider).toEqual({ display_name: PROFILE.display_name });
    expect(await etag()).not.toBe(before);
    const whole = { ...PROFILE, since: expect.any(String), services: 1 };
    for (const path of [`discover/${id}`, `services/${id}`]) {
      expect((await market.json<Shown>(`/api/v1/${path}`)).provider).toEqual(whole);
    }
    await until(async () => (await found(id, other.baseUrl))?.provider !== undefined);
    await list(provider);
    expect((await market.json<Shown>(`/api/v1/discover/${id}`)).provider).toMatchObject({ services: 2 });

    // One field at a time; what is not named stays.
    await say(provider, { url: null });
    const { url: _, ...rest } = whole;
    expect((await market.json<Shown>(`/api/v1/discover/${id}`)).provider).toEqual({ ...rest, services: 2 });
    await say(provider, { display_name: null, contact: null });
    expect((await found(id))?.provider).toBeUndefined();
    expect(await market.stores.sql`SELECT FROM profiles WHERE account_id = ${provider.account_id}`).toHaveLength(0);
    await until(async () => (await found(id, other.baseUrl))?.provider === undefined);
  });

  it('is for providers only, in plain text, and may not be the name of the operator', async () => {
    const provider = await market.anotherProvider();
    expect((await say(await market.buyer(0), PROFILE)).status).toBe(403);
    for (const [body, message] of [
      [{ display_name: ' ACME inc ' }, /^display_name: is the name of/],
      [{ display_name: 'Weather\u202e' }, /^display_name: must not contain/],
      [{ contact: 'a\nb' }, /^contact: must not contain/],
      [{ url: 'javascript:alert(1)' }, /^url: must be/],
      [{}, /./],
    ] as const) {
      const refused = await say(provider, body);
      expect([refused.status, await refused.json()]).toMatchObject([400, { message: expect.stringMatching(message) }]);
    }
    const own = await market.json('/api/v1/accounts/me', { key: provider });
    expect(own).toMatchObject({ display_name: null, contact: null, url: null, services: 0 });
  });

  it('can be cleared by an operator, which is recorded', async () => {
    const provider = await market.anotherProvider();
    const { id } = await list(provider);
    await say(provider, PROFILE);
    await until(async () => (await found(id, other.baseUrl))?.provider !== undefined);
    for (let times = 0; times < 2; times++) expect((await clear(provider.account_id)).status).toBe(200);
    expect((await found(id))?.provider).toBeUndefined();
    await until(async () => (await found(id, other.baseUrl))?.provider === undefined);
    expect(await acts(provider.account_id)).toEqual([{ before: PROFILE, by: market.admin.account_id }]);
    expect((await clear('00000000-0000-7000-8000-000000000000')).status).toBe(404);
  });

  it('is erased when its account is closed, and is erased from the record of its clearing too', async () => {
    const provider = await market.anotherProvider();
    await list(provider);
    await say(provider, PROFILE);
    await clear(provider.account_id);
    await say(provider, { display_name: 'Weather again' });
    await market.json(`/api/v1/admin/accounts/${provider.account_id}/close`, { key: market.admin, method: 'POST' });
    expect(await acts(provider.account_id)).toEqual([{ before: null, by: market.admin.account_id }]);
    const { sql } = market.stores;
    expect(await sql`SELECT FROM profiles WHERE account_id = ${provider.account_id}`).toHaveLength(0);
    const audit = JSON.stringify(await sql`SELECT before, after FROM audit WHERE subject_id = ${provider.account_id}`);
    expect(audit).not.toContain('Weather');
    // A key that this gateway still took for good would bring nothing back.
    expect((await say(provider, PROFILE)).status).toBe(401);
  });
});
