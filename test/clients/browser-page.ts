import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startService } from '../integration/marketplace.ts';
import { type Browser, type OpenedPage, startPage } from '../support/browser.ts';
import { type DemoMarket, textOf } from './demo-market.ts';

/** examples/browser.html in Chromium, served from an origin unknown to the gateway. */
export function browserPageTests(demo: () => DemoMarket, startBrowser: () => Promise<Browser>): void {
  let browser: Browser;
  let opened: OpenedPage;

  beforeAll(async () => {
    browser = await startBrowser();
    opened = await startPage(browser, 'shop.test', readFileSync('examples/browser.html', 'utf8'));
  });
  afterAll(async () => {
    await opened.close();
    await browser.close();
  });

  /** Fills in the form as a person would, up to the button that calls the first operation of a service. */
  const choose = async (key: string, address: string, listing: string): Promise<void> => {
    const { page } = opened;
    await page.goto(address);
    await page.getByLabel('Gateway').fill(demo().url);
    await page.getByLabel('API key').fill(key);
    await page.getByRole('button', { name: 'List services' }).click();
    await page.locator('[name=service]').selectOption({ label: listing });
  };
  const told = async (): Promise<string | null> => {
    const { page } = opened;
    await page
      .getByRole('status')
      .filter({ hasText: /aid|No answer/ })
      .waitFor();
    return page.getByRole('status').textContent();
  };
  /** @returns what the page says of the price */
  const callAs = async (key: string, address: string, listing: string): Promise<string | null> => {
    await choose(key, address, `${listing} ($${demo().priceOf(listing)} per call)`);
    await opened.page.getByRole('button', { name: 'Call it' }).click();
    return told();
  };

  it('lists services, fills in their examples, makes a paid call and reads its price', async () => {
    const buyer = await demo().market.buyer(1);
    const price = await callAs(textOf(buyer), opened.origin, 'Parrot');
    expect(price).toBe('Answered with 200. Paid $0.004, $0.996 left.');
    await opened.page.locator('#answer', { hasText: 'You said: Hello' }).waitFor();
    expect((await demo().market.records(buyer)).map(({ outcome }) => outcome)).toEqual(['completed']);
  });

  it('shows why a call was refused, and that it cost nothing, when the page is opened as a file', async () => {
    const poor = await demo().market.buyer(0);
    const price = await callAs(textOf(poor), pathToFileURL('examples/browser.html').href, 'Parrot');
    expect(price).toBe('Not paid: the account needs a credit, or the budget of the key is spent.');
    await opened.page.locator('#answer', { hasText: 'insufficient_balance' }).waitFor();
  });

  it('makes one call for two clicks, and says that an answer was paid for whatever its status', async () => {
    let asked = 0;
    const busy = await startService((_, response) => {
      asked += 1;
      setTimeout(() => response.writeHead(429, { 'Retry-After': '1' }).end('too many of you'), 300);
    });
    const { market } = demo();
    const listing = { name: 'Busy', description: '', endpoint: busy.url, price: 0.25, category: 'test' };
    await market.json('/api/v1/services', { key: market.provider, method: 'POST', body: listing });
    await choose(textOf(await market.buyer(1)), opened.origin, 'Busy ($0.25 per call)');
    await opened.page.getByRole('button', { name: 'Call it' }).dblclick();
    expect(await told()).toBe('Answered with 429. Paid $0.25, $0.75 left.');
    expect(asked).toBe(1);
    await busy.close();
  });
}
