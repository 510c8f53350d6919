import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Marketplace } from './marketplace.ts';
import { RawCaller, requestText } from './raw-caller.ts';

let market: Marketplace;
beforeAll(async () => {
  market = await Marketplace.start({ ANONYMOUS_RATE_LIMIT: '10', TRUSTED_PROXY_HOPS: '1' });
});
afterAll(() => market.stop());

const statuses = async (count: number, headers: (i: number) => string[]): Promise<number[]> => {
  const caller = await RawCaller.connect(market.baseUrl);
  const seen: number[] = [];
  for (let i = 0; i < count; i++) {
    caller.send(requestText('GET /api/v1/discover', { headers: headers(i) }));
    seen.push((await caller.response()).status);
  }
  caller.destroy();
  return seen;
};

describe('an address behind a trusted proxy', () => {
  it('is the last one in X-Forwarded-For, however many header lines the proxies wrote', async () => {
    const seen = await statuses(12, (i) => [`X-Forwarded-For: 198.51.100.${i}`, 'X-Forwarded-For: 203.0.113.1']);
    expect(seen.slice(-2)).toEqual([429, 429]);
    expect(await statuses(1, () => ['X-Forwarded-For: 203.0.113.1, 203.0.113.2'])).toEqual([200]);
  });
});
