// Budgets with everything at once: many calls, several processes, refunds, captures, and processes that are killed.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { periodAt } from '../../src/keys/budget-period.ts';
import { hashSecret, newKeyId, newSecret } from '../../src/keys/credentials.ts';
import { buildSources } from '../support/build.ts';
import { readChild } from '../support/child-state.ts';
import { until } from '../support/wait.ts';
import type { Key, MarketClient } from './market-client.ts';
import { echo, Marketplace, startService, type TestService } from './marketplace.ts';
import { RawCaller, type RawResponse } from './raw-caller.ts';
import { WorkerStack } from './worker-stack.ts';

const SETTINGS = { MAX_RATE_LIMIT: '1000000', INSTANCE_LEASE_SECONDS: '10' };
const PRICE = 10_000;
const CONNECTIONS = 64;

type Child = Key & { readonly parents: readonly string[] };

/** A key below this one, with a budget for that many calls in all. */
async function childOf(
  market: MarketClient,
  parent: Key & { parents?: readonly string[] },
  calls: number,
): Promise<Child> {
  const parents = [...(parent.parents ?? []), parent.key_id];
  const child = { key_id: newKeyId(), secret: newSecret(), account_id: parent.account_id, parents };
  await market.stores.sql`
    INSERT INTO api_keys (key_id, account_id, role, secret_hash, rate_limit, ancestors, budget_amount, budget_period)
    VALUES (${child.key_id}, ${child.account_id}, 'buyer', ${hashSecret(child.secret)}, 1000000, ${parents},
            ${calls * PRICE}, 'total')`;
  return { ...parent, ...child };
}

/** A buyer with more money than any test spends, whose limit no test reaches. */
async function owner(market: MarketClient): Promise<Key> {
  const key = await market.buyer(100);
  const body = { rate_limit: 1_000_000 };
  await market.json(`/api/v1/keys/${key.key_id}`, { key: market.admin, method: 'PATCH', body });
  return key;
}

/** Sends this many calls, over 64 connections at once. They are new ones: the gateway ends those that idle. */
async function callAll(market: MarketClient, path: (n: number) => string, key: Key, count: number) {
  const each = Array.from({ length: Math.min(CONNECTIONS, count) }, async (_, i) => {
    const responses: RawResponse[] = [];
    const caller = await RawCaller.connect(market.baseUrl);
    try {
      for (let n = i; n < count; n += CONNECTIONS) responses.push(await caller.exchange(`GET ${path(n)}`, { key }));
      return responses;
    } finally {
      caller.destroy();
    }
  });
  return (await Promise.all(each)).flat();
}

async function spentOf(market: MarketClient, { account_id, key_id }: Key): Promise<number> {
  const { redis, keys } = market.stores;
  const wallet = keys.wallet(keys.shardOf(account_id), account_id);
  return (await readChild(redis, wallet, key_id))?.spentMicros ?? 0;
}

async function storedOf(market: MarketClient, { account_id, key_id }: Key): Promise<number> {
  const rows = await market.stores.sql<{ spent: number }[]>`
    SELECT spent FROM budget_usage WHERE account_id = ${account_id} AND key_id = ${key_id}
    AND period = ${periodAt('total', 0, 0)}`;
  return rows[0]?.spent ?? 0;
}

const by = (responses: readonly RawResponse[], status: number) => responses.filter((its) => its.status === status);

async function thousandCalls(market: MarketClient, path: string): Promise<void> {
  const root = await owner(market);
  const team = await childOf(market, root, 10);
  const agent = await childOf(market, team, 500);
  const responses = await callAll(market, () => path, agent, 1_000);
  expect([by(responses, 200).length, by(responses, 402).length]).toEqual([10, 990]);
  const refused = JSON.parse(String(by(responses, 402)[0]?.body));
  expect(refused).toMatchObject({ error: 'budget_exceeded', limit_key: team.key_id, remaining: 0, resets_at: null });
  expect(
    by(responses, 200)
      .map(({ get }) => Number(get('x-acf-balance')))
      .sort(),
  ).toEqual(Array.from({ length: 10 }, (_, i) => i / 100));
  await market.settled(root.account_id);
  for (const key of [team, agent]) {
    expect([await spentOf(market, key), await storedOf(market, key)]).toEqual([10 * PRICE, 10 * PRICE]);
  }
  // The key above has no budget.
  const [beside] = await callAll(market, () => path, root, 1);
  expect(beside?.status).toBe(200);
}

describe('one gateway', () => {
  it('admits 10 of 1 000 simultaneous calls when the budget covers 10', async () => {
    const market = await Marketplace.start(SETTINGS);
    const service = await startService(echo);
    try {
      await thousandCalls(market, await market.service({ endpoint: service.url, price: PRICE / 1e6 }));
    } finally {
      await market.stop();
      await service.close();
    }
  });
});

describe('four gateways', () => {
  let stack: WorkerStack;
  const services: TestService[] = [];

  const listed = async (answer: (request: IncomingMessage, response: ServerResponse) => void, terms = {}) => {
    const service = await startService(answer);
    services.push(service);
    const path = await stack.service({ endpoint: service.url, price: PRICE / 1e6, ...terms });
    await stack.listedEverywhere(path);
    return path;
  };

  beforeAll(async () => {
    stack = await WorkerStack.start(buildSources(), { ...SETTINGS, WORKERS: '4' });
  });
  afterAll(async () => {
    await stack.stop();
    for (const service of services) await service.close();
  });

  it('admit 10 of 1 000 simultaneous calls when the budget covers 10', async () => {
    await thousandCalls(stack, await listed(echo));
  });

  it('never hold or charge more than the budget, even with refunds and captures between the calls', async () => {
    // With a body: the gateway ends the connection of some responses without one (http/unread.ts).
    const fails = await listed((_, response) => response.writeHead(500).end('x'));
    const byUse = await listed((_, response) => response.writeHead(200, { 'X-ACF-Charge': '0.001' }).end('x'), {
      price: 0.0005,
      max_price: 0.02,
    });
    const fixed = await listed(echo);
    const root = await owner(stack);
    const agent = await childOf(stack, root, 10);
    let [most, isOver] = [0, false];
    const watching = (async () => {
      while (!isOver) most = Math.max(most, await spentOf(stack, agent));
    })();
    const paths = [fails, byUse, fails, byUse, fixed];
    const [responses] = await Promise.all([
      callAll(stack, (n) => paths[n % 5] as string, agent, 400).finally(() => {
        isOver = true;
      }),
      watching,
    ]);
    expect(most).toBeGreaterThan(5 * PRICE);
    expect(most).toBeLessThanOrEqual(10 * PRICE);
    expect(by(responses, 500).length).toBeGreaterThan(0);
    expect(by(responses, 402).length).toBeGreaterThan(0);
    await stack.settled(root.account_id);
    const [charged] = await stack.stores.sql<{ sum: number }[]>`
      SELECT sum(amount)::bigint AS sum FROM calls WHERE key_id = ${agent.key_id}`;
    expect(charged?.sum).toBeLessThanOrEqual(10 * PRICE);
    const spent = [await spentOf(stack, agent), await storedOf(stack, agent)];
    expect(spent).toEqual([charged?.sum, charged?.sum]);
  });

  it('that are killed give back, exactly once, what their open calls held of the budget', async () => {
    const never = await listed(() => {});
    const fixed = await listed(echo);
    const root = await owner(stack);
    const agent = await childOf(stack, root, 10);
    await callAll(stack, () => fixed, agent, 3);
    const cut = Array.from({ length: 7 }, () => callAll(stack, () => never, agent, 1).catch(() => null));
    await until(async () => (await spentOf(stack, agent)) === 10 * PRICE);
    const workers = ['1', '2', '3', '4'].map((worker) => stack.supervisor.pidOf(worker));
    const { redis, keys } = stack.stores;
    const lease = keys.lease[keys.shardOf(root.account_id)] as string;
    const dying = (await redis.command('hkeys', [lease])) as string[];
    for (const pid of workers) process.kill(pid, 'SIGKILL');
    await Promise.all(cut);
    // Their leases run out at once.
    await redis.command('hset', [lease, ...dying.flatMap((instance) => [instance, '1'])]);
    await until(() => ['1', '2', '3', '4'].every((worker, i) => stack.supervisor.pidOf(worker) !== workers[i]));
    await until(async () => (await spentOf(stack, agent)) === 3 * PRICE);
    const responses = await callAll(stack, () => fixed, agent, 100);
    expect([by(responses, 200).length, by(responses, 402).length]).toEqual([7, 93]);
    await stack.settled(root.account_id);
    expect(await storedOf(stack, agent)).toBe(10 * PRICE);
    expect(await stack.books()).toMatchObject({ drifting: [], total: '0', negative: 0 });
  });
});
