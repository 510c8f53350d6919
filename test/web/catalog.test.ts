import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import '../support/browser.ts';
import { echo, startService, type TestService } from '../integration/marketplace.ts';
import { WebMarket } from './web-market.ts';

describe('the catalog in a browser', () => {
  let web: WebMarket;
  let service: TestService;

  beforeAll(async () => {
    [web, service] = await Promise.all([WebMarket.start(), startService(echo)]);
    await web.market.service({ endpoint: service.url, name: 'Weather', price: 0.002 });
  });
  afterAll(async () => {
    await web?.stop();
    await service?.close();
  });

  it('finds a service as one types, and keeps the search in the address', async () => {
    const visit = await web.visit('/');
    await visit.page.getByRole('searchbox').fill('weath');
    await visit.page.waitForURL(/\?q=weath$/);
    await visit.page.getByRole('link', { name: 'Weather' }).waitFor();
    expect(await visit.findings()).toEqual([]);
    await visit.shot('catalog');
    expect(visit.complaints).toEqual([]);
    await visit.close();
  });
});
