// Refunds of calls that have spent of budgets: what both stores have after a process died, or Redis lost data, between any two steps.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { KeyRecord } from '../../../src/keys/caller.ts';
import { readWallet } from '../../../src/ledger/reconcile/shard-view.ts';
import { newScene } from '../../admission/calls.ts';
import { comeBackOlder, keepState } from '../../ledger/reconcile/older-redis.ts';
import { addKeyTo } from '../../support/accounts.ts';
import { buildSources } from '../../support/build.ts';
import { readInText, writeChild } from '../../support/child-state.ts';
import { SHARDS } from '../../support/store.ts';
import { RefundMarket, type Sold } from './refund-market.ts';

let market: RefundMarket;
let build: string;
beforeAll(async () => {
  build = buildSources();
  market = await RefundMarket.open();
});
afterAll(() => market.close());
beforeEach(() => market.clear());

/** Periods of a day, and of a budget without end. */
const DAY = 20_000;
const TOTAL = 0;

type Chain = { readonly team: KeyRecord; readonly agent: KeyRecord };

async function chain(): Promise<Chain> {
  const { sql } = market.compared.ledger;
  const root = await market.buyer();
  const team = await addKeyTo(sql, root.accountId, 'buyer', 'owner', { under: root });
  return { team, agent: await addKeyTo(sql, root.accountId, 'buyer', 'owner', { under: team }) };
}

/** A call that counts in the budget of each of the two keys. */
const sold = ({ team, agent }: Chain, day = DAY, heldMicros = 10_000) =>
  market.sold(agent, {
    heldMicros,
    budgets: [
      { keyId: team.keyId, period: day },
      { keyId: agent.keyId, period: TOTAL },
    ],
  });

type Spent = [period: number, spentMicros: number];

const walletOf = ({ accountId }: KeyRecord): string => market.compared.ledger.store.walletName(accountId);

/** What both stores say that the keys have spent: Redis in its period, Postgres in this day. */
async function spentOf({ team, agent }: Chain, day = DAY): Promise<{ redis: Spent[]; postgres: number[] }> {
  const { ledger, hydrator } = market.compared;
  await hydrator.loadWallet(agent.accountId);
  const wallet = readWallet(Object.entries(await readInText(ledger.store.redis, walletOf(agent))).flat());
  const rows = await ledger.sql<{ keyId: string; spent: number }[]>`
    SELECT key_id AS "keyId", spent FROM budget_usage
    WHERE account_id = ${agent.accountId} AND period = ANY(${[day, TOTAL]}::bigint[])`;
  const keys = [team.keyId, agent.keyId];
  return {
    redis: keys.map((key) => {
      const { period, spentMicros } = wallet?.budgets.get(key) ?? { period: -1, spentMicros: -1 };
      return [period, spentMicros];
    }),
    postgres: keys.map((key) => rows.find(({ keyId }) => keyId === key)?.spent ?? 0),
  };
}

/** Keeps the wallet of these keys from being dropped by a comparison. */
async function keepBusy({ agent: { accountId } }: Chain): Promise<void> {
  const { store } = market.compared.ledger;
  const scene = { ...newScene(), accountId };
  await store.loadKey(scene.keyId, accountId);
  await market.compared.keepBusy(scene);
}

const both = (team: number, agent: number) => ({
  redis: [
    [DAY, team],
    [TOTAL, agent],
  ],
  postgres: [team, agent],
});

describe('budgets', () => {
  it('get refunded money back in the period that it was taken from', async () => {
    const keys = await chain();
    const call = await sold(keys);
    expect(await spentOf(keys)).toEqual(both(10_000, 10_000));
    await market.refund(call, { amount: 0.004, reference: 'a' });
    expect(await spentOf(keys)).toEqual(both(6_000, 6_000));
    await market.refund(call, { reference: 'b' });
    expect(await spentOf(keys)).toEqual(both(0, 0));
    expect((await market.money(keys.agent)).slice(0, 2)).toEqual([1_000_000, 1_000_000]);
    await market.check();
  });

  it('whose next period has begun keep what it has spent: only the books know the former period', async () => {
    const keys = await chain();
    const yesterday = await sold(keys);
    await sold(keys, DAY + 1, 3_000);
    const now = {
      redis: [
        [DAY + 1, 3_000],
        [TOTAL, 3_000],
      ],
      postgres: [0, 3_000],
    };
    await spentOf(keys);
    await market.refund(yesterday);
    expect(await spentOf(keys)).toEqual(now);
    await market.check();
    // A wallet that is loaded again has the same.
    const { store } = market.compared.ledger;
    await store.command('del', store.walletName(keys.agent.accountId));
    expect(await spentOf(keys)).toEqual(now);
    await market.check();
  });

  it('that are damaged in Redis keep the whole refund out of the wallet', async () => {
    const keys = await chain();
    const call = await sold(keys);
    await spentOf(keys);
    const { ledger } = market.compared;
    const { redis } = ledger.store;
    const [name, field] = [walletOf(keys.agent), keys.agent.keyId];
    await writeChild(redis, name, field, { spentMicros: 10_000.5 });
    const before = await readInText(redis, name);
    expect((await market.refund(call)).status).toBe(201);
    expect(market.warnings).toHaveLength(1);
    expect(await readInText(redis, name)).toEqual(before);
    await writeChild(redis, name, field, { spentMicros: 10_000 });
    await market.credits.applyMissing();
    expect(await spentOf(keys)).toEqual(both(0, 0));
    await market.check();
  });
});

describe('a refund whose process is killed', () => {
  it('at any step is in both stores, or is in neither and can be sent again', async () => {
    const { ledger } = market.compared;
    const before = [...[6, 7, 8, 9, 10, 11, 12, 13].map((n) => `statement ${n}`), 'before the commit'];
    const points = [...before, 'after the commit', 'after the script', 'after the mark'];
    const scenes: { readonly keys: Chain; readonly call: Sold }[] = [];
    for (const _ of points) {
      const keys = await chain();
      const call = await sold(keys);
      await spentOf(keys);
      scenes.push({ keys, call });
    }
    const places = { databaseUrl: ledger.databaseUrl, redisUrl: ledger.store.server.url, shards: SHARDS };
    const providerId = market.provider.accountId;
    await Promise.all(
      points.map(async (dieAt, i) => {
        const settings = { ...places, usageId: scenes[i]?.call.usageId, providerId, dieAt };
        const file = path.resolve('test/ledger/fixtures/refund-process.mjs');
        const child = spawn(process.execPath, [file, build, JSON.stringify(settings)], { stdio: 'inherit' });
        expect([dieAt, ...(await once(child, 'exit'))]).toEqual([dieAt, null, 'SIGKILL']);
      }),
    );
    const states = await Promise.all(
      scenes.map(async ({ keys }) => [
        ...(await market.money(keys.agent)).slice(0, 2),
        (await spentOf(keys)).redis[0]?.[1],
        (await spentOf(keys)).postgres[0],
      ]),
    );
    expect(states).toEqual([
      ...before.map(() => [990_000, 990_000, 10_000, 10_000]),
      [990_000, 1_000_000, 10_000, 0],
      [1_000_000, 1_000_000, 0, 0],
      [1_000_000, 1_000_000, 0, 0],
    ]);
    // What is missing in a wallet is no drift.
    await market.check();
    // The provider repeats each of them, and the writer's job brings the rest.
    for (const [i, { call }] of scenes.entries()) {
      const { status } = await market.refund(call, { reference: call.usageId });
      expect([points[i], status]).toEqual([points[i], i < before.length ? 201 : 200]);
    }
    await market.credits.applyMissing();
    for (const { keys } of scenes) {
      expect((await market.money(keys.agent)).slice(0, 2)).toEqual([1_000_000, 1_000_000]);
      expect(await spentOf(keys)).toEqual(both(0, 0));
    }
    await market.check();
  });
});

describe('a Redis that comes back', () => {
  it('without a refund that it once had gets that refund and its budgets again, exactly once', async () => {
    const { ledger } = market.compared;
    const keys = await chain();
    const call = await sold(keys);
    await spentOf(keys);
    await keepState(ledger);
    await market.refund(call, { amount: 0.004, reference: 'a' });
    await market.refund(call, { amount: 0.001, reference: 'b' });
    expect(await spentOf(keys)).toEqual(both(5_000, 5_000));
    await comeBackOlder(ledger);
    await keepBusy(keys);
    expect(await spentOf(keys)).toEqual({ ...both(5_000, 5_000), redis: both(10_000, 10_000).redis });
    // Missing credits are no drift, and neither is what they have not yet taken from budgets.
    expect(await market.compared.drifts()).toEqual([]);
    await market.credits.applyMissing();
    expect(await spentOf(keys)).toEqual(both(5_000, 5_000));
    expect(await market.compared.drifts()).toEqual([]);
    expect((await market.money(keys.agent)).slice(0, 2)).toEqual([995_000, 995_000]);
    await ledger.readBooks();
  });

  it('with wrong budgets gets those of Postgres, even while it lacks a refund', async () => {
    const { ledger } = market.compared;
    const keys = await chain();
    const call = await sold(keys);
    await spentOf(keys);
    await keepState(ledger);
    await comeBackOlder(ledger);
    await keepBusy(keys);
    await writeChild(ledger.store.redis, walletOf(keys.agent), keys.agent.keyId, { spentMicros: 10_077 });
    const { sql } = ledger;
    await market.refund(call, { amount: 0.004 });
    await sql`UPDATE credits SET applied_at = NULL`;
    // As if the refund had not reached Redis.
    await ledger.store.command('hset', walletOf(keys.agent), 'credit_seq', 1, 'balance', 990_000);
    await writeChild(ledger.store.redis, walletOf(keys.agent), keys.agent.keyId, { spentMicros: 10_077 });
    await writeChild(ledger.store.redis, walletOf(keys.agent), keys.team.keyId, { spentMicros: 10_000 });
    expect(await market.compared.drifts()).toEqual([]);
    expect((await spentOf(keys)).redis).toEqual(both(10_000, 10_000).redis);
    await market.credits.applyMissing();
    expect(await spentOf(keys)).toEqual(both(6_000, 6_000));
    expect(await market.compared.drifts()).toEqual([]);
  });
});
