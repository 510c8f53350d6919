// What holds in every room of the pages.

import { get } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { authorization, echo, type Key, startService, type TestService } from '../integration/marketplace.ts';
import '../support/browser.ts';
import type { Route } from '../support/browser.ts';
import { until } from '../support/wait.ts';
import { type Visit, WebMarket } from './web-market.ts';

let web: WebMarket;
let service: TestService;
let admin: Key;
let buyer: Key;
let other: Key;
let path: string;

const keyOf = ({ key_id: id, secret }: Key): string => `${id}:${secret}`;
const opened = (name: string): Promise<Key> =>
  web.market.json<Key>('/api/v1/keys', { method: 'POST', body: { owner_id: name, role: 'buyer' } });

beforeAll(async () => {
  [web, service] = await Promise.all([WebMarket.start(), startService(echo)]);
  const { market } = web;
  path = await market.service({ endpoint: service.url, name: 'Weather', price: 0.25, free_calls: 5 });
  [buyer, other] = await Promise.all([opened('acme'), opened('globex')]);
  admin = await market.json<Key>('/api/v1/keys', { key: market.admin, method: 'POST', body: { role: 'admin' } });
});
afterAll(async () => {
  await web?.stop();
  await service?.close();
});

const visited = (address: string, key?: string): Promise<Visit> => web.visit(address, key === undefined ? {} : { key });
const stored = (visit: Visit): Promise<string | null> => visit.page.evaluate("sessionStorage['tollgate.key'] ?? null");

it('a visit finds nothing that another one left in the page that it continues', async () => {
  const before = await web.visit('/', { dark: true, key: keyOf(buyer) });
  const { page } = before;
  await page.evaluate("localStorage.theme = 'dark', document.cookie = 'left=1; path=/', globalThis.left = 1");
  await page.setViewportSize({ width: 390, height: 844 });
  await page.route('**/llms.txt', (route) => route.abort());
  await before.close();
  const visit = await visited('/llms.txt');
  expect(visit.page).toBe(page);
  const left = `JSON.stringify([Object.keys(localStorage), Object.keys(sessionStorage), document.cookie, typeof left,
    innerWidth, matchMedia('(prefers-color-scheme: dark)').matches])`;
  expect(JSON.parse(await page.evaluate(left))).toEqual([[], [], '', 'undefined', 1280, false]);
  expect(before.requested).not.toContain(page.url());
  // Another tab has a process, and perhaps a script, of its own.
  await (await page.context().newPage()).close();
  await visit.close();
  const after = await visited('/llms.txt');
  expect(after.page).not.toBe(page);
  await after.close();
});

describe('keys', () => {
  it('that are pasted into a search do not put their secret into the address or any request', async () => {
    const visit = await visited('/console/accounts', keyOf(admin));
    const { page } = visit;
    await page.getByLabel('Label, account or key').fill(keyOf(buyer));
    await page.getByRole('button', { name: 'Apply' }).click();
    await page.waitForURL(/q=acf_/);
    await page.getByRole('link', { name: 'acme' }).waitFor();
    await page.goto('/');
    await page.getByRole('searchbox').fill(keyOf(buyer));
    await page.waitForURL(/q=acf_/);
    expect(visit.requested.filter((url) => url.includes(buyer.secret))).toEqual([]);
    expect(visit.complaints).toEqual([]);
    await visit.close();
  });

  it('of a tab stay remembered when one is revoked, and are gone after sign-out, with the title and the toasts', async () => {
    const dead = await opened('gone');
    await web.market.request(`/api/v1/keys/${dead.key_id}`, { key: dead, method: 'DELETE' });
    const visit = await visited('/console/keys', [dead, buyer, other].map(keyOf).join(' '));
    const { page } = visit;
    await page.getByText('Switch to', { exact: true }).waitFor();
    await until(async () => (await stored(visit)) === `${keyOf(buyer)} ${keyOf(other)}`);
    expect(await page.title()).toBe('Keys · Tollgate');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Console' }).waitFor();
    expect(await stored(visit)).toBeNull();
    expect(await page.title()).toBe('Console · Tollgate');
    const html = await page.content();
    expect([buyer, other].filter(({ key_id: id, secret }) => html.includes(id) || html.includes(secret))).toEqual([]);
    await visit.close();
  });

  it('do not sign in again if their owner signs out while they are checked', async () => {
    const visit = await visited('/llms.txt');
    const { page } = visit;
    let answer = (): void => {};
    const held = new Promise<void>((resolve) => {
      answer = resolve;
    });
    await page.route('**/api/v1/keys/me', async (route) => {
      if (route.request().headers().authorization?.includes(other.secret)) await held;
      await route.continue();
    });
    await page.evaluate(`sessionStorage['tollgate.key'] = ${JSON.stringify(`${keyOf(buyer)} ${keyOf(other)}`)}`);
    await page.goto('/console');
    await page.getByRole('button', { name: 'Sign out' }).click();
    const asked = page.waitForResponse('**/api/v1/keys/me');
    answer();
    await asked;
    await page.getByRole('heading', { name: 'Open an account' }).waitFor();
    // A task after the answer was read, the page would have shown it.
    await page.evaluate('new Promise((resolve) => setTimeout(resolve))');
    expect(await page.getByRole('button', { name: 'Sign out' }).count()).toBe(0);
    expect(await stored(visit)).toBeNull();
    await visit.close();
  });
});

it('the console is in English for visitors from a page in another language, including numbers and dates', async () => {
  const call = await web.market.request(path, { key: buyer, headers: { Authorization: authorization(buyer) } });
  expect(call.status).toBe(200);
  const visit = await visited('/?lang=de', keyOf(buyer));
  await visit.page.getByRole('link', { name: 'Konsole' }).first().click();
  await visit.page.getByText('Spent today').waitFor();
  await visit.page.locator('.console').getByText('$0.00').first().waitFor();
  const shown = await visit.page.locator('.console').textContent();
  expect(shown).toContain('$0.00');
  expect(shown).not.toMatch(/\d,\d+\s\$/);
  await visit.close();
});

it('a toast is shown above a dialog', async () => {
  const visit = await visited('/console/keys', keyOf(admin));
  const { page } = visit;
  await page.getByRole('button', { name: 'New key without a budget' }).first().click();
  await page.getByRole('dialog').getByRole('button', { name: 'Make the key' }).click();
  await page.getByRole('button', { name: 'I have kept it' }).click();
  await page.getByText('The key is made.').waitFor();
  await page.getByRole('button', { name: 'New key without a budget' }).first().click();
  await page.getByRole('dialog').waitFor();
  // What is in the top layer last is above what was there before, and only a popover can be there beside a dialog.
  const isOnTop = await page.getByText('The key is made.').evaluate((toast) => toast.matches(':popover-open *'));
  expect(isOnTop).toBe(true);
  await visit.close();
});

/** The bytes of a response with its headers, as a browser without a cache gets it. */
const bytesOf = (url: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const headers = { Accept: 'text/html, */*', 'Accept-Encoding': 'br' };
    const request = get(url, { agent: false, headers }, (response) => {
      const { socket } = response;
      response.resume().once('end', () => resolve(socket.bytesRead));
    });
    request.once('error', reject);
  });

/** The bytes of all that the page has requested so far, without a cache. @param files  some of it, so that nothing is left out unseen */
async function weightOf(visit: Visit, ...files: readonly string[]): Promise<number> {
  const urls = [...new Set(visit.requested)];
  for (const file of files) expect(urls).toContainEqual(expect.stringMatching(`/assets/${file}`));
  const sizes = await Promise.all(urls.map(bytesOf));
  return sizes.reduce((sum, size) => sum + size, 0);
}

it('the catalog weighs at most 45 kB, with response headers', async () => {
  const visit = await visited('/');
  expect(await weightOf(visit, 'main-.*js', 'main-.*css')).toBeLessThanOrEqual(45_000);
  await visit.close();
});

it('a chart shows the values at the pointer, names its series once if there are several, and leaves the page at 80 kB', async () => {
  const visit = await visited(`/services/${path.split('/')[4]}`);
  const { page } = visit;
  const chart = page.locator('.service-chart').first();
  await chart.scrollIntoViewIfNeeded();
  await chart.locator('.chart-over').waitFor();
  const tip = chart.locator('.chart-tip');
  expect(await tip.isVisible()).toBe(false);
  const { width = 0 } = (await chart.locator('.chart-over').boundingBox()) ?? {};
  await chart.locator('.chart-over').hover({ position: { x: width - 4, y: 20 } });
  await tip.waitFor();
  expect(await tip.textContent()).toMatch(/succeeded1/);
  expect(await chart.locator('.chart-names li').allTextContents()).toContain(' succeeded');
  expect(await page.locator('.service-chart').nth(1).locator('.chart-names').count()).toBe(0);
  await page.mouse.move(0, 0);
  await tip.waitFor({ state: 'hidden' });
  await page.locator('.try-waiting').waitFor({ state: 'detached' });
  expect(await weightOf(visit, 'main-.*js', 'main-.*css', 'service-page-.*css', 'try-it-.*js')).toBeLessThanOrEqual(
    80_000,
  );
  expect(visit.complaints).toEqual([]);
  await visit.close();
});

describe('while something is loading', () => {
  const loads = (visit: Visit, chunk: string): string[] =>
    visit.requested.filter((url) => url.includes(`/assets/${chunk}`) && url.endsWith('.js'));

  it('a click on a service shows its name, the outline of its page and a bar on top, and nothing moves afterwards', async () => {
    const visit = await visited('/');
    const { page } = visit;
    await visit.slow();
    const card = page.getByRole('link', { name: 'Weather' });
    const release = await visit.hold('**/assets/service-page-*');
    expect(loads(visit, 'service-page')).toEqual([]);
    const asked = page.waitForRequest(/service-page/);
    await card.hover();
    await asked;
    await card.click();
    await page.getByRole('heading', { level: 1, name: 'Weather' }).waitFor();
    expect(await page.locator('.skeleton:visible').count()).toBeGreaterThan(9);
    await page.locator('.loading-bar').waitFor();
    // Nothing of the page itself can be there yet.
    expect(await page.getByRole('heading', { name: 'Call it' }).count()).toBe(0);
    release();
    await page.getByRole('heading', { name: 'Call it' }).waitFor();
    await page.locator('.try-waiting').waitFor({ state: 'detached' });
    await page.locator('.loading-bar').waitFor({ state: 'hidden' });
    expect(await visit.focused()).toBe('h1 Weather');
    expect(await visit.shifts()).toEqual([]);
    expect(loads(visit, 'service-page')).toHaveLength(1);
    expect(visit.complaints).toEqual([]);
    await visit.close();
  });

  it('the console appears before its scripts, its sections before their files, and their lists before the answers', async () => {
    const visit = await visited('/llms.txt', keyOf(buyer));
    const { page } = visit;
    const scripts = await visit.hold('**/assets/main-*.js');
    await page.goto('/console', { waitUntil: 'commit' });
    await page.getByRole('heading', { level: 1, name: 'Console' }).waitFor();
    await page.locator('.skeleton').first().waitFor();
    scripts();
    await page.getByText('Spent today').waitFor();

    const [file, answer] = [await visit.hold('**/assets/keys-*'), await visit.hold('**/api/v1/keys?*')];
    await page.getByRole('link', { name: 'Keys', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor();
    await page.locator('.skeleton-row').first().waitFor();
    expect(await page.getByRole('button', { name: 'New key without a budget' }).count()).toBe(0);
    file();
    await page.getByRole('button', { name: 'New key without a budget' }).waitFor();
    await page.locator('.skeleton-row').first().waitFor();
    await page.locator('.loading-bar').waitFor();
    answer();
    await page.locator('.key-row').first().waitFor();
    await page.locator('.loading-bar').waitFor({ state: 'hidden' });
    expect(await visit.focused()).toBe('h1 Keys');
    expect(await visit.shifts()).toEqual([]);
    expect(visit.complaints).toEqual([]);
    await visit.close();
  });

  it('figures of the console take the room that was there for them, whichever answer comes last', async () => {
    const paid = await web.market.buyer(1);
    for (let i = 0; i < 6; i++) expect((await web.market.request(path, { key: paid })).status).toBe(200);
    await web.market.settled(paid.account_id);
    const { records } = await web.market.json<{ records: { usage_id: string }[] }>('/api/v1/usage', { key: paid });
    const call = records[0]?.usage_id ?? '';
    const body = { reason: 'It was late.', reference: 'late' };
    await web.market.json(`/api/v1/usage/${call}/refund`, { key: admin, method: 'POST', body });
    const its = `/services/${path.split('/')[4]}`;
    const pages: [Key, string[]][] = [
      [paid, ['/calls', '', '/money', '/keys', `/calls/${call}`]],
      [web.market.provider, [its, '', `${its}/calls`, `${its}/quality`, `/calls/${call}`]],
      [admin, [`/accounts/${paid.account_id}`, '', '/calls', `/calls/${call}`, '/reconciliation']],
    ];
    const moved: string[] = [];
    for (const [key, addresses] of pages) {
      const visit = await web.visit('/llms.txt', { key: keyOf(key), phone: true });
      const { page } = visit;
      await page.goto('/console/sessions');
      await page.getByRole('heading', { level: 1, name: 'Sessions' }).waitFor();
      const asked: Route[] = [];
      let known = 0;
      await page.route('**/api/v1/**', (route) => void asked.push(route));
      for (const address of addresses) {
        await page.evaluate(`{
          const link = document.createElement('a');
          link.href = '/console${address}';
          document.body.append(link);
          link.click();
          link.remove();
        }`);
        await page.waitForURL(`**/console${address}`);
        let answered = 0;
        // What was asked last is answered first, or for an operator what was asked first, and shown before the next answer.
        await until(async () => {
          const next = key === admin ? asked.shift() : asked.pop();
          if (next === undefined) return answered > 0 && (await page.locator('.console .skeleton').count()) === 0;
          await next.continue();
          await (await next.request().response())?.finished();
          answered++;
          await visit.drawn();
          return false;
        });
        const shifts = await visit.shifts();
        moved.push(...shifts.slice(known).map((shift) => `${address} ${shift}`));
        known = shifts.length;
      }
      expect(visit.complaints).toEqual([]);
      await visit.close();
    }
    expect(moved).toEqual([]);
  });

  it('files are preloaded for keyboard and touch users too, and never for those who save data', async () => {
    const visit = await visited('/', keyOf(buyer));
    const { page } = visit;
    await page.getByText('acme').waitFor();
    await page.evaluate(
      "Object.defineProperty(navigator, 'connection', { configurable: true, value: { saveData: true } })",
    );
    await page.getByRole('link', { name: 'Console', exact: true }).focus();
    await page.getByRole('link', { name: 'Weather' }).hover();
    await page.evaluate('new Promise((resolve) => setTimeout(resolve, 0))');
    expect([...loads(visit, 'console'), ...loads(visit, 'service-page')]).toEqual([]);
    await page.evaluate('delete navigator.connection');
    await page.getByRole('link', { name: 'Services', exact: true }).focus();
    // The page that they are of, and the section that this key has there.
    const section = page.waitForRequest(/assets\/overview-.*js/);
    await page.getByRole('link', { name: 'Console', exact: true }).focus();
    await section;
    const service = page.waitForRequest(/service-page-.*js/);
    await page.getByRole('link', { name: 'Weather' }).dispatchEvent('touchstart');
    await service;
    expect(page.url()).toMatch(/\/$/);
    expect(visit.complaints).toEqual([]);
    await visit.close();
  });
});
