// People who are signed in in a browser: all its tabs, for days; and those who would like to be them. What goes over the wire:
// test/integration/sessions.test.ts.

import { createServer, type RequestListener, request as send } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import '../support/browser.ts';
import { type Key, startService, type TestService } from '../integration/marketplace.ts';
import type { Page } from '../support/browser.ts';
import { until } from '../support/wait.ts';
import { Authority } from '../upstream/certificates.ts';
import { type Visit, WebMarket, WIDE_TABLES } from './web-market.ts';

let web: WebMarket;
let service: TestService;
let authority: Authority;
const closing: (() => void)[] = [];

beforeAll(async () => {
  authority = new Authority();
  [web, service] = await Promise.all([
    WebMarket.start({}, { writer: false }),
    startService((_request, response) => {
      response.setHeader('Content-Type', 'text/html');
      response.end('<title>proxied</title>');
    }),
  ]);
});
afterAll(async () => {
  await web?.stop();
  await service?.close();
  for (const close of closing) close();
  authority.remove();
});

const textOf = ({ key_id: id, secret }: Key): string => `${id}:${secret}`;
const opened = (owner_id: string, role = 'buyer'): Promise<Key> =>
  web.market.json<Key>('/api/v1/keys', { method: 'POST', body: { owner_id, role } });
type Row = { readonly id: string; readonly bearers: number; readonly last_used_at: Date };
const rows = async (key: Key): Promise<readonly Row[]> => web.market.stores.sql<Row[]>`
  SELECT id, bearers, last_used_at FROM sessions WHERE key_id = ${key.key_id} ORDER BY created_at`;
const nameIn = (page: Page) => page.locator('.who-card .who-name').first();

async function signIn(page: Page, key: Key, address = '/console'): Promise<void> {
  await page.goto(address);
  await page.getByLabel('API key').fill(textOf(key));
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('button', { name: 'Sign out' }).waitFor();
}

async function visitor(key: Key): Promise<Visit> {
  const visit = await web.visit('/console');
  await signIn(visit.page, key);
  return visit;
}

/** How often a page asks, from now on. @param what  method and path, as in 'POST /api/v1/session/token' */
function asked(page: Page, what: string): () => number {
  let count = 0;
  page.on('request', (request) => {
    if (`${request.method()} ${new URL(request.url()).pathname}` === what) count++;
  });
  return () => count;
}

/** As a rotation of it would: what pages have is refused from now on. */
async function endBearer(key: Key): Promise<void> {
  const { sql } = web.market.stores;
  await sql`UPDATE sessions SET bearer_expires_at = now(), bearer_hash = repeat('0', 64) WHERE key_id = ${key.key_id}`;
  await sql`SELECT pg_notify('tollgate_keys', ${key.key_id})`;
}

/** The bearers that a page sends from now on. */
function heard(page: Page): string[] {
  const bearers: string[] = [];
  page.on('request', (request) => {
    const sent = request.headers().authorization;
    if (sent !== undefined) bearers.push(sent);
  });
  return bearers;
}
const statusOf = async (authorization: string): Promise<number> =>
  (await web.market.request('/api/v1/keys/me', { headers: { Authorization: authorization } })).status;

describe('somebody who has signed in', () => {
  it('stays so in all tabs and after reloads, without the key anywhere; signing out in one tab ends all', async () => {
    const key = await opened('acme');
    const visit = await visitor(key);
    const { page } = visit;
    await visit.shot('session-console');
    await page.reload();
    expect(await nameIn(page).textContent()).toBe('acme');
    const second = await page.context().newPage();
    const sent = heard(second);
    await second.goto(`${web.market.baseUrl}/`);
    await second.locator('.who', { hasText: 'acme' }).waitFor();
    await second.goto(`${web.market.baseUrl}/console/keys`);
    await second.getByText('This key', { exact: true }).waitFor();
    // A reload and another tab have the bearer that is there already.
    expect((await rows(key)).map(({ bearers }) => bearers)).toEqual([1]);
    const kept = (await page.evaluate(
      'JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage), document.cookie])',
    )) as string;
    expect(kept).toMatch(
      /^\[\[\["tollgate\.session","\{\\"page\\":\\"[0-9a-f]{64}\\",\\"id\\":\\"[0-9a-f-]{36}\\"\}"\]\],\[\],""\]$/,
    );
    expect(new Set(sent).size).toBe(1);
    expect(sent[0]).not.toContain(key.secret);
    await page.getByRole('button', { name: 'Sign out' }).click();
    for (const tab of [page, second]) await tab.getByRole('heading', { name: 'Open an account' }).waitFor();
    expect(await page.evaluate('localStorage.length + sessionStorage.length')).toBe(0);
    await until(async () => (await rows(key)).length === 0);
    expect(await statusOf(sent[0] as string)).toBe(401);
    expect(visit.complaints).toEqual([]);
    await visit.close();
  });

  it('switches between accounts without typing a key again, and all tabs follow', async () => {
    const [one, two] = [await opened('first'), await opened('second', 'provider')];
    const visit = await visitor(one);
    const { page } = visit;
    const other = await page.context().newPage();
    await other.goto(`${web.market.baseUrl}/console/calls`);
    await other.getByRole('button', { name: 'Sign out' }).waitFor();
    await page.getByRole('button', { name: 'Use another key' }).click();
    await page.getByLabel('API key').fill(textOf(two));
    await page.getByRole('button', { name: 'Use this key' }).click();
    for (const tab of [page, other]) await until(async () => (await nameIn(tab).textContent()) === 'second');
    // A provider has no list of calls.
    await other.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
    await other.getByRole('button', { name: /^first/ }).click();
    for (const tab of [page, other]) await until(async () => (await nameIn(tab).textContent()) === 'first');
    await page.getByRole('button', { name: /^second/ }).waitFor();
    await visit.shot('session-switch');
    await page.reload();
    await until(async () => (await nameIn(page).textContent()) === 'first');
    await page.getByRole('button', { name: /^second/ }).waitFor();
    expect(await visit.findings()).toEqual([]);
    expect(visit.complaints).toEqual([]);
    await visit.close();
  });

  it('asks for no bearer if another tab got one between the look at the tabs and the turn to ask, and a third was closed', async () => {
    const visit = await visitor(await opened('two tabs'));
    const context = visit.page.context();
    const [first, second] = [await context.newPage(), await context.newPage()];
    const tokens = [first, second].map((tab) => asked(tab, 'POST /api/v1/session/token'));
    // The second tab sees one that is closed before it answers, and takes its turn only when it is told to: by then the first has one.
    await second.addInitScript(`
      const [query, request] = ['query', 'request'].map((name) => navigator.locks[name].bind(navigator.locks));
      let isFirst = true;
      navigator.locks.query = async () => {
        const found = await query();
        if (isFirst) found.held.push({ name: 'tollgate.tab', mode: 'shared', clientId: 'closed' });
        isFirst = false;
        return found;
      };
      navigator.locks.request = async (name, ...rest) => {
        if (name === 'tollgate.bearers') await new Promise((resolve) => { globalThis.goOn ??= resolve; });
        return request(name, ...rest);
      };`);
    await visit.page.close();
    await second.goto(`${web.market.baseUrl}/console`);
    await until(() => second.evaluate('globalThis.goOn !== undefined'));
    await first.goto(`${web.market.baseUrl}/console`);
    await nameIn(first).waitFor();
    await second.evaluate('globalThis.goOn()');
    await nameIn(second).waitFor();
    expect(tokens.map((count) => count())).toEqual([1, 0]);
    await visit.close();
  });

  it('opens another account beside the present one: from the console, or to sell, which a buyer cannot', async () => {
    const visit = await visitor(await opened('buying'));
    const { page } = visit;
    const open = async (name: string): Promise<void> => {
      await page.getByRole('textbox', { name: 'Name', description: /Two accounts may have the same/ }).fill(name);
      await page.getByRole('button', { name: 'Open an account' }).click();
      await page.getByRole('button', { name: 'I have kept it' }).click();
      await until(async () => (await nameIn(page).textContent()) === name);
    };
    await page.goto(`${web.market.baseUrl}/console/services/new`);
    await page.getByText('This account calls services.').waitFor();
    await visit.shot('session-selling');
    expect(await visit.findings()).toEqual([]);
    await open('selling');
    await page.getByRole('button', { name: 'List it' }).waitFor();
    await page.getByRole('button', { name: 'Open another account' }).click();
    await visit.shot('session-another');
    await open('another');
    await page.getByRole('button', { name: /^selling/ }).waitFor();
    await page.getByRole('button', { name: /^buying/ }).waitFor();
    expect(await page.getByRole('dialog').count()).toBe(0);
    expect(visit.complaints).toEqual([]);
    await visit.close();
  });

  it('does not notice that a bearer ends: a refused one is replaced, once for all requests', async () => {
    const key = await opened('patient');
    const visit = await visitor(key);
    const { page } = visit;
    const sent = heard(page);
    await endBearer(key);
    await page.getByRole('link', { name: 'Overview' }).click();
    await page.getByRole('link', { name: 'Money', exact: true }).click();
    await page.getByText('Nothing has moved yet').waitFor();
    expect((await rows(key)).map(({ bearers }) => bearers)).toEqual([2]);
    expect(new Set(sent).size).toBe(2);
    // The browser itself reports the refused ones.
    expect(visit.complaints.splice(0).filter((line) => !line.includes('401'))).toEqual([]);
    await visit.close();
  });

  it('opens many tabs: they share one bearer, and those that nobody sees ask for nothing', async () => {
    const key = await opened('many tabs');
    const visit = await visitor(key);
    const context = visit.page.context();
    // As text: the tests' own types know no browser.
    await context.addInitScript("Object.defineProperty(document, 'hidden', { get: () => !globalThis.isSeen })");
    const tabs = await Promise.all([1, 2, 3, 4].map(() => context.newPage()));
    const tokens = tabs.map((tab) => asked(tab, 'POST /api/v1/session/token'));
    const lists = tabs.map((tab) => asked(tab, 'GET /api/v1/session'));
    const sumOf = (counts: readonly (() => number)[]) => counts.reduce((sum, count) => sum + count(), 0);
    const open = (tab: Page) => tab.goto(`${web.market.baseUrl}/console`).then(() => nameIn(tab).waitFor());
    await Promise.all(tabs.map(open));
    expect([sumOf(tokens), sumOf(lists)]).toEqual([0, 0]);
    await tabs[0]?.evaluate("globalThis.isSeen = true, document.dispatchEvent(new Event('visibilitychange'))");
    await until(() => sumOf(lists) === 1);
    // As after a start of the browser: no tab has anything, and all ask at once.
    await visit.page.close();
    await Promise.all(tabs.map((tab) => tab.goto('about:blank')));
    await Promise.all(tabs.map(open));
    expect([sumOf(tokens), sumOf(lists)]).toEqual([1, 1]);
    await visit.close();
  });

  it('is told to try again, and not to sign in, when the gateway does not answer', async () => {
    const key = await opened('unlucky');
    const visit = await visitor(key);
    const { page } = visit;
    const path = '**/api/v1/session/token';
    const answers = async (status: number, seconds: number, message: string, times = Number.MAX_SAFE_INTEGER) => {
      await page.unroute(path);
      const headers = { 'Retry-After': String(seconds), 'Content-Type': 'application/json' };
      const body = JSON.stringify({ error: status === 429 ? 'rate_limited' : 'unavailable', message, status });
      await page.route(path, (route) => route.fulfill({ status, headers, body }), { times });
    };
    const isAskedAgain = async () => {
      expect(await page.getByText('Open an account').count()).toBe(0);
      expect(await page.getByRole('button', { name: 'Try again' }).count()).toBe(1);
    };
    await answers(429, 600, 'You have sent too many requests.');
    await page.reload();
    await page.getByText('Try again in 600 seconds').waitFor();
    await isAskedAgain();
    expect(await visit.findings()).toEqual([]);
    await visit.shot('session-unanswered');
    await answers(503, 600, 'The gateway cannot answer now.');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('The gateway cannot answer now.').waitFor();
    await isAskedAgain();
    // Nor to open another account on the way to a call.
    await web.market.service({ endpoint: service.url, name: 'For the unlucky' });
    await page.getByRole('link', { name: 'Services', exact: true }).click();
    await page.getByRole('link', { name: 'For the unlucky' }).click();
    expect(await page.getByRole('button', { name: 'Open an account and call' }).isDisabled()).toBe(true);
    await page.getByRole('link', { name: 'Console', exact: true }).click();
    // Once it has said when to come again, the page does so by itself.
    await answers(503, 1, 'The gateway is back in a second.', 1);
    await page.getByRole('button', { name: 'Try again' }).click();
    await until(async () => (await nameIn(page).textContent()) === 'unlucky');
    await visit.close();
  });

  it('is not signed out by one 401 while another tab signs in: a tab asks twice', async () => {
    const key = await opened('asks twice');
    const visit = await visitor(key);
    const { page } = visit;
    const count = asked(page, 'POST /api/v1/session/token');
    await page.route(
      '**/api/v1/session/token',
      (route) => route.fulfill({ status: 401, contentType: 'application/json', body: '{"error":"unauthorized"}' }),
      { times: 1 },
    );
    await endBearer(key);
    await page.getByRole('link', { name: 'Money', exact: true }).click();
    await page.getByText('Nothing has moved yet').waitFor();
    expect([count(), await nameIn(page).textContent()]).toEqual([2, 'asks twice']);
    await visit.close();
  });

  it('calls services with a new bearer when the former has ended: a visitor, and a provider who tests', async () => {
    const path = await web.market.service({ endpoint: service.url, name: 'Renewed' });
    const id = path.split('/').at(-1);
    const key = web.market.provider;
    const visit = await visitor(key);
    const { page } = visit;
    for (const [address, verb] of [
      [`/services/${id}`, /^Call/],
      [`/console/services/${id}`, 'Make the call'],
    ] as const) {
      await page.goto(`${web.market.baseUrl}${address}`);
      const button = page.getByRole('button', { name: verb });
      await button.waitFor();
      await until(() => button.isEnabled());
      await endBearer(key);
      await button.click();
      await page.getByText('200 OK').waitFor();
    }
    await visit.close();
  });

  it('sees where the account is signed in, and ends that: one, or all', async () => {
    const key = await opened('everywhere');
    const [visit, elsewhere] = [await visitor(key), await visitor(key)];
    const { page } = visit;
    await page.getByRole('link', { name: 'Sessions' }).click();
    await page.getByRole('row', { name: /Another browser/ }).waitFor();
    expect(await page.getByRole('row').count()).toBe(3);
    await visit.shot('sessions');
    expect(await visit.findings()).toEqual([]);
    await page.setViewportSize({ width: 390, height: 844 });
    await visit.shot('sessions-phone');
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    expect(await page.evaluate(WIDE_TABLES)).toEqual([]);
    await page.emulateMedia({ colorScheme: 'dark' });
    await visit.shot('sessions-dark');
    expect(await visit.findings('colours')).toEqual([]);
    await page.emulateMedia({ colorScheme: 'light' });
    await page.setViewportSize({ width: 1280, height: 900 });
    await page.getByRole('button', { name: 'End the session of everywhere, another browser' }).click();
    await page.getByRole('button', { name: 'End session' }).click();
    await page.getByRole('row', { name: /Another browser/ }).waitFor({ state: 'detached' });
    await elsewhere.page.getByRole('link', { name: 'Money', exact: true }).click();
    await elsewhere.page.getByRole('heading', { name: 'Open an account' }).waitFor();
    await signIn(elsewhere.page, key);
    await page.getByRole('button', { name: 'Sign out everywhere', exact: true }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Sign out everywhere' }).click();
    await page.getByRole('heading', { name: 'Open an account' }).waitFor();
    expect(await rows(key)).toEqual([]);
    await elsewhere.page.reload();
    await elsewhere.page.getByRole('heading', { name: 'Open an account' }).waitFor();
    expect(visit.complaints).toEqual([]);
    await Promise.all([visit.close(), elsewhere.close()]);
  });

  it('goes on after rotating the own key, and is signed out with the next page when the key or the account has ended', async () => {
    const key = await opened('rotating');
    const visit = await visitor(key);
    const { page } = visit;
    await page.getByRole('link', { name: 'Keys' }).click();
    await page.getByRole('button', { name: `Rotate ${key.key_id}` }).click();
    await page.getByLabel('The present secret stays valid').selectOption('0');
    await page.getByRole('button', { name: 'Make a new secret' }).click();
    await page.getByRole('button', { name: 'I have kept it' }).click();
    await page.reload();
    expect(await nameIn(page).textContent()).toBe('rotating');
    expect(visit.complaints).toEqual([]);
    const admin = { key: web.market.admin };
    await web.market.json(`/api/v1/keys/${key.key_id}`, { ...admin, method: 'DELETE' });
    await page.getByRole('link', { name: 'Money', exact: true }).click();
    await page.getByRole('heading', { name: 'Open an account' }).waitFor();
    await page.getByText('You were signed out here').waitFor();
    expect(await page.evaluate('localStorage.length')).toBe(0);

    const closed = await opened('closing');
    await signIn(page, closed);
    await web.market.json(`/api/v1/admin/accounts/${closed.account_id}/close`, { ...admin, method: 'POST' });
    await page.getByRole('link', { name: 'Money', exact: true }).click();
    await page.getByRole('heading', { name: 'Open an account' }).waitFor();
    await visit.close();
  });

  it("has opened an account with a call: it is this browser's, and leaving loses nothing", async () => {
    const path = await web.market.service({ endpoint: service.url, name: 'Tried' });
    const visit = await web.visit(`/services/${path.split('/').at(-1)}`);
    const { page } = visit;
    await page.getByText('This browser stays signed in with the new account.').waitFor();
    await page.getByRole('button', { name: /^Open an account and call/ }).click();
    await page.getByText('200 OK').waitFor();
    await page.getByText('this browser is signed in').waitFor();
    expect(await page.evaluate('dispatchEvent(new Event("beforeunload", { cancelable: true }))')).toBe(true);
    await visit.shot('session-try');
    await page.reload();
    await page.locator('.who', { hasText: 'My account' }).waitFor();
    // The page has a bearer, which is no key for a program.
    expect(await page.getByLabel('Put my key').count()).toBe(0);
    await page.getByRole('button', { name: /^Call/ }).click();
    await page.getByText('200 OK').waitFor();
    // The key was shown once. Who signs out without having kept one would lose the account.
    await page.goto(`${web.market.baseUrl}/console`);
    await page.getByText('The key of this account was shown once.').waitFor();
    expect(await visit.findings()).toEqual([]);
    await page.getByRole('button', { name: 'Sign out' }).click();
    const question = page.getByRole('dialog', { name: 'Sign out and lose the account?' });
    await question.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('link', { name: 'Make a key' }).click();
    await page.getByRole('button', { name: 'New key without a budget' }).click();
    await page.getByRole('button', { name: 'Make the key' }).click();
    await page.getByText('The key of this account was shown once.').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'I have kept it' }).click();
    await page.getByText('The key of this account was shown once.').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Open an account' }).waitFor();
    expect(visit.complaints).toEqual([]);
    await visit.close();
  });

  it('may keep the key to one tab', async () => {
    const key = await opened('shared computer');
    const visit = await web.visit('/console');
    const { page } = visit;
    await page.getByLabel('Stay signed in on this browser').first().uncheck();
    await page.getByLabel('API key').fill(textOf(key));
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
    expect(await rows(key)).toEqual([]);
    expect(await page.context().cookies()).toEqual([]);
    await page.reload();
    await page.getByRole('heading', { name: 'Open an account' }).waitFor();
    await visit.close();
  });
});

/** Serves on a free port of 127.0.0.1. @param names  of the certificate; absent: plain http */
async function served(listener: RequestListener, names?: string): Promise<number> {
  const server = names === undefined ? createServer(listener) : createTlsServer(authority.issue(names), listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

const emptyPage: RequestListener = (_request, response) => {
  response.setHeader('Content-Type', 'text/html');
  response.end('<!doctype html><title>evil</title>');
};

/** Everything that a page may try with the session of its visitor. @returns what it could read */
function attack(page: Page, base: string): Promise<string[]> {
  return page.evaluate(async (at) => {
    const tries = [
      ['POST', '/token'],
      ['GET', ''],
      ['GET', '?everywhere=true'],
      ['DELETE', ''],
      ['DELETE', '?everywhere=true'],
      ['POST', ''],
    ] as const;
    const read: string[] = [];
    for (const [method, path] of tries) {
      for (const mode of ['cors', 'no-cors', 'same-origin'] as const) {
        const asked = fetch(`${at}/api/v1/session${path}`, { method, mode, credentials: 'include' });
        const text = await asked.then((response) => response.text()).catch(() => '');
        if (text !== '' && !text.includes('"error"')) read.push(`${method} ${path} ${mode}: ${text}`);
      }
    }
    return read;
  }, base);
}

describe('an attacker', () => {
  it('on another port of the host has the cookie, and can do nothing with it', async () => {
    const key = await opened('victim of a port');
    const visit = await visitor(key);
    const before = await rows(key);
    let stolen = '';
    const port = await served((request, response) => {
      if (request.url?.startsWith('/api/v1/session')) stolen = request.headers.cookie ?? '';
      emptyPage(request, response);
    });
    const evil = await visit.page.context().newPage();
    await evil.goto(`http://127.0.0.1:${port}/api/v1/session`);
    // Cookies know no ports.
    expect(stolen).toMatch(/^tollgate-session-\d+=acf_/);
    expect(await attack(evil, web.market.baseUrl)).toEqual([]);
    for (const page of [undefined, 'a guess']) {
      const headers = {
        Origin: web.market.baseUrl,
        Cookie: stolen,
        ...(page === undefined ? {} : { 'X-ACF-Page-Secret': page }),
      };
      for (const [method, path] of [
        ['POST', '/token'],
        ['GET', ''],
        ['DELETE', ''],
      ] as const) {
        expect((await web.market.request(`/api/v1/session${path}`, { method, headers })).status).toBe(401);
      }
    }
    expect(await rows(key)).toEqual(before);
    await visit.page.reload();
    expect(await nameIn(visit.page).textContent()).toBe('victim of a port');
    await visit.close();
  });

  it('in a proxied document has no origin, no cookie, and no answer', async () => {
    const key = await opened('victim of a document');
    const visit = await visitor(key);
    const before = await rows(key);
    const path = await web.market.service({ endpoint: service.url });
    const evil = await visit.page.context().newPage();
    await evil.route(`**${path}/**`, (route) =>
      route.continue({ headers: { ...route.request().headers(), authorization: `Bearer ${textOf(key)}` } }),
    );
    await evil.goto(`${web.market.baseUrl}${path}/document`);
    expect(await evil.evaluate('[document.title, origin]')).toEqual(['proxied', 'null']);
    const asked = evil.waitForRequest('**/api/v1/session/token');
    expect(await attack(evil, web.market.baseUrl)).toEqual([]);
    const headers = await (await asked).allHeaders();
    expect([headers.origin, headers.cookie]).toEqual(['null', undefined]);
    expect(await rows(key)).toEqual(before);
    await visit.close();
  });

  it('on a name that is rebound to the gateway finds no session, and makes none', async () => {
    const key = await opened('attacker');
    const visit = await web.visit('/');
    const { page } = visit;
    const at = `http://rebound.test:${new URL(web.market.baseUrl).port}`;
    await page.goto(`${at}/console`);
    // The page itself offers none there.
    await page.getByLabel('Remember the key until this tab is closed').first().waitFor();
    expect(await attack(page, at)).toEqual([]);
    const status = await page.evaluate(
      async (bearer) => (await fetch('/api/v1/session', { method: 'POST', headers: { Authorization: bearer } })).status,
      `Bearer ${textOf(key)}`,
    );
    expect([status, await rows(key), await page.context().cookies()]).toEqual([403, [], []]);
    await signIn(page, key, `${at}/console`);
    expect([await rows(key), await page.context().cookies()]).toEqual([[], []]);
    await visit.close();
  });

  it('cannot sign a visitor in from a foreign page: neither with a key nor with a form', async () => {
    const key = await opened('attacker');
    const visit = await web.visit('/');
    const evil = await visit.page.context().newPage();
    const port = await served(emptyPage);
    await evil.goto(`http://evil.test:${port}/`);
    const tried = await evil.evaluate(
      async ([at, bearer]) => {
        const send = (init: RequestInit) =>
          fetch(`${at}/api/v1/session`, { method: 'POST', credentials: 'include', ...init }).then(
            () => 'sent',
            () => 'refused',
          );
        return [await send({ headers: { Authorization: bearer } }), await send({ headers: { 'X-Api-Key': bearer } })];
      },
      [web.market.baseUrl, `Bearer ${textOf(key)}`] as const,
    );
    expect(tried).toEqual(['refused', 'refused']);
    await evil.setContent(
      `<form method="post" action="${web.market.baseUrl}/api/v1/session"><button>Win</button></form>`,
    );
    const answered = evil.waitForResponse('**/api/v1/session');
    await evil.getByRole('button').click();
    const answer = await answered;
    expect([answer.status(), answer.headers()['set-cookie']]).toEqual([401, undefined]);
    expect([await rows(key), await evil.context().cookies()]).toEqual([[], []]);
    await visit.close();
  });

  it('on a sibling subdomain plants a cookie for nothing, and cannot use the one that is there', async () => {
    const [mine, key] = [await opened('planter'), await opened('victim of a sibling')];
    const gateway = Number(new URL(web.market.baseUrl).port);
    const port = await served((request, response) => {
      const { method, url, headers } = request;
      const passed = send({ port: gateway, host: '127.0.0.1', method, path: url, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(response);
      });
      request.pipe(passed);
    }, 'DNS:*.example.test');
    const evilPort = await served(emptyPage, 'DNS:*.example.test');
    const at = `https://gateway.example.test:${port}`;
    const name = `__Secure-tollgate-session-${port}`;
    // The planter's own session, of a client that keeps nothing beside its cookie.
    const planted = await web.market.request('/api/v1/session', {
      key: mine,
      method: 'POST',
      headers: { Origin: web.market.baseUrl },
    });
    const value = /=([^;]+)/.exec(planted.headers.get('set-cookie') ?? '')?.[1];
    const visit = await web.visit('/', { insecure: true });
    const { page } = visit;
    const evil = await page.context().newPage();
    await evil.goto(`https://evil.example.test:${evilPort}/`);
    // As text: the tests' own types know no browser.
    const attributes = 'Domain=example.test; Path=/api/v1/session; Secure';
    await evil.evaluate(`document.cookie = ${JSON.stringify(`${name}=${value}; ${attributes}`)}`);
    expect(await page.context().cookies(`${at}/api/v1/session`)).toHaveLength(1);
    await page.goto(`${at}/console`);
    await page.getByRole('heading', { name: 'Open an account' }).waitFor();
    await signIn(page, key, `${at}/console`);
    await page.reload();
    expect(await nameIn(page).textContent()).toBe('victim of a sibling');
    const cookies = await page.context().cookies(`${at}/api/v1/session`);
    expect(cookies.map((cookie) => cookie.name)).toEqual([name, name]);
    expect(cookies.find((cookie) => cookie.value !== value)).toMatchObject({
      ...{ domain: 'gateway.example.test', path: '/api/v1/session', httpOnly: true, secure: true, sameSite: 'Strict' },
    });
    const before = await rows(key);
    expect(await attack(evil, at)).toEqual([]);
    expect(await rows(key)).toEqual(before);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Open an account' }).waitFor();
    await until(async () => (await rows(key)).length === 0);
    expect(await rows(mine)).toHaveLength(1);
    await visit.close();
  });

  it('with a stolen bearer has it until its owner signs out, and makes no session of it', async () => {
    const key = await opened('robbed');
    const visit = await visitor(key);
    const sent = heard(visit.page);
    await visit.page.getByRole('link', { name: 'Money', exact: true }).click();
    const [stolen = ''] = await until(async () => (sent.length > 0 ? sent : null));
    expect(await statusOf(stolen)).toBe(200);
    const thief = { headers: { Authorization: stolen, Origin: web.market.baseUrl }, method: 'POST' };
    expect((await web.market.request('/api/v1/session', thief)).status).toBe(403);
    await visit.page.getByRole('button', { name: 'Sign out' }).click();
    await until(async () => (await rows(key)).length === 0);
    expect(await statusOf(stolen)).toBe(401);
    await visit.close();
  });
});
