import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import '../support/browser.ts';
import { authorization, echo, type Key, startService, type TestService } from '../integration/marketplace.ts';
import { until } from '../support/wait.ts';
import { type Visit, WebMarket, WIDE_TABLES } from './web-market.ts';

const XSS = '"><img src=x onerror=alert(1)><script>alert(2)</script>';

let web: WebMarket;
let service: TestService;
let admin: Key;
let buyer: Key;
let path: string;

beforeAll(async () => {
  [web, service] = await Promise.all([WebMarket.start(), startService(echo)]);
  const { market } = web;
  path = await market.service({ endpoint: service.url, name: `Weather ${XSS}`, price: 0.25 });
  buyer = await market.json<Key>('/api/v1/keys', { method: 'POST', body: { owner_id: `acme ${XSS}`, role: 'buyer' } });
  // An operator with another account than the founder's, so that its key has its own rate limit.
  admin = await market.json<Key>('/api/v1/keys', {
    key: market.admin,
    method: 'POST',
    body: { role: 'admin' },
  });
  const change = { key: market.admin, method: 'PATCH', body: { rate_limit: 300 } };
  await market.json(`/api/v1/keys/${admin.key_id}`, change);
});
afterAll(async () => {
  await web?.stop();
  await service?.close();
});

const signedIn = (address: string, look: { dark?: boolean } = {}): Promise<Visit> =>
  web.visit(address, { ...look, key: `${admin.key_id}:${admin.secret}` });
const call = async (): Promise<number> =>
  (await web.market.request(path, { key: buyer, headers: { Authorization: authorization(buyer) } })).status;

/** Nothing of what others wrote ran, and no key was in an address. */
function isClean(visit: Visit): void {
  expect(visit.complaints).toEqual([]);
  const secrets = [admin.secret, buyer.secret];
  expect(visit.requested.filter((url) => secrets.some((secret) => url.includes(secret)))).toEqual([]);
}

describe("an operator's day in the console", () => {
  it('finds an account by its key, credits it once even if the request is sent twice, and shows its calls live', async () => {
    const visit = await signedIn('/console/accounts');
    const { page } = visit;
    await page.getByLabel('Label, account or key').fill(buyer.key_id);
    await page.getByRole('button', { name: 'Apply' }).click();
    await page.waitForURL(/q=acf_/);
    await until(async () => (await page.getByRole('row').count()) === 2);
    await page.getByRole('link', { name: /^acme/ }).click();
    await page.getByRole('heading', { level: 1, name: `acme ${XSS}` }).waitFor();

    // The first answer is lost on its way.
    let references: unknown[] = [];
    await page.route('**/api/v1/admin/credits', async (route) => {
      references = [...references, route.request().postDataJSON().reference];
      if (references.length > 1) return route.continue();
      await route.fetch();
      return route.abort();
    });
    await page.getByRole('button', { name: 'Add money' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Add', exact: true }).click();
    await page.getByText('Must be an amount in US dollars').waitFor();
    await page.getByLabel('Amount in US dollars').fill('5');
    await page.getByRole('button', { name: 'Add $5.00' }).click();
    await page.getByText('It is not known whether').waitFor();
    // Somebody who gives up and comes back finds the same payment.
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Add money' }).click();
    await page.getByText('The outcome of this payment is not known').waitFor();
    await page.getByRole('button', { name: 'Add $5.00' }).click();
    await page.getByText('nothing moved again').waitFor();
    expect(references).toHaveLength(2);
    expect(new Set(references).size).toBe(1);
    await page.unroute('**/api/v1/admin/credits');
    await until(async () => (await web.market.balance(buyer)).balance === 5);
    expect(visit.complaints.filter((line) => !line.includes('ERR_FAILED'))).toEqual([]);
    visit.complaints.length = 0;

    await page.getByRole('link', { name: 'Live', exact: true }).click();
    await page.getByRole('status').getByText('Live', { exact: true }).waitFor();
    const served = Promise.all(Array.from({ length: 8 }, call));
    await until(async () => ((await page.getByText('Calls a second').first().textContent()) ?? '') !== '');
    expect((await served).every((status) => status === 200)).toBe(true);
    await page.getByRole('cell', { name: '8', exact: true }).first().waitFor();
    expect(await visit.findings()).toEqual([]);
    await visit.shot('admin-live');
    isClean(visit);
    await visit.close();
  });

  it('suspends the account, whose key gets 403, resumes it, changes a limit, and finds all that in the audit', async () => {
    const visit = await signedIn(`/console/accounts/${buyer.account_id}`);
    const { page } = visit;
    await page.getByRole('button', { name: 'Suspend' }).click();
    await page.getByText('is refused from its next request on').waitFor();
    expect(await visit.findings()).toEqual([]);
    await page.getByLabel('Reason').fill('Your last invoice is unpaid.');
    await page.getByRole('button', { name: 'Suspend account' }).click();
    await page.getByText('Suspended: Your last invoice is unpaid.').waitFor();
    await page.getByRole('button', { name: 'Resume' }).waitFor();
    expect(await call()).toBe(403);
    await visit.shot('admin-account-suspended');
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.getByRole('button', { name: 'Resume account' }).click();
    await page.getByRole('button', { name: 'Suspend' }).waitFor();
    expect(await call()).toBe(200);

    await page.getByRole('button', { name: /^Change acf_/ }).click();
    await page.getByLabel('Requests a minute').fill('301');
    await page.getByRole('dialog').getByRole('button', { name: 'Save changes' }).click();
    await page.getByText('rate_limit: must be <= 300').waitFor();
    await page.getByLabel('Requests a minute').fill('120');
    await page.getByRole('dialog').getByRole('button', { name: 'Save changes' }).click();
    await page.getByRole('cell', { name: '120', exact: true }).waitFor();

    // More than there is: nothing is taken, and the dialog says how much could be.
    await page.getByRole('button', { name: 'Take out money' }).click();
    await page.getByLabel('Amount in US dollars').fill('500');
    await page.getByLabel('Reason').fill(`Paid twice ${XSS}`);
    await page.getByRole('button', { name: 'Take out $500.00' }).click();
    await page.getByText('Nothing was taken').waitFor();
    await page.getByLabel('Amount in US dollars').fill('0.5');
    await page.getByRole('button', { name: 'Take out $0.50' }).click();
    await page.getByText('$0.50 was taken out').waitFor();
    // The browser itself logs the 400 and the 409.
    expect(visit.complaints.every((line) => /400|409/.test(line))).toBe(true);
    visit.complaints.length = 0;

    await page.getByRole('tab', { name: 'Payments' }).click();
    await page.getByRole('cell', { name: `Paid twice ${XSS}` }).waitFor();
    await page.getByRole('tab', { name: 'Audit' }).click();
    for (const act of ['Account suspended', 'Account resumed', 'Money added', 'Money taken']) {
      await page.getByRole('cell', { name: act }).first().waitFor();
    }
    // The debit of $500 was begun and refused, that of $0.50 begun and taken.
    await page.getByText('Refused', { exact: true }).waitFor();
    expect(await page.getByText('Begun', { exact: true }).count()).toBe(2);
    expect(await visit.findings()).toEqual([]);
    await visit.shot('admin-account-audit');
    await page.getByRole('link', { name: 'Audit', exact: true }).click();
    await page
      .getByRole('row', { name: /Key changed/ })
      .first()
      .getByText(/account id acme/)
      .waitFor();
    await page.getByLabel('Action', { exact: true }).selectOption('account.suspend');
    await page.waitForURL(/action=account\.suspend/);
    await until(async () => (await page.getByRole('row').count()) === 2);
    await page.getByText('suspended', { exact: true }).waitFor();
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export CSV' }).click(),
    ]);
    expect(file.suggestedFilename()).toMatch(/^audit-.*\.csv$/);
    const [header, ...lines] = (await readFile(await file.path(), 'utf8')).trim().split('\r\n');
    expect(header).toContain('action,subject_type');
    expect(lines.map((line) => line.includes('account.suspend'))).toEqual([true]);
    expect(await visit.findings()).toEqual([]);
    await visit.shot('admin-audit');
    isClean(visit);
    await visit.close();
  });

  it('finds a call by its usage id, refunds it only once, and shows the statement of its buyer', async () => {
    await web.market.settled();
    const [charged] = (await web.market.records(buyer)).filter(({ amount }) => amount > 0);
    const id = charged?.usage_id ?? '';
    const { balance } = await web.market.balance(buyer);
    const visit = await signedIn('/console');
    const { page } = visit;
    await page.getByLabel('Find an account or a call').fill(id);
    await page.getByRole('button', { name: 'Find' }).click();
    await page.getByText('Its price was charged').waitFor();
    const another = await signedIn(`/console/calls/${id}`);
    for (const { page: of } of [visit, another]) {
      await of.getByRole('button', { name: 'Give this call back' }).click();
      await of.getByLabel('Reference').waitFor();
      expect(await of.getByLabel('Reference').inputValue()).toBe(`call ${id}`);
      expect(await of.getByLabel('Amount in US dollars').inputValue()).toBe('0.25');
      await of.getByLabel('Reason').fill(`It answered nonsense ${XSS}`);
    }
    expect(await visit.findings()).toEqual([]);
    await visit.shot('admin-give-back');
    await page.getByRole('button', { name: 'Give back $0.25' }).click();
    await page.getByText('$0.25 was given back.').waitFor();
    await page.getByText('All of it was given back.').waitFor();
    // A colleague had the same page open.
    await another.page.getByRole('button', { name: 'Give back $0.25' }).click();
    await another.page.getByText('nothing moved again').waitFor();
    expect((await web.market.balance(buyer)).balance).toBe(balance + 0.25);
    await page.getByRole('cell', { name: `It answered nonsense ${XSS}` }).waitFor();
    await visit.shot('admin-call');
    isClean(another);
    await another.close();

    await page.getByRole('link', { name: /^acme/ }).click();
    await page.getByRole('tab', { name: 'Statement' }).click();
    await page.getByText(`Reference: call ${id}`).waitFor();
    expect(await visit.findings()).toEqual([]);
    await visit.shot('admin-statement');
    // Both ways: from the statement to the call, and from the list of all refunds.
    await page.getByText('Call given back:').getByRole('link').first().click();
    await page.waitForURL(new RegExp(`/console/calls/${id}`));
    await page.goBack();
    await page.getByRole('link', { name: 'Payments', exact: true }).click();
    await page.getByRole('link', { name: 'Given back', exact: true }).click();
    await page.getByRole('cell', { name: `It answered nonsense ${XSS}` }).waitFor();
    expect(await visit.findings()).toEqual([]);
    await visit.shot('admin-refunds');
    await page.goto(`${web.market.baseUrl}/console/accounts/${buyer.account_id}`);
    await page.getByRole('tab', { name: 'Statement' }).click();
    // An address may name what is shown without a choice, too.
    await page.goto(`${page.url()}&ledger=wallet`);
    expect(await page.getByLabel('Which money').inputValue()).toBe('wallet');
    // What was paid leads to the calls that it was paid for.
    await page
      .getByRole('link', { name: `Weather ${XSS}` })
      .first()
      .click();
    await page.getByRole('cell', { name: '$0.25' }).first().waitFor();
    isClean(visit);
    await visit.close();
  });

  it('shows nothing below a filter that failed, and accepts labels where the API accepts ids', async () => {
    const visit = await signedIn('/console/calls');
    const { page } = visit;
    await page.getByRole('cell', { name: '$0.25' }).first().waitFor();
    await page.getByLabel('Buyer', { exact: true }).fill('nobody at all');
    await page.getByRole('button', { name: 'Apply' }).click();
    await page.getByText('No account has "nobody at all" in its label').waitFor();
    expect(await page.getByRole('row').count()).toBe(0);
    await page.getByLabel('Buyer', { exact: true }).fill('acme');
    await page.getByRole('button', { name: 'Apply' }).click();
    await page.getByRole('link', { name: /^acme/ }).first().waitFor();
    isClean(visit);
    await visit.close();
  });

  it('records a payout, runs a reconciliation, pauses a service, and finds the call', async () => {
    await web.market.settled();
    const visit = await signedIn('/console/accounts?role=provider');
    const { page } = visit;
    await page.getByRole('link', { name: 'provider', exact: true }).click();
    await page.getByRole('button', { name: 'Record payout' }).click();
    await page.getByLabel('Amount in US dollars').fill('1');
    await page.getByRole('button', { name: 'Record payout of $1.00' }).click();
    await page.getByText('$1.00 was recorded as paid out').waitFor();
    // Once more by mistake.
    await page.getByRole('button', { name: 'Record payout' }).click();
    await page.getByText('The last one: $1.00').waitFor();
    await page.getByLabel('Amount in US dollars').fill('1');
    await page.getByRole('button', { name: 'Record payout of $1.00' }).click();
    await page.getByText('Make no second transfer').waitFor();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Close account' }).click();
    await page.getByText('cannot be closed yet').waitFor();
    await page.getByRole('button', { name: 'Back' }).click();

    await page.getByRole('link', { name: 'Payments', exact: true }).click();
    await page.getByRole('link', { name: 'Paid out', exact: true }).click();
    await page.getByRole('cell', { name: '$1.00' }).waitFor();
    expect(await visit.findings()).toEqual([]);

    await page.getByRole('link', { name: 'Reconciliation', exact: true }).click();
    await page.getByRole('button', { name: 'Compare now' }).click();
    await page.getByText('The money agrees').waitFor();
    await until(async () => await page.getByRole('button', { name: 'Compare now' }).isEnabled());
    expect(await visit.findings()).toEqual([]);
    await visit.shot('admin-reconciliation');

    // Somebody wrote to Redis: an operator decides that the books are right, and then that the wallet is.
    const { redis, keys } = web.market.stores;
    const wallet = keys.wallet(keys.shardOf(buyer.account_id), buyer.account_id);
    for (const store of ['postgres', 'redis'] as const) {
      await redis.command('hincrby', [wallet, 'balance', '120000']);
      await page.getByRole('button', { name: 'Compare now' }).click();
      await page.getByRole('button', { name: /^End the drift of acme/ }).click();
      await page.getByLabel('Which store is right?').selectOption(store);
      const change = `Change the ${store === 'postgres' ? 'wallet' : 'balance'}`;
      await page.getByText(store === 'postgres' ? 'Takes $0.12 out of the wallet' : 'Adds $0.12 to').waitFor();
      await page.getByRole('button', { name: change }).click();
      await page.getByText('Say why').waitFor();
      await page.getByLabel('Reason').fill(`By hand ${XSS}`);
      expect(await visit.findings()).toEqual([]);
      await visit.shot(`admin-correction-${store}`);
      await page.getByRole('button', { name: change }).click();
      await page.getByText('The money agrees').waitFor();
    }
    await page
      .getByRole('table', { name: 'Drifts that operators ended' })
      .getByText('Redis', { exact: true })
      .waitFor();
    await until(async () => await page.getByRole('button', { name: 'Compare now' }).isEnabled());
    expect(await visit.findings()).toEqual([]);
    await visit.shot('admin-corrections');

    await page.getByRole('link', { name: 'Calls', exact: true }).click();
    await page
      .getByRole('cell', { name: `Weather ${XSS}` })
      .first()
      .waitFor();
    const href = await page.getByRole('row').nth(1).getByRole('link').first().getAttribute('href');
    await page.getByLabel('Find an account or a call').fill(href?.split('/').at(-1) ?? '');
    await page.getByRole('button', { name: 'Find' }).click();
    await page.getByText('Earned', { exact: true }).waitFor();
    expect(await visit.findings()).toEqual([]);

    await page.locator('.console-nav').getByRole('link', { name: 'Services' }).click();
    await page.getByRole('button', { name: 'Pause Weather' }).click();
    await page.getByRole('heading', { name: `Pause Weather ${XSS}?` }).waitFor();
    await page.getByRole('button', { name: 'Pause service' }).click();
    await page.getByRole('button', { name: 'List Weather' }).waitFor();
    await until(async () => (await call()) === 404);
    expect(await visit.findings()).toEqual([]);
    await visit.shot('admin-services');
    isClean(visit);
    await visit.close();
  });
});

it('the live page says that it is not live while the gateway sends nothing, and continues by itself', async () => {
  const visit = await signedIn('/console');
  const { page } = visit;
  await page.getByText('All well').waitFor();
  expect(await visit.findings()).toEqual([]);
  await visit.shot('admin-overview');
  await page.route('**/api/v1/admin/traffic', (route) => route.abort());
  await page.getByRole('link', { name: 'Live traffic' }).click();
  await page.getByText('Not live').waitFor();
  await page.unroute('**/api/v1/admin/traffic');
  await page.getByRole('status').getByText('Live', { exact: true }).waitFor();
  expect(visit.complaints.every((line) => line.includes('ERR_FAILED'))).toBe(true);
  await visit.close();
});

it('every page is readable in the dark and on a phone', async () => {
  const visit = await signedIn('/console', { dark: true });
  const { page } = visit;
  const pages = ['', 'live', 'accounts', `accounts/${buyer.account_id}`, 'services', 'calls', 'payments/debits'];
  for (const at of [...pages, 'reconciliation', 'audit', 'instances']) {
    await page.setViewportSize({ width: 1280, height: 900 });
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.goto(`/console${at === '' ? '' : `/${at}`}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await until(async () => (await page.locator('.skeleton').count()) === 0);
    for (const look of ['dark', 'phone'] as const) {
      if (look === 'phone') {
        await page.emulateMedia({ colorScheme: 'light' });
        await page.setViewportSize({ width: 390, height: 844 });
      }
      // Charts follow the width a moment later.
      const wide = 'document.documentElement.scrollWidth > document.documentElement.clientWidth';
      await until(async () => (await page.evaluate(wide)) === false);
      expect([at, look, await page.evaluate(WIDE_TABLES)]).toEqual([at, look, []]);
      expect([at, look, await visit.findings()]).toEqual([at, look, []]);
      await visit.shot(`admin-${look}-${at.split('/')[0] || 'overview'}${at.includes('s/') ? '-one' : ''}`);
    }
  }
  isClean(visit);
  await visit.close();
});
