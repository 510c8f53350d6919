import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { emptyBucket } from '../support/empty-bucket.ts';
import { type Key, Marketplace, startService, type TestService } from './marketplace.ts';

/** Requests per minute: one token every 200 ms. */
const LIMIT = 300;
const CALLERS = 20;
const PLACES_PER_SECOND = LIMIT / 60;

let market: Marketplace;
let service: TestService;
let buyer: Key;
let path: string;

beforeAll(async () => {
  market = await Marketplace.start({ ANONYMOUS_RATE_LIMIT: String(LIMIT) });
  service = await startService((_request, response) => {
    response.writeHead(200, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify({ id: 'x', object: 'chat.completion', choices: [] }));
  });
  path = await market.service({ endpoint: service.url });
});
beforeEach(async () => {
  buyer = await market.buyer(0);
  expect((await market.request(path, { key: buyer })).status).toBe(200);
});
afterAll(async () => {
  await market.stop();
  await service.close();
});

const bucketOf = ({ account_id, key_id }: Key): string => {
  const { keys } = market.stores;
  return keys.key(keys.shardOf(account_id), key_id);
};

/** Sends this many requests at once. @returns the seconds each is told to wait, ascending */
async function waits(ask: () => Promise<Response>): Promise<number[]> {
  const responses = await Promise.all(Array.from({ length: CALLERS }, ask));
  const refused = responses.filter(({ status }) => status === 429);
  const seconds = refused.map(async (response) => {
    const retryAfter = Number(response.headers.get('retry-after'));
    const { message } = (await response.json()) as { message: string };
    expect(message).toContain(` ${retryAfter} second${retryAfter === 1 ? '.' : 's.'}`);
    return retryAfter;
  });
  return (await Promise.all(seconds)).sort((a, b) => a - b);
}

function expectSpread(seconds: readonly number[]): void {
  expect(seconds.length).toBeGreaterThan(CALLERS / 2);
  for (let i = 0; i < seconds.length; i++) {
    const least = Math.ceil((i + 1) / PLACES_PER_SECOND) - 1;
    // One more or less, because the first token comes back within the second in which the callers are refused.
    expect(seconds[i]).toBeGreaterThanOrEqual(Math.max(1, least));
    expect(seconds[i]).toBeLessThanOrEqual(least + 2);
  }
}

describe('an agent that uses up all tokens of its key', () => {
  const statusOf = async (target: string, options: object = {}): Promise<number> =>
    (await market.request(target, { key: buyer, ...options })).status;

  it('does not keep its owner from seeing what it does, or from rotating and revoking the key', async () => {
    await emptyBucket(market.stores.redis, bucketOf(buyer));
    // The bucket may have a token again, as it refills.
    const calls = await Promise.all(Array.from({ length: CALLERS }, () => statusOf(path)));
    expect(calls.filter((status) => status === 429).length).toBeGreaterThan(CALLERS / 2);
    for (const read of ['keys', 'keys/me', 'balance/me', 'usage/me'])
      expect(await statusOf(`/api/v1/${read}`)).toBe(200);
    const ofKey = `/api/v1/keys/${buyer.key_id}`;
    const rotated = await market.request(`${ofKey}/rotate`, { key: buyer, method: 'POST', body: {} });
    expect(rotated.status).toBe(200);
    expect(rotated.headers.get('x-ratelimit-limit')).toBe('30');
    const revoked = await market.request(ofKey, { key: buyer, method: 'DELETE' });
    expect(revoked.status).toBe(200);
    expect(Number(revoked.headers.get('x-ratelimit-remaining'))).toBeGreaterThanOrEqual(28);
    expect(await statusOf('/api/v1/keys/me')).toBe(401);
  });

  it('may try to revoke keys 30 times a minute; a wrong secret counts by address', async () => {
    const { redis, keys } = market.stores;
    await emptyBucket(redis, keys.control(keys.shardOf(buyer.account_id), buyer.account_id));
    const ofKey = `/api/v1/keys/${buyer.key_id}`;
    const refused = await market.request(ofKey, { key: buyer, method: 'DELETE' });
    expect(refused.status).toBe(429);
    expect(refused.headers.get('x-ratelimit-limit')).toBe('30');
    expect(refused.headers.get('retry-after')).toBe('2');
    expect(await statusOf(path)).toBe(200);
    const wrong = await market.request(ofKey, { key: { ...buyer, secret: market.provider.secret }, method: 'DELETE' });
    expect(wrong.status).toBe(401);
    expect(wrong.headers.get('x-ratelimit-limit')).toBe(String(LIMIT));
  });
});

describe('callers that are refused at the same time', () => {
  it('are all served when they return at the times they were told: the unchanged OpenAI SDK with its two retries', async () => {
    const openai = new OpenAI({ baseURL: market.baseUrl + path, apiKey: `${buyer.key_id}:${buyer.secret}` });
    await emptyBucket(market.stores.redis, bucketOf(buyer));
    const call = (): Promise<unknown> => openai.chat.completions.create({ model: 'small', messages: [] });
    const results = await Promise.allSettled(Array.from({ length: CALLERS }, call));
    const failed = results.flatMap((result) => (result.status === 'rejected' ? [String(result.reason)] : []));
    expect(failed).toEqual([]);
  });

  it('and have the same key are told different times, in the message too', async () => {
    await emptyBucket(market.stores.redis, bucketOf(buyer));
    expectSpread(await waits(() => market.request(path, { key: buyer })));
  });

  it.each(['calls', 'reads'])(
    'and have the same key are told different times by pages that use its bucket of %s',
    async (of) => {
      const { redis, keys } = market.stores;
      const reads = keys.reads(keys.shardOf(buyer.account_id), buyer.key_id);
      await emptyBucket(redis, of === 'calls' ? bucketOf(buyer) : reads);
      const page = of === 'calls' ? '/api/v1/discover' : '/api/v1/keys/me';
      expectSpread(await waits(() => market.request(page, { key: buyer })));
    },
  );

  it('and have the same address are told different times', async () => {
    await emptyBucket(market.stores.redis, market.stores.keys.ip('127.0.0.1'));
    expectSpread(await waits(() => market.request('/api/v1/discover')));
  });
});
