import { expect, it } from 'vitest';
import { startBrowser, startPage } from '../support/browser.ts';

it('a page has the origin of its own server', async () => {
  const browser = await startBrowser();
  const { page, origin, close } = await startPage(browser, 'shop.test');
  expect(await page.evaluate('location.origin')).toBe(origin);
  await close();
  await browser.close();
});
