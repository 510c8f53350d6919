import { readFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import '../support/browser.ts';
import { type Key, startService, type TestService } from '../integration/marketplace.ts';
import { until } from '../support/wait.ts';
import { type Visit, WebMarket, WIDE_TABLES } from './web-market.ts';

const EVIL = '<img src=x onerror=alert(1)>"><script>alert(2)</script>';
const BUDGET = { amount: 1, period: 'total' };
const TOP_UP = 'https://pay.example.com/top-up';

let web: WebMarket;
let service: TestService;
let weather: string;
/** Answers that the service gives when the test lets it. */
const waiting: ServerResponse[] = [];

beforeAll(async () => {
  [web, service] = await Promise.all([
    WebMarket.start(),
    startService((request, response) => {
      if (request.url === '/wait') {
        waiting.push(response);
        return;
      }
      response.statusCode = request.url?.startsWith('/fail') ? 500 : 200;
      response.end('ok');
    }),
  ]);
  weather = await web.market.service({ endpoint: service.url, name: 'Weather', price: 0.01, free_calls: 1 });
});
afterAll(async () => {
  await web?.stop();
  await service?.close();
});

const raise = (key: Key): Promise<unknown> =>
  web.market.json(`/api/v1/keys/${key.key_id}`, {
    key: web.market.admin,
    method: 'PATCH',
    body: { rate_limit: 300 },
  });

const textOf = (key: Key): string => `${key.key_id}:${key.secret}`;

/** The key that a dialog shows once. */
async function shownKey(visit: Visit): Promise<string> {
  const dialog = visit.page.getByRole('dialog', { name: 'Keep this key' });
  await dialog.waitFor();
  return ((await dialog.locator('pre').textContent()) ?? '').trim();
}

/** What the page of keys says of a key. @param text  its label or its id */
const rowOf = ({ page }: Visit, text: string) => page.locator('.key-row', { hasText: text });

async function openAccount(visit: Visit, name: string, wish = 'buyer'): Promise<{ text: string; key: Key }> {
  const { page } = visit;
  await page.getByLabel('Name').fill(name);
  await page.getByLabel('I want to').selectOption(wish);
  await page.getByRole('button', { name: 'Open an account' }).click();
  const text = await shownKey(visit);
  const [keyId = '', secret = ''] = text.split(':');
  const me = await web.market.json<{ account_id: string }>('/api/v1/keys/me', {
    key: { key_id: keyId, secret, account_id: '' },
  });
  return { text, key: { key_id: keyId, secret, account_id: me.account_id } };
}

async function call(key: Key, path: string, tag?: string): Promise<Response> {
  const headers = tag === undefined ? {} : { 'X-ACF-Tag': tag };
  const response = await web.market.request(weather + path, { key, headers });
  await response.arrayBuffer();
  return response;
}

/** Of the calls that are stored, in micro-USD. The pages ask the API, which has a limit. */
const spentOf = async (key: Key): Promise<number> => {
  const [row] = await web.market.stores.sql<{ spent: number }[]>`
    SELECT coalesce(sum(spent), 0)::bigint AS spent FROM key_hours WHERE key_id = ${key.key_id}`;
  return row?.spent ?? 0;
};

const stored = (visit: Visit): Promise<string> =>
  visit.page.evaluate('JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage)])');

/** No secret went anywhere but into headers. */
function expectNoSecret(visit: Visit, ...secrets: readonly string[]): void {
  for (const secret of secrets) {
    expect(visit.requested.filter((url) => url.includes(secret.split(':')[1] ?? secret))).toEqual([]);
  }
}

describe('the console of a buyer', () => {
  it('leads a new account from its first key to the bill for its calls', async () => {
    const visit = await web.visit('/console');
    const { page } = visit;
    await visit.shot('buyer-sign-in');
    await page.getByLabel('Stay signed in on this browser').last().uncheck();
    const { text, key } = await openAccount(visit, 'acme bot');
    await raise(key);
    await visit.shot('buyer-secret');
    expect(await visit.findings()).toEqual([]);
    // An Escape by accident must not lose the only copy.
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'I have kept it' }).click();

    await page.getByRole('heading', { name: 'Three steps to the first call' }).waitFor();
    await visit.shot('buyer-new');
    expect(await visit.findings()).toEqual([]);
    await page.getByRole('link', { name: 'How to add money' }).click();
    await page.getByText('Ask the operator of this marketplace').waitFor();
    await page.getByText(key.account_id).waitFor();
    await visit.shot('buyer-money-new');

    await web.market.credit(key, 10, 'invoice 4711');
    for (const path of ['/a', '/b', '/c?secret=1']) expect((await call(key, path)).status).toBe(200);
    expect((await call(key, '/fail')).status).toBe(500);
    await web.market.settled(key.account_id);

    await page.getByRole('link', { name: 'Overview' }).click();
    await page.getByText('$9.98', { exact: true }).waitFor();
    await page.getByText('1 used a free call', { exact: true }).waitFor();
    await page.getByLabel('Service', { exact: true }).selectOption({ label: 'Weather' });
    await page.waitForURL(/service=[0-9a-f-]{36}/);
    await page.getByText('$0.02 for 4 calls').waitFor();
    await page.locator('.chart-plot svg').waitFor();
    await visit.shot('buyer-overview');
    expect(await visit.findings()).toEqual([]);

    await page.getByRole('link', { name: 'All calls' }).click();
    await page
      .getByRole('row', { name: /GET \/fail/ })
      .getByText('service error')
      .waitFor();
    // A screen reader says where its reader has come.
    expect([await visit.focused(), await page.title()]).toEqual(['h1 Calls', 'Calls · Tollgate']);
    await visit.shot('buyer-calls');
    await page.getByLabel('Outcome', { exact: true }).focus();
    await page.getByLabel('Outcome', { exact: true }).selectOption({ label: 'Refunded: not charged' });
    await page.waitForURL(/outcome=refunded/);
    await page.getByRole('row', { name: /GET \/a/ }).waitFor({ state: 'detached' });
    expect(await page.getByRole('row').count()).toBe(2);
    expect(await visit.focused()).toMatch(/^select All outcomes/);
    await page.getByRole('link', { name: 'Clear' }).click();
    await page.getByRole('row', { name: /GET \/a/ }).waitFor();
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Export CSV' }).click();
    const file = await readFile(await (await download).path(), 'utf8');
    expect((await download).suggestedFilename()).toMatch(/^calls-\d{4}-\d\d-\d\d\.csv$/);
    expect(file.trim().split('\n')).toHaveLength(5);
    expect(await visit.findings()).toEqual([]);

    await page
      .getByRole('row', { name: /GET \/fail/ })
      .getByRole('link')
      .click();
    await page.waitForURL(/\/console\/calls\/[0-9a-f-]{36}$/);
    await page.getByText('The service answered with a status of 500 or above').waitFor();
    await page.getByText('refunded:upstream_5xx').waitFor();
    expect(await visit.focused()).toBe('h1 Call');
    await visit.shot('buyer-call');
    expect(await visit.findings()).toEqual([]);

    await page.getByRole('link', { name: 'Money' }).click();
    await page.getByText('Reference: invoice 4711').waitFor();
    await page.getByText('Calls to Weather').waitFor();
    await visit.shot('buyer-money');
    expect(await visit.findings()).toEqual([]);

    expect(visit.complaints).toEqual([]);
    expectNoSecret(visit, text);
    expect(await stored(visit)).toBe('[[],[]]');
    await page.getByLabel('Keep the key on a reload').check();
    expect(await stored(visit)).toBe(JSON.stringify([[], [['tollgate.key', text]]]));
    await page.getByLabel('Keep the key on a reload').uncheck();
    expect(await stored(visit)).toBe('[[],[]]');
    // Not remembered: a reload signs out.
    await page.reload();
    await page.getByRole('heading', { name: 'Open an account' }).waitFor();
    expect(await stored(visit)).toBe('[[],[]]');
    await visit.close();
  });

  it('shows the spending of the account with every top-level key, and by key, with links to the calls', async () => {
    const one = await web.market.buyer(1);
    const more = (body: object): Promise<Key> =>
      web.market.json<Key>('/api/v1/keys', { key: one, method: 'POST', body });
    const laptop = await more({ role: 'buyer', label: 'laptop' });
    const server = await more({ label: 'server', budget: { amount: 0.5, period: 'day' } });
    for (const [key, calls] of [
      [one, 1],
      [laptop, 3],
      [server, 2],
    ] as const) {
      for (let i = 0; i < calls; i++)
        await call(key, `/${i}/${'a-long-path/'.repeat(i)}`, i === 0 ? undefined : `customer-${i}`);
    }
    await web.market.settled(one.account_id);
    await web.market.stores.sql`
      INSERT INTO call_replays SELECT day, usage_id, 2 FROM calls WHERE key_id = ${server.key_id} AND tag = 'customer-1'`;
    for (const key of [one, server, laptop]) {
      const visit = await web.visit('/console', { key: textOf(key) });
      const [spent, calls, of] =
        key === server ? ['$0.02', 2, 'this key and the keys below it'] : ['$0.05', 6, 'the account'];
      await visit.page.getByText(`Balance, calls and spending of ${of}.`).waitFor();
      await visit.page.locator('.stat', { hasText: 'Spent today' }).getByText(spent).waitFor();
      await visit.page.getByText(`${spent} for ${calls} calls`).waitFor();
      if (key === laptop) await goThrough(visit);
      expect(visit.complaints).toEqual([]);
      await visit.close();
    }

    async function goThrough(visit: Visit): Promise<void> {
      const { page } = visit;
      await page.locator('.chart-plot svg').waitFor();
      await visit.shot('buyer-keys-overview');
      expect(await visit.findings()).toEqual([]);
      await page
        .getByRole('row', { name: /server/ })
        .getByText('$0.02')
        .waitFor();
      await page.getByLabel('Key', { exact: true }).selectOption({ label: 'server' });
      await page.getByText('$0.02 for 2 calls').waitFor();
      await page.getByLabel('Key', { exact: true }).selectOption({ label: 'All keys' });
      await page.locator('.chart-names').getByRole('link', { name: 'laptop' }).click();
      await page.waitForURL(new RegExp(`/console/calls\\?key_id=${laptop.key_id}&from=`));
      await page.getByText('3 calls for $0.03').waitFor();
      expect(await page.getByRole('row').count()).toBe(4);
      await page.getByLabel('Key', { exact: true }).selectOption({ label: 'All keys' });
      await page.getByText('6 calls for $0.05').waitFor();
      await page.getByRole('row').getByText('server').first().waitFor();
      await visit.shot('buyer-keys-calls');
      expect(await page.evaluate(WIDE_TABLES)).toEqual([]);
      expect(await visit.findings()).toEqual([]);
      await page.getByRole('link', { name: 'Overview' }).click();
      await page
        .getByRole('row', { name: /customer-1/ })
        .getByRole('link')
        .click();
      await page.waitForURL(/\/console\/calls\?tag=customer-1&from=/);
      await page.getByText('2 calls for $0.02').waitFor();
      expect(await page.getByRole('row').count()).toBe(3);
      await page
        .getByRole('row', { name: /server/ })
        .getByText('asked for 3 times')
        .waitFor();
      expect(await page.getByText('asked for').count()).toBe(1);
      await visit.shot('buyer-tag-calls');
      await page
        .getByRole('row', { name: /server/ })
        .getByRole('link')
        .first()
        .click();
      await page.getByText('customer-1', { exact: true }).waitFor();
      await page.getByText('It was asked for 3 times').waitFor();
      await page.getByText('Not what you paid for?').getByRole('link', { name: 'provider of the service' }).waitFor();
      await visit.shot('buyer-tag-call');
      expect(await visit.findings()).toEqual([]);
    }
  });

  it('shows the same balance, held amount and spending on every page, during and after a call, and a refused call', async () => {
    const key = await web.market.buyer(0.045);
    const visit = await web.visit('/console', { key: textOf(key) });
    const { page } = visit;
    const stat = (label: string) =>
      page
        .locator('.stat')
        .filter({ has: page.getByText(label, { exact: true }) })
        .locator('.stat-value');
    const goTo = (name: string) => page.getByRole('link', { name, exact: true }).click();
    /** Balance, held, and what was spent by calls that have ended. */
    const expectFigures = async (balance: string, held: string, spent: string, together: string): Promise<void> => {
      await goTo('Calls');
      await page.locator('p', { hasText: new RegExp(`calls? for \\${spent},`) }).waitFor();
      await goTo('Keys');
      await expect.poll(() => stat('Charged to this key').textContent()).toBe(spent);
      await goTo('Overview');
      await expect.poll(() => stat('Balance').textContent()).toBe(balance);
      await expect.poll(() => stat('Spent today').textContent()).toBe(spent);
      await page.getByText(held === '$0.00' ? 'nothing is held' : `${held} held by calls`).waitFor();
      await goTo('Money');
      await expect.poll(() => stat('Balance').textContent()).toBe(balance);
      await expect.poll(() => stat('Held').textContent()).toBe(held);
      await expect.poll(() => stat('In the statement').textContent()).toBe(together);
      // The first row of the statement, and its columns: when, what, amount, balance.
      await expect.poll(() => page.getByRole('row').nth(1).getByRole('cell').last().textContent()).toBe(together);
    };
    for (const path of ['/free', '/a', '/b', '/fail']) await call(key, path);
    const open = call(key, '/wait');
    await until(() => waiting.length > 0);
    for (let i = 0; i < 2; i++) expect((await call(key, '/c')).status).toBe(i === 0 ? 200 : 402);
    await until(async () => (await spentOf(key)) === 30_000);
    await expectFigures('$0.005', '$0.01', '$0.03', '$0.015');
    waiting.pop()?.end('ok');
    await open;
    await until(async () => (await spentOf(key)) === 40_000);
    await expectFigures('$0.005', '$0.00', '$0.04', '$0.005');
    await visit.shot('buyer-statement');
    const rows = await web.market.json<{ movements: { at: string; from?: string; balance: number }[] }>(
      '/api/v1/statement/me',
      { key },
    );
    const seenByAdmin = `/api/v1/admin/accounts/${key.account_id}`;
    expect(await web.market.json(seenByAdmin, { key: web.market.admin })).toMatchObject({ balance: 0.005, held: 0 });
    for (const { at } of rows.movements) expect(Date.parse(at)).toBeLessThanOrEqual(Date.now());
    expect(rows.movements[0]?.balance).toBe(0.005);
    const { sql } = web.market.stores;
    await until(async () => (await sql`SELECT FROM balance_refusals WHERE key_id = ${key.key_id}`).length === 1);
    for (const name of ['Calls', 'Overview']) {
      await goTo(name);
      await page.getByText(/a call to Weather with the key \S+ was refused: .* its \$0\.01\./).waitFor();
    }
    await visit.shot('buyer-refused');
    expect(await visit.findings()).toEqual([]);

    // What was added, less what was spent, with what was given back of it, is the balance on every page.
    const [charged] = (await web.market.records(key)).filter(({ amount }) => amount > 0);
    await web.market.json(`/api/v1/usage/${charged?.usage_id}/refund`, {
      key: web.market.provider,
      method: 'POST',
      body: { amount: 0.003, reason: 'wrong answer', reference: 'figures' },
    });
    await goTo('Money');
    await page.getByText('Reference: figures').waitFor();
    await expectFigures('$0.008', '$0.00', '$0.04', '$0.008');
    for (const name of ['Overview', 'Calls']) {
      await goTo(name);
      await page.getByText('$0.003 of it given back').first().waitFor();
    }
    expect(await web.market.json('/api/v1/admin/stats', { key: web.market.admin })).toMatchObject({
      calls: { today: { refunded: 0.003 } },
    });
    expect(visit.complaints).toEqual([]);
    await visit.close();
  });

  it('makes keys, rotates them and revokes them', async () => {
    const key = await web.market.buyer(1);
    const visit = await web.visit('/console/keys', { key: textOf(key) });
    const { page } = visit;
    await page.getByRole('button', { name: 'New key without a budget' }).press('Enter');
    await page.getByRole('dialog').waitFor();
    // A second Enter makes no key: nothing has been filled in yet.
    await page.keyboard.press('Enter');
    await visit.drawn();
    const make = page.getByRole('button', { name: 'Make the key' });
    expect([await make.count(), await page.locator('dialog [aria-busy="true"]').count()]).toEqual([1, 0]);
    expect(await visit.findings()).toEqual([]);
    await page.getByLabel('Label').fill(' ');
    await page.keyboard.press('Enter');
    const text = await shownKey(visit);
    await page.getByRole('button', { name: 'I have kept it' }).click();
    const [keyId = '', secret = ''] = text.split(':');
    const second = { key_id: keyId, secret, account_id: key.account_id };
    expect((await call(second, '/')).status).toBe(200);

    await page.getByRole('button', { name: `Rotate ${keyId}` }).click();
    await page.getByLabel('The present secret stays valid').selectOption('0');
    await visit.shot('keys-rotate');
    await page.getByRole('button', { name: 'Make a new secret' }).click();
    const rotated = { ...second, secret: (await shownKey(visit)).split(':')[1] ?? '' };
    await page.getByRole('button', { name: 'I have kept it' }).click();
    expect([(await call(second, '/')).status, (await call(rotated, '/')).status]).toEqual([401, 200]);
    await visit.shot('keys');

    await page.getByRole('button', { name: `Revoke ${keyId}` }).click();
    await page.getByRole('dialog').waitFor();
    // An accidental Enter removes nothing, and cancelling returns the focus to where it was.
    await expect.poll(() => visit.focused()).toBe('button Cancel');
    await page.keyboard.press('Enter');
    await expect.poll(() => visit.focused()).toBe('button Revoke');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Revoke key', exact: true }).click();
    await page.getByText('One revoked key').click();
    await rowOf(visit, keyId).getByText('Revoked').waitFor();
    expect((await call(rotated, '/')).status).toBe(401);
    expect(await visit.findings()).toEqual([]);

    // The tab's own key: it goes on with a new secret, and is signed out when the key is revoked.
    await page.getByRole('button', { name: `Rotate ${key.key_id}` }).click();
    await page.getByLabel('The present secret stays valid').selectOption('0');
    await page.getByRole('button', { name: 'Make a new secret' }).click();
    const own = await shownKey(visit);
    await page.getByRole('button', { name: 'I have kept it' }).click();
    await page.getByRole('link', { name: 'Money' }).click();
    await page.getByText('what calls can spend now').waitFor();
    await page.getByRole('link', { name: 'Keys' }).click();
    await page.getByRole('button', { name: `Revoke ${key.key_id}` }).click();
    await page.getByText(/nobody can reach its money any more|The account still has the key/).waitFor();
    await visit.shot('keys-revoke-own');
    await page.getByRole('button', { name: 'Revoke key and sign out' }).click();
    await page.getByRole('heading', { name: 'Open an account' }).waitFor();
    expect(await stored(visit)).toBe('[[],[]]');
    expect(visit.complaints).toEqual([]);
    expectNoSecret(visit, text, own, textOf(key), textOf(rotated));
    await visit.close();
  });

  it('shows keys as a tree with what is left of their budgets, and makes, changes and revokes keys of agents', async () => {
    const root = await web.market.buyer(1);
    const visit = await web.visit('/console/keys', { key: textOf(root) });
    const { page } = visit;
    await page.getByRole('button', { name: 'New key with a budget' }).click();
    const form = page.getByRole('dialog', { name: 'New key with a budget' });
    await form.getByLabel('Label').fill('research agent');
    await page.keyboard.press('Enter');
    await form.getByText('A budget is needed.').waitFor();
    await until(() => page.evaluate("document.activeElement.placeholder === '5.00'"));
    await form.getByLabel('Budget in US dollars').fill('0,5');
    await form.getByText('a point in place of the comma').waitFor();
    await form.getByLabel('Budget in US dollars').fill('0.05');
    await form.getByLabel('Period').selectOption('month');
    await form.getByText('More limits').click();
    await form.getByLabel('Most that one call').fill('0.02');
    await form.getByLabel('Only these services').fill(`${web.market.baseUrl}/services/${weather.split('/')[4]}`);
    // A time of which a part is missing has no value, and would make a key that never expires.
    await form.getByLabel('Expires').focus();
    await page.keyboard.type('11');
    await form.getByLabel('Label').press('Enter');
    await form.getByText('The date or the time is not complete.').waitFor();
    await until(() => page.evaluate("document.activeElement.type === 'datetime-local'"));
    await form.getByLabel('Expires').fill('');
    await visit.shot('keys-agent-form');
    expect(await visit.findings()).toEqual([]);
    // Enter in a field sends the form.
    await form.getByLabel('Label').press('Enter');
    const text = await shownKey(visit);
    await page.getByText('within the limits of the key').waitFor();
    await page.getByRole('button', { name: 'I have kept it' }).click();
    const [keyId = '', secret = ''] = text.split(':');
    const agent = { key_id: keyId, secret, account_id: root.account_id };
    const row = rowOf(visit, 'research agent');
    await row.getByText('at most $0.02 a call').waitFor();
    await row.getByText('1 service only').waitFor();
    await row.getByText('starts again').waitFor();

    for (let i = 0; i < 4; i++) expect((await call(agent, `/${i}`)).status).toBe(200);
    const below = { label: 'sub-agent', expires_at: new Date(Date.now() + 86_400_000 * 3).toISOString() };
    const sub = await web.market.json<Key>('/api/v1/keys', { key: agent, method: 'POST', body: below });
    const request = { key: sub, method: 'POST', body: { label: 'helper', budget: BUDGET } };
    const helper = await web.market.json<Key>('/api/v1/keys', request);
    await web.market.settled(root.account_id);
    await page.getByRole('button', { name: 'Refresh' }).click();
    await row.getByText('$0.03 spent of $0.05 a month').waitFor();
    await row.getByText('$0.02 left').waitFor();
    await row.getByText('4 calls for $0.03 as charged in 30 days').waitFor();
    await rowOf(visit, 'sub-agent').getByText('no calls in 30 days').waitFor();
    await rowOf(visit, 'sub-agent').getByText('no budget of its own').waitFor();
    // Nested lists tell a screen reader which key is below which.
    const ofAgent = page.getByRole('list', { name: 'Keys below research agent', exact: true });
    expect(await ofAgent.getByRole('list', { name: 'Keys below sub-agent' }).locator('.key-row').count()).toBe(1);
    await visit.shot('keys-tree');
    expect(await visit.findings()).toEqual([]);

    await page.getByRole('button', { name: 'Change research agent' }).click();
    const change = page.getByRole('dialog', { name: 'Change a key' });
    expect(await change.getByLabel('Period').isDisabled()).toBe(true);
    await change.getByLabel('Label').fill('reader');
    await change.getByLabel('Budget in US dollars').fill('0.03');
    await visit.shot('keys-change');
    expect(await visit.findings()).toEqual([]);
    await change.getByRole('button', { name: 'Save changes' }).click();
    await rowOf(visit, 'reader').getByText('$0.00 left').waitFor();
    expect((await call(agent, '/refused')).status).toBe(402);

    await rowOf(visit, 'helper').getByText('But only $0.00 is left of a budget above it.').waitFor();
    const bound = await web.visit('/console/keys', { key: textOf(helper) });
    await rowOf(bound, 'helper').getByText('But only $0.00 is left of a budget above it.').waitFor();
    await bound.close();

    // The page of a child key: itself, which it cannot change, and those below it.
    const own = await web.visit('/console/keys', { dark: true, phone: true, key: textOf(agent) });
    await rowOf(own, 'helper').waitFor();
    expect(await own.page.locator('.key-row').count()).toBe(3);
    await rowOf(own, 'reader').getByText('The keys above it change it').waitFor();
    expect(await own.page.getByRole('button', { name: 'New key without a budget' }).count()).toBe(0);
    await own.shot('keys-child-phone');
    expect(await own.findings()).toEqual([]);
    expect(await own.page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    await own.page.getByRole('button', { name: 'New key with a budget' }).click();
    await own.page.getByText('More limits').click();
    await own.shot('keys-agent-phone');
    expect(await own.page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    await own.page.getByRole('button', { name: 'Cancel' }).click();
    await own.page.getByRole('link', { name: 'Money', exact: true }).click();
    await own.page.getByText('What this key can spend.').waitFor();
    // What the account has done is not for this key: it is not asked for either, so nothing fails.
    expect(own.complaints).toEqual([]);
    await own.close();

    await until(async () => {
      const { keys } = await web.market.json<{ keys: (Key & { budget?: { refused: number } })[] }>('/api/v1/keys', {
        key: root,
      });
      return keys.find(({ key_id: id }) => id === keyId)?.budget?.refused === 1;
    });
    await page.getByRole('button', { name: 'Refresh' }).click();
    await rowOf(visit, 'reader').getByText('1 call refused').waitFor();
    await visit.shot('keys-refused');

    await page.getByRole('link', { name: 'Calls of reader' }).click();
    await page.getByText('4 calls for $0.03').waitFor();
    await page.goBack();
    await page.getByRole('link', { name: 'Spending of reader' }).click();
    await page.getByText('$0.03 for 4 calls').waitFor();
    await page.goBack();

    await web.market.stores.sql`
      UPDATE api_keys SET expires_at = now() - interval '2 hours' WHERE key_id = ${sub.key_id}`;
    await page.getByRole('button', { name: 'Refresh' }).click();
    await rowOf(visit, 'sub-agent').getByText('expired 2 hours ago').waitFor();
    await rowOf(visit, 'helper').getByText('Expired', { exact: true }).waitFor();
    await rowOf(visit, 'helper').getByText('with a key above it').waitFor();

    await page.getByRole('button', { name: 'Revoke reader' }).click();
    await page.getByRole('heading', { name: 'Revoke this key and the 2 below it?' }).waitFor();
    await visit.shot('keys-revoke-tree');
    await page.getByRole('button', { name: 'Revoke 3 keys' }).click();
    await page.getByText('3 revoked keys').click();
    await rowOf(visit, 'helper').getByText('Revoked').waitFor();
    expect([(await call(agent, '/')).status, (await call(sub, '/')).status]).toEqual([401, 401]);
    await visit.shot('keys-tree-revoked');
    expect(visit.complaints).toEqual([]);
    expectNoSecret(visit, text, textOf(root));
    await visit.close();
  });

  it('shows calls even if what stands above them does not come', async () => {
    const key = await web.market.buyer(1);
    await call(key, '/paid');
    await web.market.settled(key.account_id);
    const visit = await web.visit('/console/sessions', { key: textOf(key) });
    const { page } = visit;
    await page.getByRole('heading', { level: 1, name: 'Sessions' }).waitFor();
    await page.clock.install();
    await page.route('**/api/v1/balance/me', () => {});
    const listed = page.waitForResponse(/usage\?.*limit=50/);
    await page.getByRole('link', { name: 'Calls', exact: true }).click();
    await (await listed).finished();
    const row = page.locator('tbody tr', { hasText: 'GET /paid' });
    await row.waitFor({ state: 'attached' });
    expect(await row.isVisible()).toBe(false);
    await page.clock.fastForward(10_000);
    await row.waitFor();
    expect(visit.complaints).toEqual([]);
    await visit.close();
  });

  it('shows a shared address after sign-in, with its filters, and lets a person switch between keys', async () => {
    const [one, two] = [await web.market.buyer(1), await web.market.anotherProvider()];
    await call(one, '/yesterday');
    await call(one, '/paid');
    await web.market.settled(one.account_id);
    const today = new Date().toISOString().slice(0, 10);
    const visit = await web.visit(`/console/calls?from=${today}&to=${today}`);
    const { page } = visit;
    const signIn = async (key: Key, button: string): Promise<void> => {
      await page.getByLabel('API key').fill(textOf(key));
      await page.getByLabel('Stay signed in on this browser').last().check();
      await page.getByRole('button', { name: button }).click();
    };
    await page.getByLabel('API key').fill(textOf({ ...one, secret: two.secret }));
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('This gateway does not take this key.').waitFor();
    expect(visit.complaints.splice(0).filter((line) => !line.includes('401'))).toEqual([]);
    await page.getByLabel('API key').fill(textOf(one));
    await page.getByLabel('Stay signed in on this browser').first().check();
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('row', { name: /GET \/paid/ }).waitFor();
    expect(new URL(page.url()).search).toBe(`?from=${today}&to=${today}`);
    await page.getByLabel('From day').fill('2020-01-02');
    await page.getByLabel('To day').fill('2020-01-01');
    await page.getByRole('button', { name: 'Apply' }).click();
    await page.waitForURL(/from=2020-01-01&to=2020-01-02/);
    await page.getByText('Nothing matches').waitFor();
    await page.goBack();
    await page.getByRole('row', { name: /GET \/paid/ }).waitFor();
    await web.market.stores.sql`
      INSERT INTO closed_days (day) VALUES ('2020-01-01')`;
    await page.reload();
    await page.getByText('Single calls are kept from 2020-01-02').waitFor();

    // A file has 10 000 rows at most. A larger export says so, and offers the next part.
    const files: string[] = [];
    await page.route('**/api/v1/usage?**', async (route) => {
      if (route.request().headers().accept !== 'text/csv') return route.continue();
      files.push(new URL(route.request().url()).search);
      const more = { 'X-ACF-Next-Cursor': '019aa3f5-0d44-7a61-8c12-5b7e9f3a2d10' };
      return route.fulfill({ body: 'usage_id\n', headers: files.length === 1 ? more : {} });
    });
    await page.getByRole('button', { name: 'Export CSV' }).click();
    const part = page.waitForEvent('download', (download) => download.suggestedFilename().includes('part-2'));
    await page.getByRole('button', { name: 'Get part 2' }).click();
    await part;
    expect(files[1]).toBe(`${files[0]}&cursor=019aa3f5-0d44-7a61-8c12-5b7e9f3a2d10`);
    await page.unrouteAll();

    // Another program uses the same key: the page says when there is room again.
    await page.route('**/api/v1/balance/me', (route) =>
      route.fulfill({
        status: 429,
        headers: { 'Retry-After': '17' },
        json: { error: 'rate_limited', message: 'Too many requests.' },
      }),
    );
    await page.getByRole('link', { name: 'Money' }).click();
    await page.getByText('Try again in 17 seconds.').waitFor();
    expect(visit.complaints.splice(0).filter((line) => !line.includes('429'))).toEqual([]);
    await page.unrouteAll();

    // A page whose program or looks did not arrive says so, and comes whole when it is asked for again.
    await page.route('**/assets/keys-*', (route) => route.abort());
    await page.getByRole('link', { name: 'Keys' }).click();
    await page.getByText('A part of this page did not arrive.').waitFor();
    expect(visit.complaints.splice(0).filter((line) => !line.includes('ERR_FAILED'))).toEqual([]);
    await page.unrouteAll();
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('button', { name: `Rotate ${one.key_id}` }).waitFor();
    expect(await page.evaluate(`getComputedStyle(document.querySelector('.key-acts')).display`)).toMatch(/flex/);
    await page.getByRole('link', { name: 'Money' }).click();

    await page.getByRole('button', { name: 'Use another key' }).click();
    await signIn(two, 'Use this key');
    // What that account has in place of this page.
    await page.getByRole('heading', { name: 'Statement' }).waitFor();
    await page.getByText('Nothing has moved yet').waitFor();
    await visit.shot('provider-statement');
    expect(await visit.findings()).toEqual([]);
    await page.reload();
    await page.getByRole('button', { name: new RegExp(`buyer.*${one.key_id.slice(-6)}`) }).click();
    await page.getByRole('link', { name: 'Calls' }).click();
    await page.getByRole('row', { name: /GET \/paid/ }).waitFor();
    await visit.shot('buyer-two-keys');
    // Another key of the account sees the same call.
    const other = await web.market.json<Key>('/api/v1/keys', { key: one, method: 'POST', body: { role: 'buyer' } });
    await page
      .getByRole('row', { name: /GET \/paid/ })
      .getByRole('link')
      .first()
      .click();
    await page.getByRole('heading', { name: 'Call', exact: true }).waitFor();
    await page.getByRole('button', { name: 'Use another key' }).click();
    await signIn(other, 'Use this key');
    await page.getByRole('button', { name: new RegExp(`buyer.*${one.key_id.slice(-6)}`) }).waitFor();
    await page.getByText('GET /paid').waitFor();
    expect(new URL(page.url()).pathname).toMatch(/^\/console\/calls\/[0-9a-f]/);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Open an account' }).waitFor();
    expect(await stored(visit)).toBe('[[],[]]');
    expectNoSecret(visit, textOf(one), textOf(two), textOf(other));
    expect(visit.complaints).toEqual([]);
    await visit.close();
  });

  it('shows texts of others as plain text, in dark mode and on a phone', async () => {
    const evil = await web.market.service({ endpoint: service.url, name: EVIL, price: 0.25, description: EVIL });
    const key = await web.market.buyer(0);
    await web.market.credit(key, 5, EVIL);
    await (await web.market.request(`${evil}/%3Cscript%3E`, { key })).arrayBuffer();
    await web.market.settled(key.account_id);
    const { records } = await web.market.json<{ records: { usage_id: string }[] }>('/api/v1/usage/me', { key });
    const pages = ['', '/calls', `/calls/${records[0]?.usage_id}`, '/money', '/keys'];
    const visit = await web.visit('/console', { key: textOf(key) });
    const { page } = visit;
    for (const path of pages) {
      await page.setViewportSize({ width: 1280, height: 900 });
      await page.emulateMedia({ colorScheme: 'dark' });
      await page.goto(`/console${path}`);
      // Not the options of a choice: those are text anyway, and not visible.
      const text = path === '/keys' ? 'This key may send' : EVIL;
      const shown = page
        .locator('td, dd, dt')
        .getByText(text)
        .or(page.locator('dt', { hasText: text }));
      await shown.first().waitFor();
      await page.locator('[aria-busy=true]').first().waitFor({ state: 'detached' });
      if (path === '') await page.locator('.chart-plot svg').waitFor();
      for (const look of ['dark', 'phone'] as const) {
        if (look === 'phone') {
          await page.emulateMedia({ colorScheme: 'light' });
          await page.setViewportSize({ width: 390, height: 844 });
        }
        // Nothing but what is meant to scroll is wider than the screen. Charts follow the width a moment later.
        await until(() => page.evaluate('document.documentElement.scrollWidth <= innerWidth'));
        await shown.first().waitFor();
        // What axe finds depends on colours; one page of the phone's view is enough.
        if (path === '' || look === 'dark') expect(await visit.findings(), path).toEqual([]);
        const name = `buyer-${look}${path.replaceAll('/', '-').slice(0, 8)}`;
        await visit.shot(path.startsWith('/calls/') ? `${name}-one` : name);
      }
      expect(await page.locator('img, main script').count()).toBe(0);
    }
    expect(visit.complaints).toEqual([]);
    expectNoSecret(visit, textOf(key));
    await visit.close();
  });
});

describe('the sign-in page', () => {
  it('makes the first admin of an empty gateway, who can change limits, and tells buyers where to pay', async () => {
    const fresh = await WebMarket.start({ TOP_UP_URL: TOP_UP, OPERATOR_NAME: 'Acme', TERMS_URL: `${TOP_UP}/terms` });
    try {
      const { sql } = fresh.market.stores;
      await sql`DELETE FROM api_keys WHERE role = 'admin'`;
      const visit = await fresh.visit('/console');
      const { page } = visit;
      await page.getByLabel('Name').fill('the operator');
      await page.getByLabel('I want to').selectOption('admin');
      await visit.shot('sign-in-admin');
      await page.getByRole('button', { name: 'Open an account' }).click();
      const keyId = (await shownKey(visit)).split(':')[0] ?? '';
      await page.getByRole('button', { name: 'I have kept it' }).click();
      await page.getByRole('link', { name: 'Keys' }).click();
      await page.getByRole('button', { name: `Change ${keyId}` }).click();
      await page.getByLabel('Requests a minute').fill('0');
      await page.getByText('A whole number of at least 1.').waitFor();
      await page.getByLabel('Requests a minute').fill('120');
      await page.getByRole('button', { name: 'Save changes' }).click();
      await rowOf(visit, keyId).getByText('120 requests a minute').waitFor();
      await visit.shot('keys-admin');
      expect(await visit.findings()).toEqual([]);
      await page.getByRole('button', { name: 'Sign out' }).click();

      expect(visit.complaints).toEqual([]);
      const wishes = page.getByLabel('I want to').locator('option');
      expect(await wishes.allTextContents()).toEqual(['call services', 'list services, and call them']);
      await page.reload();
      expect(await wishes.allTextContents()).toEqual(['call services', 'list services, and call them']);
      await page.getByLabel('Name').fill('a buyer');
      await page.getByRole('button', { name: 'Open an account' }).click();
      await shownKey(visit);
      await page.getByRole('button', { name: 'I have kept it' }).click();
      await page.getByRole('link', { name: 'Money' }).click();
      expect(await page.getByRole('link', { name: 'Add money' }).getAttribute('href')).toContain(
        `${TOP_UP}?account_id=`,
      );
      await page.getByText('Operated by Acme').waitFor();
      expect(await page.getByRole('link', { name: 'Terms' }).getAttribute('href')).toBe(`${TOP_UP}/terms`);
      await page.getByText('Nothing has moved yet').waitFor();
      await visit.shot('buyer-top-up');
      expect(visit.complaints).toEqual([]);
      await visit.close();
    } finally {
      await fresh.stop();
    }
  });
});
