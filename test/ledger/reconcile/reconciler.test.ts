import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { FLUSH_LOCK } from '../../../src/ledger/locks.ts';
import { selectReports } from '../../../src/ledger/reconcile/reconcile-sql.ts';
import { Reconciler, type RunResult } from '../../../src/ledger/reconcile/reconciler.ts';
import { Sweeper } from '../../../src/ledger/sweep/sweeper.ts';
import { PostgresSession } from '../../../src/platform/postgres.ts';
import { admit, request, type Scene, settle } from '../../admission/calls.ts';
import { QUIET } from '../../support/store.ts';
import { until } from '../../support/wait.ts';
import { type Ledger, newEvent } from '../support.ts';
import { comeBackOlder, keepState } from './older-redis.ts';
import { ComparedLedger } from './scene.ts';

let compared: ComparedLedger;
let ledger: Ledger;
beforeAll(async () => {
  compared = await ComparedLedger.open();
  ledger = compared.ledger;
});
afterAll(() => compared.close());
beforeEach(() => compared.clear());

const run = () => compared.run();
const drifts = () => compared.drifts();
const repairs = () => compared.repairs();
const newScene = (balanceMicros: number): Promise<Scene> => compared.newScene(balanceMicros);
const call = (scene: Scene, price: number, refund = false, freeCalls = 0): Promise<string> =>
  compared.call(scene, price, refund, freeCalls);
const storeAll = (): Promise<void> => compared.storeAll();

const setBalance = (accountId: string, change: number): Promise<unknown> =>
  ledger.store.command('hincrby', ledger.store.walletName(accountId), 'balance', change);

describe('comparing', () => {
  it('finds no drift at any stage: call held, settled, stored, event not deleted yet, account credited', async () => {
    const scene = await newScene(10_000);
    const calls = [request(scene, 1_000), request(scene, 200), request(scene, 30), request(scene, 9, 1)];
    for (const one of calls) await admit(ledger.store, one);
    expect(await drifts()).toEqual([]);
    await settle(ledger.store, calls[0] as (typeof calls)[0], false);
    await settle(ledger.store, calls[1] as (typeof calls)[0], true);
    expect(await drifts()).toEqual([]);
    let inBetween: unknown;
    const afterCommit = async () => {
      inBetween = await drifts();
    };
    const writer = ledger.startWriter({ afterCommit });
    await ledger.drained();
    await writer.stop();
    expect(inBetween).toEqual([]);
    expect(await drifts()).toEqual([]);
    // A credit that has not reached the wallet yet is no drift.
    await ledger.credit(scene.accountId, 5_000);
    expect(await drifts()).toEqual([]);
    expect(await ledger.balance(scene.accountId)).toBe(14_000);
  });

  it('finds no drift while calls run and are stored', async () => {
    const scenes = await Promise.all(Array.from({ length: 8 }, () => newScene(100_000)));
    const writer = ledger.startWriter({ batchSize: 60 });
    let running = true;
    const load = scenes.map(async (scene) => {
      for (let i = 0; running; i++) await call(scene, 3 + (i % 5), i % 3 === 0);
    });
    for (let i = 0; i < 5; i++) expect(await drifts()).toEqual([]);
    running = false;
    await Promise.all(load);
    await ledger.drained();
    expect(writer.stats().storedCalls).toBeGreaterThan(50);
    expect(await drifts()).toEqual([]);
    expect(await repairs()).toEqual([]);
  });

  it('reports the sums of each shard, and how long an account has drifted', async () => {
    const scene = await newScene(10_000);
    const shard = ledger.store.keys.shardOf(scene.accountId);
    await admit(ledger.store, request(scene, 300));
    await call(scene, 50);
    await setBalance(scene.accountId, -7);
    const [first, second] = [await run(), await run()];
    expect(second[shard]).toMatchObject({
      compared: true,
      wallets: 1,
      walletMicros: 9_643,
      settledMicros: 10_000,
      streamedMicros: 50,
      heldMicros: 300,
      driftMicros: -7,
      absoluteDriftMicros: 7,
      driftingAccounts: 1,
      drifts: [{ accountId: scene.accountId, walletMicros: 9_643, expectedMicros: 9_650, driftMicros: -7 }],
    });
    expect(second[shard]?.drifts[0]?.sinceMs).toBe(first[shard]?.drifts[0]?.sinceMs);
    expect(second[1 - shard]).toMatchObject({ wallets: 0, driftMicros: 0, drifts: [] });
    expect(await selectReports(ledger.sql)).toEqual(second);
  });

  it('can run gently: it works a tenth of the time, finds the same drifts, and stops at once when told to', async () => {
    const scenes = await Promise.all(Array.from({ length: 20 }, () => newScene(10_000)));
    await setBalance((scenes[0] as Scene).accountId, 3);
    const { redis, keys } = ledger.store;
    const reconciler = new Reconciler({ sql: ledger.sql, redis, keys });
    const seen = await reconciler.run('test');
    const gently = await reconciler.run('test', 'gently');
    const found = ({ reports }: RunResult) => reports.map(({ checkedAtMs: _, ...report }) => report);
    expect(found(gently)).toEqual(found(seen));
    const stopped = expect(reconciler.run('test', 'gently')).rejects.toThrow(/told to stop/);
    reconciler.stop();
    await stopped;
  });

  it('does not block the loading of wallets, and waits for a flush', async () => {
    const scene = await newScene(10_000);
    const flush = new PostgresSession({ url: ledger.databaseUrl, applicationName: 'test' });
    const shard = ledger.store.keys.shardOf(scene.accountId);
    await flush.query('BEGIN');
    await flush.query('SELECT pg_advisory_xact_lock($1::int, $2::int)', [FLUSH_LOCK, shard]);
    const running = run();
    await until(async () => (await ledger.advisoryLocks({ granted: false })).length > 0);
    await flush.query('COMMIT');
    expect((await running).flatMap((report) => report.drifts)).toEqual([]);
    await flush.query('BEGIN');
    // Takes the lock as the loading of a wallet does.
    await flush.query('SELECT pg_advisory_xact_lock_shared($1::int, $2::int)', [FLUSH_LOCK, shard]);
    expect(await drifts()).toEqual([]);
    flush.close();
  });
});

describe('a drift that Redis cannot have caused', () => {
  it('is reported and left alone, whether the wallet has too much or too little', async () => {
    const [rich, poor] = [await newScene(1_000), await newScene(1_000)];
    await call(rich, 100);
    await storeAll();
    await setBalance(rich.accountId, 5);
    await setBalance(poor.accountId, -400);
    for (let round = 0; round < 2; round++) {
      const found = (await drifts()).map(({ accountId, driftMicros, notRepaired }) => [
        accountId,
        driftMicros,
        notRepaired,
      ]);
      const why = expect.stringContaining('Redis has not changed');
      expect(found.sort()).toEqual(
        [
          [rich.accountId, 5, why],
          [poor.accountId, -400, why],
        ].sort(),
      );
    }
    expect([await ledger.store.balance(rich.accountId), await ledger.store.balance(poor.accountId)]).toEqual([
      905, 600,
    ]);
    expect(await repairs()).toEqual([]);
  });

  it('is reported for an event that could not be stored: its charged call is not in the books, even in doubt', async () => {
    const scene = await newScene(1_000);
    const event = newEvent({ accountId: scene.accountId, heldMicros: 40 });
    await setBalance(scene.accountId, -40);
    await ledger.appendRaw(scene.accountId, event.usageId, scene.accountId, 'nonsense');
    await storeAll();
    expect(await drifts()).toMatchObject([{ driftMicros: -40 }]);
    await keepState(ledger);
    await comeBackOlder(ledger);
    expect(await drifts()).toMatchObject([
      { driftMicros: -40, notRepaired: 'rejected_events has an event of this account' },
    ]);
    expect(await repairs()).toEqual([]);
  });

  it('is not taken out of a wallet that is ahead of Postgres, even in doubt', async () => {
    const scene = await newScene(1_000);
    await ledger.store.command('hincrby', ledger.store.walletName(scene.accountId), 'credit_seq', 1);
    await admit(ledger.store, request(scene, 10));
    await setBalance(scene.accountId, 500);
    await keepState(ledger);
    await comeBackOlder(ledger);
    expect(await drifts()).toMatchObject([{ driftMicros: 500, notRepaired: expect.stringContaining('does not know') }]);
    expect(await repairs()).toEqual([]);
  });
});

describe('a Postgres that is older than Redis', () => {
  it('is not compared: it does not say anything about wallets', async () => {
    const scene = await newScene(1_000);
    await call(scene, 100);
    await storeAll();
    await ledger.sql`UPDATE journal SET token = gen_random_uuid()`;
    await expect(run()).rejects.toThrow('older than Redis');
    await keepState(ledger);
    await comeBackOlder(ledger);
    await expect(run()).rejects.toThrow('older than Redis');
    expect(await ledger.store.balance(scene.accountId)).toBe(900);
  });
});

describe('the next comparison is skipped because it would find the same', () => {
  it('until something is posted, Redis may have changed, or Postgres is older, but never after a run that found a fault', async () => {
    const scene = await newScene(1_000);
    await storeAll();
    const reconciler = ledger.reconciler();
    const isUnchanged = () => reconciler.isUnchanged();
    expect(await isUnchanged()).toBe(false);
    await reconciler.run('test');
    expect(await isUnchanged()).toBe(false);
    await reconciler.run('test');
    expect(await isUnchanged()).toBe(true);
    await call(scene, 100);
    await storeAll();
    expect(await isUnchanged()).toBe(false);
    // A trim or a loading may be under way, and change what the first run after it finds.
    await reconciler.run('test');
    expect(await isUnchanged()).toBe(false);
    await reconciler.run('test');
    expect(await isUnchanged()).toBe(true);
    await ledger.credit(scene.accountId, 5);
    expect(await isUnchanged()).toBe(false);
    await setBalance(scene.accountId, 7);
    await reconciler.run('test');
    expect(await isUnchanged()).toBe(false);
    await setBalance(scene.accountId, -7);
    await reconciler.run('test');
    expect(await isUnchanged()).toBe(true);
    await ledger.sql`UPDATE shard_histories SET doubt = doubt + 1 WHERE shard = 0`;
    expect(await isUnchanged()).toBe(false);
    await reconciler.run('test');
    expect(await isUnchanged()).toBe(true);
    await ledger.sql`UPDATE journal SET token = gen_random_uuid()`;
    await expect(isUnchanged()).rejects.toThrow('older than Redis');
    expect(reconciler.olderShards).toHaveLength(1);
  });
});

describe('a Redis that came back with an older state than Postgres', () => {
  it('is repaired: it has the charges of stored calls again, but no holds of theirs that the sweep would refund', async () => {
    const scene = await newScene(10_000);
    await call(scene, 1_000, false, 2);
    const held = [request(scene, 500), request(scene, 70), request(scene, 8)] as const;
    for (const one of held) await admit(ledger.store, one);
    await keepState(ledger);
    await settle(ledger.store, held[0], false);
    await settle(ledger.store, held[1], true);
    await call(scene, 1_000, false, 2);
    await call(scene, 300);
    await call(scene, 20, true);
    await storeAll();
    await comeBackOlder(ledger);
    // Redis lost the last three charges, one of them a free call, and has two holds of stored calls again.
    expect(await ledger.store.balance(scene.accountId)).toBe(10_000 - 500 - 70 - 8);

    const reconciler = ledger.reconciler();
    const { reports } = await reconciler.run('test');
    expect(reports.flatMap((report) => report.drifts)).toEqual([]);
    expect(reconciler.repaired).toBe(1);
    expect(await ledger.balance(scene.accountId)).toBe(10_000 - 500 - 300);
    const wallet = await ledger.store.hash(ledger.store.walletName(scene.accountId));
    expect(wallet).toMatchObject({ balance: String(10_000 - 500 - 300 - 8), [`free:${scene.serviceId}`]: '2' });
    expect(Object.keys(await ledger.store.open(scene.accountId))).toEqual([held[2].usageId]);
    expect(await repairs()).toMatchObject([
      {
        accountId: scene.accountId,
        madeBy: 'test',
        state: 'done',
        reason: expect.stringContaining('2 holds belonged to calls that had ended; the balance'),
        before: { balance_micros: 9_422, free_used: { [scene.serviceId]: 1 } },
        after: { balance_micros: 9_192, free_used: { [scene.serviceId]: 2 } },
      },
    ]);
    // The gateway is dead: the sweep settles the remaining holds once, except those of stored calls.
    await ledger.store.command(
      'hset',
      ledger.store.keys.lease[ledger.store.keys.shardOf(scene.accountId)] as string,
      'gateway-1',
      1,
    );
    const { redis, keys } = ledger.store;
    expect(await new Sweeper({ redis, keys, leaseSeconds: 5, isReconciled: () => true, log: QUIET }).sweepOnce()).toBe(
      1,
    );
    await storeAll();
    expect(await drifts()).toEqual([]);
    expect(await ledger.store.balance(scene.accountId)).toBe(await ledger.balance(scene.accountId));
  });

  it('is repaired, whatever was in progress when it died', async () => {
    for (let round = 0; round < 3; round++) {
      await ledger.clear();
      const random = seeded(round);
      const scenes = await Promise.all([newScene(50_000), newScene(50_000), newScene(50_000)]);
      const open: (readonly [Scene, ReturnType<typeof request>])[] = [];
      const step = async (): Promise<void> => {
        const scene = scenes[random(scenes.length)] as Scene;
        if (random(2) === 0) {
          const one = request(scene, 1 + random(400), random(3) === 0 ? 3 : 0);
          await admit(ledger.store, one);
          open.push([scene, one]);
        } else if (open.length > 0) {
          const [[, one]] = open.splice(random(open.length), 1) as [(typeof open)[0]];
          await settle(ledger.store, one, random(3) === 0);
        }
      };
      const steps = async (count: number): Promise<void> => {
        for (let i = 0; i < count; i++) await step();
      };
      await steps(30);
      if (random(2) === 0) await storeAll();
      await steps(10 + random(20));
      await keepState(ledger);
      await steps(random(30));
      await storeAll();
      // Such calls vanish completely, charge and record together.
      await steps(random(10));
      const books = await ledger.readBooks();
      await comeBackOlder(ledger);
      expect(await drifts(), `round ${round}`).toEqual([]);
      await storeAll();
      expect(await ledger.readBooks()).toEqual(books);
      expect(await drifts(), `round ${round}`).toEqual([]);
    }
  });

  it('is repaired while the accounts keep calling', async () => {
    const scenes = await Promise.all(Array.from({ length: 6 }, () => newScene(100_000)));
    await keepState(ledger);
    for (const scene of scenes) for (let i = 1; i < 4; i++) await call(scene, 100 * i);
    await storeAll();
    await comeBackOlder(ledger);
    const writer = ledger.startWriter({ batchSize: 40 });
    let running = true;
    const load = scenes.map(async (scene) => {
      for (let i = 0; running; i++) await call(scene, 1 + (i % 7), i % 4 === 0);
    });
    await until(async () => (await drifts()).length === 0);
    running = false;
    await Promise.all(load);
    await ledger.drained();
    await writer.stop();
    expect(await drifts()).toEqual([]);
    for (const { accountId } of scenes) {
      expect(await ledger.store.balance(accountId)).toBe(await ledger.balance(accountId));
    }
  });
});

/** A generator of numbers below `n`, the same for the same seed. */
function seeded(seed: number): (n: number) => number {
  let state = seed * 2_654_435_761 + 12_345;
  return (n) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}
