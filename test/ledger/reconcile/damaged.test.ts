import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { repairWalletScript } from '../../../src/ledger/scripts.ts';
import { Sweeper } from '../../../src/ledger/sweep/sweeper.ts';
import { CreditWallets } from '../../../src/ledger/wallets/credit-wallets.ts';
import { WalletDamaged, Wallets } from '../../../src/ledger/wallets/wallets.ts';
import { freeField } from '../../../src/platform/redis-keys.ts';
import { admit, request, type Scene } from '../../admission/calls.ts';
import { readChild, writeChild } from '../../support/child-state.ts';
import { QUIET } from '../../support/store.ts';
import { until } from '../../support/wait.ts';
import type { Ledger } from '../support.ts';
import { comeBackOlder, keepState } from './older-redis.ts';
import { ComparedLedger } from './scene.ts';

let compared: ComparedLedger;
let ledger: Ledger;
let lines: string[];
beforeAll(async () => {
  compared = await ComparedLedger.open();
  ledger = compared.ledger;
});
afterAll(() => compared.close());
beforeEach(async () => {
  lines = [];
  await compared.clear();
});

const walletOf = ({ accountId }: Scene): string => ledger.store.walletName(accountId);
const set = (scene: Scene, field: string, value: string) => ledger.store.command('hset', walletOf(scene), field, value);
const openOf = ({ accountId }: Scene): string => ledger.store.keys.open[ledger.store.keys.shardOf(accountId)] as string;

async function reload(scene: Scene): Promise<void> {
  await ledger.store.command('del', walletOf(scene));
  await compared.hydrator.loadWallet(scene.accountId);
}

function sweeper(): Sweeper {
  const log = { info: () => {}, warn: (_: object, message: string) => void lines.push(message) };
  const { redis, keys } = ledger.store;
  return new Sweeper({ redis, keys, leaseSeconds: 15, isReconciled: () => true, log });
}

/** Makes all leases so old that every hold belongs to a dead gateway. */
async function letDie(instance = 'gateway-1'): Promise<void> {
  const at = (await ledger.store.now()) - 60_000;
  for (const lease of ledger.store.keys.lease) await ledger.store.command('hset', lease, instance, at);
}

describe('a damaged wallet', () => {
  it('is reported as damaged while all others are compared, and agrees after it is deleted and loaded again', async () => {
    const [half, text, number, free, healthy, drifting] = await Promise.all(
      Array.from({ length: 6 }, () => compared.newScene(10_000)),
    );
    const damaged = [half, text, number, free] as Scene[];
    await ledger.store.command('hincrbyfloat', walletOf(half as Scene), 'balance', '0.5');
    await ledger.store.command('set', walletOf(text as Scene), 'x');
    await set(number as Scene, 'credit_seq', 'nan');
    await set(free as Scene, freeField((free as Scene).serviceId), '1e3');
    await compared.call(healthy as Scene, 1_000);
    await compared.changeBalance(drifting as Scene, 7);
    for (let round = 0; round < 2; round++) {
      const found = new Map((await compared.drifts()).map((drift) => [drift.accountId, drift]));
      expect(Array.from(found.keys()).sort()).toEqual(
        [...damaged, drifting as Scene].map(({ accountId }) => accountId).sort(),
      );
      for (const { accountId } of damaged) expect(found.get(accountId)?.notRepaired).toMatch(/^damaged in Redis: /);
      expect(found.get((drifting as Scene).accountId)?.driftMicros).toBe(7);
      expect(Array.from(found.values()).every(({ driftMicros }) => Number.isSafeInteger(driftMicros))).toBe(true);
    }
    // A damaged balance is in no sum, and its account is first in the list.
    const reports = await compared.run();
    expect(reports.reduce((sum, report) => sum + report.absoluteDriftMicros, 0)).toBe(7);
    expect(reports.reduce((sum, report) => sum + report.settledMicros, 0)).toBe(3 * 10_000);
    for (const report of reports) {
      const isDamaged = report.drifts.map(({ damagedFields }) => damagedFields.length > 0);
      expect(isDamaged).toEqual(isDamaged.toSorted((a, b) => Number(b) - Number(a)));
    }
    await compared.storeAll();
    for (const scene of damaged) await reload(scene);
    expect((await compared.drifts()).map(({ accountId }) => accountId)).toEqual([(drifting as Scene).accountId]);
    for (const scene of damaged) expect(await compared.balances(scene)).toEqual([10_000, 10_000]);
    expect(await compared.repairs()).toEqual([]);
  });

  it('has its hold swept with one event and no refund, while the other wallets get their refunds', async () => {
    const [victim, other] = [await compared.newScene(10_000), await compared.newScene(10_000)];
    for (const scene of [victim, other]) await admit(ledger.store, request(scene, 1_000));
    await set(victim, 'balance', 'abc');
    await letDie();
    expect(await sweeper().sweepOnce()).toBe(2);
    expect(lines).toEqual([expect.stringContaining('the wallet of an account is damaged')]);
    expect(await ledger.store.balance(other.accountId)).toBe(10_000);
    expect(await ledger.backlog()).toBe(2);
    expect((await ledger.store.hash(walletOf(victim))).balance).toBe('abc');
    await compared.storeAll();
    await reload(victim);
    expect(await compared.balances(victim)).toEqual([10_000, 10_000]);
    expect(await compared.drifts()).toEqual([]);
  });

  it.each([
    ['balance', '1.5'],
    ['balance', '9007199254740000'],
    ['credit_seq', '1e0'],
  ])(
    '(%s %s) takes no credit and does not keep credits from other wallets; it gets its credit once it is loaded again',
    async (field, value) => {
      const [victim, other] = [await compared.newScene(10_000), await compared.newScene(10_000)];
      const { store, sql } = ledger;
      const stores = { sql, redis: store.redis, keys: store.keys, hydrator: compared.hydrator, log: QUIET };
      const credits = new CreditWallets(stores);
      await credits.applyMissing();
      await set(victim, field, value);
      const before = await store.hash(walletOf(victim));
      for (const { accountId } of [victim, other]) await ledger.credit(accountId, 5_000);
      await expect(credits.applyMissing()).rejects.toThrow(WalletDamaged);
      expect(await store.hash(walletOf(victim))).toEqual(before);
      expect(await store.balance(other.accountId)).toBe(15_000);
      if (value === '1.5') await expect(new Wallets(stores).read(victim.accountId)).rejects.toThrow('cannot serve');
      await reload(victim);
      await credits.applyMissing();
      expect(await compared.balances(victim)).toEqual([15_000, 15_000]);
    },
  );

  const ofChild = { tokens: 0, ts: 0, spentMicros: 7, period: 0 };
  it.each([
    { ...ofChild, spentMicros: 1.5 },
    { ...ofChild, spentMicros: 2 ** 53 },
    { ...ofChild, period: Number.NaN },
    { ...ofChild, period: -1 },
    'text of 32 characters no numbers',
    '1',
  ])('(%j) does not say what a child key has left, and is reported', async (damaged) => {
    const scene = await compared.newScene(10_000);
    const wallets = new Wallets({ ...ledger.store, hydrator: compared.hydrator });
    await writeChild(ledger.store.redis, walletOf(scene), scene.keyId, ofChild);
    const read = () => wallets.readParts(scene.accountId, [scene.keyId], [scene.keyId]);
    expect(await read()).toMatchObject({ balanceMicros: 10_000, budgets: [{ spentMicros: 7, period: 0 }] });
    if (typeof damaged === 'string') await set(scene, scene.keyId, damaged);
    else await writeChild(ledger.store.redis, walletOf(scene), scene.keyId, damaged);
    await expect(read()).rejects.toMatchObject({ code: 'unavailable', cause: expect.any(WalletDamaged) });
    expect(await wallets.read(scene.accountId)).toMatchObject({ balanceMicros: 10_000 });
    expect(await compared.drifts()).toMatchObject([
      { accountId: scene.accountId, notRepaired: `damaged in Redis: ${scene.keyId}` },
    ]);
  });

  it('is not half repaired: if one number cannot be changed, the other changes are undone and the holds stay', async () => {
    const scene = await compared.newScene(10_000);
    const call = request(scene, 1_000);
    await admit(ledger.store, call);
    await set(scene, 'ticket', 't');
    await set(scene, 'free:b', '1.5');
    const hold = (await ledger.store.open(scene.accountId))[call.usageId] as string;
    const args = ['t', String((await ledger.store.now()) + 60_000), '', '', '7', '-3', '1', '1', call.usageId, hold];
    const child = { tokens: 1, ts: 2, spentMicros: 3, period: 4 };
    await writeChild(ledger.store.redis, walletOf(scene), scene.keyId, child);
    const changes = [scene.keyId, '4', '5', '12', 'free:a', '2', 'free:b', '1'];
    const names = [
      walletOf(scene),
      openOf(scene),
      ledger.store.keys.mark[ledger.store.keys.shardOf(scene.accountId)] as string,
    ];
    expect(await ledger.store.redis.script(repairWalletScript, 3, [...names, ...args, ...changes])).toBe(0);
    expect(await ledger.store.balance(scene.accountId)).toBe(9_000);
    const wallet = await ledger.store.hash(walletOf(scene));
    expect(wallet).not.toHaveProperty('repair');
    expect(await readChild(ledger.store.redis, walletOf(scene), scene.keyId)).toEqual(child);
    expect(await ledger.store.open(scene.accountId)).toHaveProperty(call.usageId);
  });
});

describe('data that this version cannot read', () => {
  it('a hold that is damaged, of a newer version or without a version is left by the sweep and reported', async () => {
    const scene = await compared.newScene(10_000);
    const [first, second] = [request(scene, 1_000), request(scene, 200)];
    for (const call of [first, second]) await admit(ledger.store, call);
    const text = (await ledger.store.open(scene.accountId))[first.usageId] as string;
    const long = text.replace(/^v1\t1000\t/, `v1\t${'1'.repeat(17)}\t`);
    const left = { newer: 'v2\t1\t0\t1\tgateway-1', garbage: 'x', long, unversioned: text.slice(3) };
    await ledger.store.command('hset', openOf(scene), ...Object.entries(left).flat());
    await letDie();
    const own = sweeper();
    expect(await own.sweepOnce()).toBe(2);
    expect(await own.sweepOnce()).toBe(0);
    expect(own.leftAlone).toBe(4);
    expect(lines).toHaveLength(1);
    expect(await ledger.store.open(scene.accountId)).toEqual(left);
    const wallets = new Wallets({ ...ledger.store, hydrator: compared.hydrator });
    expect(await wallets.read(scene.accountId)).toMatchObject({ heldMicros: 0 });
    expect(await ledger.store.balance(scene.accountId)).toBe(10_000);
    await compared.storeAll();
    expect(await ledger.sql`SELECT FROM rejected_events`).toHaveLength(0);
    expect(await compared.drifts()).toEqual([]);
  });

  it.each(['a hold', 'an event'])(
    '(%s) prevents repairs after Redis came back with an older state, until it is removed',
    async (what) => {
      const scene = await compared.newScene(10_000);
      const usage = ledger.store.keys.usage[ledger.store.keys.shardOf(scene.accountId)] as string;
      if (what === 'a hold') await ledger.store.command('hset', openOf(scene), 'newer', 'v2\t1');
      else await ledger.store.command('xadd', usage, '*', 'e2', 'what only a newer version reads');
      await keepState(ledger);
      await compared.call(scene, 1_000);
      const writer = ledger.startWriter();
      await until(() => writer.stats().storedCalls === 1);
      await writer.stop();
      await comeBackOlder(ledger);
      const reconciler = ledger.reconciler();
      const { reports, undecided } = await reconciler.run('test');
      expect(reports.flatMap(({ drifts }) => drifts)).toMatchObject([
        { accountId: scene.accountId, driftMicros: 1_000, notRepaired: expect.stringContaining('cannot read') },
      ]);
      expect(undecided).toBe(0);
      await ledger.store.command('del', openOf(scene), usage);
      const next = await reconciler.run('test');
      expect(next.reports.flatMap(({ drifts }) => drifts)).toEqual([]);
      expect(await compared.balances(scene)).toEqual([9_000, 9_000]);
    },
  );

  it('a lease that is not a time, or lies in the future, counts as missing: the sweep gives the gateway a new one', async () => {
    const scene = await compared.newScene(10_000);
    await admit(ledger.store, request(scene, 1_000));
    const lease = ledger.store.keys.lease[ledger.store.keys.shardOf(scene.accountId)] as string;
    for (const at of ['abc', 'nan', '1e99', String((await ledger.store.now()) + 3_600_000)]) {
      await ledger.store.command('hset', lease, 'gateway-1', at);
      expect(await sweeper().sweepOnce()).toBe(0);
      const given = Number((await ledger.store.hash(lease))['gateway-1']);
      expect(Math.abs(given - (await ledger.store.now()))).toBeLessThan(5_000);
    }
    await letDie();
    expect(await sweeper().sweepOnce()).toBe(1);
  });

  it('damaged keys of one shard do not keep other shards from being swept and compared', async () => {
    const scenes = await Promise.all(Array.from({ length: 24 }, () => compared.newScene(10_000)));
    const [broken, ...rest] = scenes as [Scene, ...Scene[]];
    const others = rest.filter((scene) => openOf(scene) !== openOf(broken));
    expect(others.length).toBeGreaterThan(0);
    for (const scene of others) await admit(ledger.store, request(scene, 1_000));
    await ledger.store.command('set', openOf(broken), 'x');
    await letDie();
    await expect(sweeper().sweepOnce()).rejects.toThrow('WRONGTYPE');
    for (const { accountId } of others) expect(await ledger.store.balance(accountId)).toBe(10_000);
    const reports = await compared.run();
    const shard = ledger.store.keys.shardOf(broken.accountId);
    expect(reports.filter((report) => !report.compared).map((report) => report.shard)).toEqual([shard]);
  });
});

it('when the stream refuses the event, the sweep leaves the hold as it was', async () => {
  const scene = await compared.newScene(10_000);
  const call = request(scene, 1_000);
  await admit(ledger.store, call);
  const shard = ledger.store.keys.shardOf(scene.accountId);
  await ledger.store.command('set', ledger.store.keys.usage[shard] as string, 'x');
  await letDie();
  await expect(sweeper().sweepOnce()).rejects.toThrow('WRONGTYPE');
  expect(await ledger.store.balance(scene.accountId)).toBe(9_000);
  expect(await ledger.store.open(scene.accountId)).toHaveProperty(call.usageId);
  await ledger.store.command('del', ledger.store.keys.usage[shard] as string);
  expect(await sweeper().sweepOnce()).toBe(1);
  expect(await ledger.store.balance(scene.accountId)).toBe(10_000);
});
