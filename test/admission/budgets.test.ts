import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { BatchEncoder } from '../../src/admission/batch-encoder.ts';
import { CallTerms } from '../../src/admission/call-terms.ts';
import { AdmitCommand, type AdmitResult, CancelCommand, TakeCommand } from '../../src/admission/commands.ts';
import { BUDGET_PERIODS, nextPeriodMs, periodAt } from '../../src/keys/budget-period.ts';
import { sweepScript } from '../../src/ledger/scripts.ts';
import { ABANDONED, CANCELLED } from '../../src/ledger/usage-event.ts';
import { freeField } from '../../src/platform/redis-keys.ts';
import { readChild, readInText, writeChild } from '../support/child-state.ts';
import { hostOf, Store } from '../support/store.ts';
import { BudgetRun, clocked, clockedBatch, setClock, step, tree } from './budget-run.ts';
import {
  admit,
  capture,
  INSTANCE,
  listener,
  newKeyId,
  newScene,
  openScene,
  request,
  requestAt,
  requestByUse,
  type Scene,
  settle,
  take,
} from './calls.ts';

let store: Store;
beforeAll(async () => {
  store = await Store.open(5_000, clockedBatch);
});
afterAll(() => store.close());
beforeEach(() => store.command('flushall'));

describe('a tree of keys', () => {
  it('under random spending has the wallet of the model after every step', async () => {
    const runs = fc.asyncProperty(tree, fc.array(step, { minLength: 20, maxLength: 60 }), async (planted, steps) => {
      await store.command('flushall');
      const run = new BudgetRun(store, planted);
      await run.begin();
      for (const taken of steps) {
        for (const [told, expected] of await run.take(taken)) expect(told).toEqual(expected);
        const [found, expected] = await run.wallets();
        expect(found).toEqual(expected);
      }
    });
    await fc.assert(runs, { numRuns: 40, interruptAfterTimeLimit: 60_000 });
  });
});

/** A child of a child, with these terms; its root and its parent have no bounds that matter here. */
async function childScene(balance: number, terms: string, parentTerms = '300 active 0 - - 0'): Promise<Scene> {
  const scene = newScene();
  const [root, parent] = [newKeyId(), newKeyId()];
  const hash = store.keys.key(store.keys.shardOf(scene.accountId), root);
  await store.command('hset', hash, 'limit', 300, 'status', 'active');
  await store.command('hset', hash, parent, parentTerms, scene.keyId, terms);
  await store.loadWallet(scene.accountId, balance);
  return { ...scene, ancestors: [root, parent] };
}
const treeOf = ({ accountId, ancestors: [root = ''] = [] }: Scene): string =>
  store.keys.key(store.keys.shardOf(accountId), root);
const walletOf = ({ accountId }: Scene): Promise<Record<string, string>> => store.hash(store.walletName(accountId));
const childOf = ({ accountId, keyId }: Scene) => readChild(store.redis, store.walletName(accountId), keyId);
const setChild = ({ accountId, keyId }: Scene, change: Parameters<typeof writeChild>[3]) =>
  writeChild(store.redis, store.walletName(accountId), keyId, change);

describe('a period', () => {
  const DAY_MS = 86_400_000;
  const time = fc
    .tuple(fc.nat(Date.UTC(2600, 0) / DAY_MS), fc.constantFrom(0, 1, DAY_MS / 2, DAY_MS - 1))
    .map(([day, ms]) => day * DAY_MS + ms);

  it.each(BUDGET_PERIODS)('of a %s has the same start and end in the gateway as in Redis', async (kind) => {
    const scene = await childScene(1_000_000, `300 active 0 0 ${kind} 7`, `300 active 0 1000000 ${kind} 3`);
    const [parent = ''] = (scene.ancestors ?? []).slice(1);
    for (const now of fc.sample(time, 40)) {
      await setClock(store, now);
      const resetsAtMs = nextPeriodMs(kind, periodAt(kind, 7, now));
      expect(await admit(store, request(scene, 1))).toMatchObject({
        outcome: 'budget_exceeded',
        budget: { keyId: scene.keyId, leftMicros: 0, resetsAtMs },
      });
      // The parent's own call is counted in the period of now, in a wallet that knows no later one.
      await store.command('del', store.walletName(scene.accountId));
      await store.loadWallet(scene.accountId, 1_000_000);
      const call = request({ ...scene, keyId: parent, ancestors: (scene.ancestors ?? []).slice(0, 1) }, 1);
      expect(await admit(store, call)).toMatchObject({ outcome: 'admitted' });
      expect((await store.open(scene.accountId))[call.usageId]).toMatch(
        new RegExp(`\t/x\tbudgets=${parent}\\.${periodAt(kind, 3, now)}$`),
      );
      expect(nextPeriodMs(kind, periodAt(kind, 3, now)) ?? Number.POSITIVE_INFINITY).toBeGreaterThan(now);
    }
  });
});

describe('a budget', () => {
  it('lowers what a call priced by use is authorised, down to its price', async () => {
    const scene = await childScene(1_000_000, '300 active 0 3000 total 1');
    const prices = { price: 2_000, max: 50_000 };
    const call = requestByUse(scene, prices);
    const expected = { amountMicros: 3_000, authorizedMicros: 3_000, balanceMicros: 0 };
    expect(await admit(store, call)).toMatchObject({ outcome: 'admitted', ...expected });
    await capture(store, call, 1_500);
    expect(await walletOf(scene)).toMatchObject({ balance: '998500' });
    expect(await childOf(scene)).toMatchObject({ spentMicros: 1_500 });
    expect(await admit(store, requestByUse(scene, prices))).toMatchObject({
      outcome: 'budget_exceeded',
      budget: { leftMicros: 1_500, resetsAtMs: null },
    });
  });

  it('is not spent by free calls, whose holds name no budget', async () => {
    const scene = await childScene(0, '300 active 0 5 total 1');
    const call = request(scene, 1_000, 1);
    expect(await admit(store, call)).toMatchObject({ outcome: 'admitted', freeTier: true, balanceMicros: 0 });
    expect((await store.open(scene.accountId))[call.usageId]).toMatch(/\t\/x$/);
    await settle(store, call, true);
    expect(await walletOf(scene)).toMatchObject({ balance: '0', credit_seq: '1', [freeField(scene.serviceId)]: '0' });
    expect(await childOf(scene)).toMatchObject({ spentMicros: 0, period: 0 });
  });

  it('gets back what was held by a call that was cancelled or swept, but not in a later period', async () => {
    const scene = await childScene(1_000, '300 active 0 900 day 1', '300 active 0 950 total 1');
    const [parent = ''] = (scene.ancestors ?? []).slice(1);
    const now = Date.UTC(2027, 0, 31, 23, 59, 59);
    await setClock(store, now);
    const [cancelled, swept, late] = [request(scene, 100), request(scene, 200), request(scene, 300)];
    for (const call of [cancelled, swept, late]) await admit(store, call);
    const spent = async () => {
      const [child, above] = [await childOf(scene), await childOf({ ...scene, keyId: parent })];
      return [await store.balance(scene.accountId), child?.spentMicros, above?.spentMicros];
    };
    expect(await spent()).toEqual([400, 600, 600]);
    const cancel = new CancelCommand(cancelled.usageId, scene.accountId, CANCELLED, () => {});
    await store.run([cancel], hostOf(store.keys, INSTANCE));
    expect(await spent()).toEqual([500, 500, 500]);
    await setClock(store, now + 1_000);
    await admit(store, request(scene, 7));
    await settle(store, late, true);
    expect(await spent()).toEqual([793, 7, 207]);
    const wallet = store.walletName(scene.accountId);
    await store.command('hset', store.keys.lease[store.keys.shardOf(scene.accountId)] as string, INSTANCE, 1);
    await store.redis.script(clocked(sweepScript), 4, [
      ...[store.keys.open, store.keys.lease, store.keys.usage].map(
        (of) => of[store.keys.shardOf(scene.accountId)] as string,
      ),
      ...[wallet, '15000', '60000', ABANDONED, String(now + 1_000), '', swept.usageId],
    ]);
    expect(await spent()).toEqual([993, 7, 7]);
  });

  it('treats negative spending as zero, but adds calls to the negative number, so that the drift stays the same', async () => {
    const scene = await childScene(1_000, '300 active 0 900 total 0');
    await setChild(scene, { spentMicros: -50 });
    expect(await admit(store, request(scene, 901))).toMatchObject({
      outcome: 'budget_exceeded',
      budget: { leftMicros: 900 },
    });
    expect(await admit(store, request(scene, 900))).toMatchObject({ outcome: 'admitted', balanceMicros: 0 });
    expect(await childOf(scene)).toMatchObject({ spentMicros: 850, period: 0 });
  });

  it.each([
    { spentMicros: 1.5 },
    { spentMicros: 'nan' },
    { spentMicros: '9007199254740992' },
    { period: 'nan' },
    { period: -1 },
    { period: 'inf' },
    'no numbers, but 32 characters :)',
    '7',
  ])('that is damaged (%j) makes its wallet count as damaged, and takes a token of the root', async (damaged) => {
    const scene = await childScene(1_000, '300 active 0 900 total 1');
    if (typeof damaged !== 'string') await setChild(scene, damaged);
    else await store.command('hset', store.walletName(scene.accountId), scene.keyId, damaged);
    const before = await readInText(store.redis, store.walletName(scene.accountId));
    const damage: string[] = [];
    const host = hostOf(store.keys, INSTANCE, { foundDamage: (what) => damage.push(what) });
    const results: AdmitResult[] = [];
    const calls = [request(scene, 1), request(await openScene(store, 5), 1)];
    await store.run(
      calls.map(
        (call, i) =>
          new AdmitCommand(
            call,
            listener((result) => (results[i] = result)),
          ),
      ),
      host,
    );
    expect(results).toMatchObject([{ outcome: 'damaged', rate: { remaining: 299 } }, { outcome: 'admitted' }]);
    expect(damage).toEqual(['wallet']);
    expect(await readInText(store.redis, store.walletName(scene.accountId))).toEqual(before);
    expect((await store.hash(treeOf(scene))).tokens).toBe(String(299 * 60_000));
    expect((await take(store, scene, 'own', host)).outcome).toBe('unavailable');
    expect(damage).toEqual(['wallet', 'wallet']);
  });
});

describe('the state of a chain', () => {
  const lost = async (scene: Scene): Promise<string[]> => {
    const asked: string[] = [];
    const host = hostOf(store.keys, INSTANCE, { reloadAndRetry: (_, what) => asked.push(what) });
    await store.run(
      [
        new AdmitCommand(
          request(scene, 1),
          listener(() => {}),
        ),
      ],
      host,
    );
    return asked;
  };

  it.each(['limit', 'status', 'terms'])('that lacks %s of a level is loaded', async (field) => {
    const scene = await childScene(1_000, '300 active 0 900 total 1');
    await store.command('hdel', treeOf(scene), field === 'terms' ? (scene.ancestors?.[1] ?? '') : field);
    expect(await lost(scene)).toEqual(['key']);
  });

  it.each([
    '300 active 0 - -',
    '0 active 0 - - 0',
    '300 active 0 1e3 day 0',
    '300 active 0 -5 day 0',
    '300 active 0 5 hour 0',
    '1234567890 active 0 - - 0',
    'x',
  ])('with the terms %j is loaded anew', async (terms) => {
    const scene = await childScene(1_000, terms);
    expect(await lost(scene)).toEqual(['key']);
    expect(await store.hash(treeOf(scene))).not.toHaveProperty(scene.keyId);
  });

  it('with a revoked level or a suspended account admits nothing and keeps its tokens', async () => {
    const terms = '300 active 0 - - 0';
    const revoked = await childScene(1_000, terms, '60 revoked 0 - - 0');
    expect(await admit(store, request(revoked, 1))).toMatchObject({ outcome: 'revoked', rate: { limit: 300 } });
    expect((await take(store, revoked)).outcome).toBe('revoked');
    const suspended = await childScene(1_000, terms);
    await store.command('hset', treeOf(suspended), 'status', 'suspended');
    expect((await admit(store, request(suspended, 1))).outcome).toBe('suspended');
    expect((await take(store, suspended, 'reads')).outcome).toBe('suspended');
    expect(await store.hash(treeOf(suspended))).not.toHaveProperty('tokens');
    expect(await childOf(suspended)).toBeNull();
  });
});

describe('tokens of a child key', () => {
  it('for requests other than calls come from its own buckets, including requests that manage keys', async () => {
    const scene = await childScene(1_000, '2 active 0 - - 0');
    await setClock(store, Date.UTC(2027, 0, 1));
    for (const remaining of [1, 0]) expect(await take(store, scene)).toMatchObject({ rate: { limit: 2, remaining } });
    expect((await take(store, scene)).outcome).toBe('rate_limited');
    expect(await take(store, scene, 'reads')).toMatchObject({ outcome: 'taken', rate: { limit: 2, remaining: 1 } });
    expect(await take(store, scene, 'person')).toMatchObject({
      outcome: 'taken',
      rate: { limit: 120, remaining: 119 },
    });
    expect(await take(store, scene, 'control')).toMatchObject({ outcome: 'taken', rate: { limit: 30, remaining: 29 } });
    const shard = store.keys.shardOf(scene.accountId);
    expect(await store.command('exists', store.keys.control(shard, scene.accountId))).toBe(0);
    expect(Number(await store.command('pttl', store.keys.reads(shard, scene.keyId)))).toBeGreaterThan(0);
    expect(await store.hash(treeOf(scene))).not.toHaveProperty('tokens');
    expect(await childOf(scene)).toEqual({ tokens: 0, ts: Date.UTC(2027, 0, 1), spentMicros: 0, period: 0 });
  });

  it('are stored with its wallet, so requests other than calls load that wallet too', async () => {
    const scene = await childScene(1_000, '2 active 0 - - 0');
    await store.command('del', store.walletName(scene.accountId));
    const asked: string[] = [];
    const command = new TakeCommand(scene.keyId, scene.accountId, 0, () => {}, 'own', scene.ancestors);
    const host = hostOf(store.keys, INSTANCE, { reloadAndRetry: (_, what) => asked.push(what) });
    await store.run([command], host);
    expect(asked).toEqual(['wallet']);
    expect(await store.command('exists', store.walletName(scene.accountId))).toBe(0);
  });

  it('are not enough when a key above it has none left: its calls wait for that key', async () => {
    const scene = await childScene(1_000, '60 active 0 - - 0', '1 active 0 - - 0');
    expect((await admit(store, request(scene, 1))).outcome).toBe('admitted');
    const refused = await admit(store, request(scene, 1));
    expect(refused).toMatchObject({
      outcome: 'rate_limited',
      rate: { limit: 60, remaining: 0, retryAfterSeconds: 60 },
    });
  });
});

it('calls of root keys are sent as the same bytes as before child keys existed', () => {
  const batch = new BatchEncoder();
  const terms = new CallTerms({ id: 'service', providerId: 'provider', priceMicros: 7, freeCalls: 3 });
  const byUse = new CallTerms({
    id: 'service',
    providerId: 'provider',
    priceMicros: 7,
    maxPriceMicros: 9,
    freeCalls: 0,
  });
  const scene = { accountId: 'account', keyId: 'key', serviceId: 'service' };
  const host = hostOf(store.keys, INSTANCE);
  batch.begin(INSTANCE);
  for (const [of, usageId] of [
    [terms, 'one'],
    [byUse, 'two'],
  ] as const) {
    new AdmitCommand(
      requestAt(scene, of, usageId),
      listener(() => {}),
    ).encode(batch, host);
  }
  for (const bucket of ['own', 'reads', 'person', 'control'] as const) {
    new TakeCommand('key', 'account', 0, () => {}, bucket).encode(batch, host);
  }
  expect(batch.replies).toBe(5 + 5 + 4 * 3);
  const words = batch.end().take('sha').toString('latin1').split('\r\n');
  const args = words.slice(1).filter((_, i) => i % 2 === 1);
  const s = store.keys.shardOf('account');
  const admission = [`key:{${s}}:key`, `wallet:{${s}}:account`, `open:{${s}}`];
  expect(args).toEqual([
    ...['evalsha', 'sha', '13', ...admission, ...admission],
    ...[
      `key:{${s}}:key`,
      `key:{${s}}:key`,
      `reads:{${s}}:key`,
      `key:{${s}}:key`,
      `person:{${s}}:key`,
      `key:{${s}}:key`,
      `control:{${s}}:account`,
    ],
    ...[INSTANCE, '7', '3', 'free:service', 'one', 'account\tkey\tservice\tprovider\tGET\t/x'],
    ...['9', '0', 'free:service', 'two', 'account\tkey\tservice\tprovider\tGET\t/x\tcap=9'],
    ...['0', '0', '120', '30', 'PAPATBBB'],
  ]);
});
