// What one account may take while others need it too. One stack for all.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { deferred } from '../upstream/helpers.ts';
import { type Key, Marketplace } from './marketplace.ts';

let market: Marketplace;
let attacker: Key;
let other: Key;

beforeAll(async () => {
  market = await Marketplace.start();
  attacker = await market.buyer(5);
  other = await market.buyer(5);
});
afterAll(() => market.stop());

it('an account whose pages hang takes no page from anybody else', async () => {
  const unlocked = deferred();
  const locked = deferred();
  const lock = market.stores.sql.begin(async (tx) => {
    await tx`LOCK TABLE calls IN ACCESS EXCLUSIVE MODE`;
    locked.resolve();
    await unlocked.promise;
  });
  await locked.promise;
  const hanging = Array.from({ length: 12 }, () => market.request('/api/v1/usage/me', { key: attacker }));
  try {
    // A new account, so that its key must be looked up in Postgres too.
    const newcomer = await market.buyer(0);
    const startedAt = performance.now();
    for (const key of [other, newcomer]) expect((await market.request('/api/v1/keys', { key })).status).toBe(200);
    expect(performance.now() - startedAt).toBeLessThan(1_000);
  } finally {
    unlocked.resolve();
    await lock;
  }
  expect((await Promise.all(hanging)).map(({ status }) => status)).toEqual(Array(12).fill(200));
});
