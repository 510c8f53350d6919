import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { makeDebit } from '../../../src/accounts/debits.ts';
import { Fence } from '../../../src/ledger/history/fence.ts';
import { compare } from '../../../src/ledger/reconcile/identity.ts';
import { Reconciler } from '../../../src/ledger/reconcile/reconciler.ts';
import { ShardView } from '../../../src/ledger/reconcile/shard-view.ts';
import { readRedisRun } from '../../../src/ledger/redis-run.ts';
import { CreditWallets } from '../../../src/ledger/wallets/credit-wallets.ts';
import { DebitWallets } from '../../../src/ledger/wallets/debit-wallets.ts';
import type { Sql } from '../../../src/platform/postgres.ts';
import { admit, request, type Scene, settle } from '../../admission/calls.ts';
import { buildSources } from '../../support/build.ts';
import { QUIET, SHARDS } from '../../support/store.ts';
import { comeBackOlder, keepState } from '../reconcile/older-redis.ts';
import { ComparedLedger } from '../reconcile/scene.ts';

const BY = { actor: 'system', actorAccountId: null, requestId: null };

let compared: ComparedLedger;
let wallets: DebitWallets;
let build: string;
beforeAll(async () => {
  build = buildSources();
  compared = await ComparedLedger.open();
});
afterAll(() => compared.close());
beforeEach(async () => {
  await compared.clear();
  wallets = walletsWith(compared.ledger.sql);
});

function fence(): Fence {
  const { sql, store } = compared.ledger;
  return new Fence({ sql, redis: store.redis, keys: store.keys });
}

function walletsWith(sql: Sql): DebitWallets {
  const { ledger, hydrator } = compared;
  return new DebitWallets({ sql, redis: ledger.store.redis, keys: ledger.store.keys, hydrator, log: QUIET });
}

/** A process that dies after the wallet has decided: it never stores the outcome. */
const dying = () =>
  walletsWith(Object.assign((() => {}) as unknown as Sql, { begin: () => Promise.reject(new Error('killed')) }));

const newDebit = ({ accountId }: Scene, amountMicros: number, reference = 'r') => ({
  accountId,
  amountMicros,
  reference,
  reason: 'a test',
});
const make = (scene: Scene, amountMicros: number, reference = 'r', carrier = wallets) =>
  makeDebit(fence(), carrier, newDebit(scene, amountMicros, reference), BY);

type Row = { seq: number; state: string; amount: number };
const debitsOf = async ({ accountId }: Scene): Promise<Row[]> => {
  const rows = await compared.ledger.sql<Row[]>`
    SELECT seq, state, amount FROM debits WHERE account_id = ${accountId} ORDER BY seq`;
  return rows.map((row) => ({ ...row }));
};
const fieldsOf = ({ accountId }: Scene) => compared.ledger.store.hash(compared.ledger.store.walletName(accountId));

it('a debit takes at most what the wallet has without its holds', async () => {
  const { store } = compared.ledger;
  const scene = await compared.newScene(10_000);
  const open = request(scene, 3_000);
  expect((await admit(store, open)).outcome).toBe('admitted');
  await expect(make(scene, 7_001)).rejects.toMatchObject({ code: 'conflict', fields: { balance: 0.007 } });
  expect(await compared.balances(scene)).toEqual([7_000, 10_000]);
  // The reference that was refused can be used again.
  expect(await make(scene, 7_000)).toMatchObject({ created: true, debit: { amountMicros: 7_000 } });
  expect(await compared.balances(scene)).toEqual([0, 3_000]);
  await settle(store, open, true);
  await compared.storeAll();
  expect(await compared.balances(scene)).toEqual([3_000, 3_000]);
  expect(await compared.drifts()).toEqual([]);
  await compared.ledger.readBooks();
});

it('one reference takes once, and no two references take more than the wallet has, even sent simultaneously', async () => {
  const scene = await compared.newScene(10_000);
  const same = await Promise.all(
    Array.from({ length: 6 }, (_, i) => make(scene, 4_000, 'same', i % 2 ? wallets : walletsWith(compared.ledger.sql))),
  );
  expect(same.filter((made) => made?.created)).toHaveLength(1);
  expect(new Set(same.map((made) => String(made?.debit.endedAt?.getTime()))).size).toBe(1);
  const others = await Promise.allSettled(['a', 'b', 'c'].map((reference) => make(scene, 2_500, reference)));
  expect(others.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
  expect(await compared.balances(scene)).toEqual([1_000, 1_000]);
  await expect(make(scene, 4_001, 'same')).rejects.toMatchObject({ code: 'conflict' });
  await expect(make(await compared.newScene(9_000), 4_000, 'same')).rejects.toMatchObject({ code: 'conflict' });
  await compared.ledger.readBooks();
});

it('a debit whose process is killed at any point is taken once, by the next process', async () => {
  const { ledger } = compared;
  const points = ['before the script', 'after the script', 'before the commit', 'after the commit'];
  const scenes = await Promise.all(points.map(() => compared.newScene(10_000)));
  await Promise.all(
    points.map(async (dieAt, i) => {
      const debit = newDebit(scenes[i] as Scene, 4_000, dieAt);
      const places = { databaseUrl: ledger.databaseUrl, redisUrl: ledger.store.server.url, shards: SHARDS };
      const file = path.resolve('test/ledger/fixtures/debit-process.mjs');
      const child = spawn(process.execPath, [file, build, JSON.stringify({ ...places, debit, dieAt })], {
        stdio: 'inherit',
      });
      expect(await once(child, 'exit')).toEqual([null, 'SIGKILL']);
    }),
  );
  const states = await Promise.all(
    scenes.map(async (scene) => [(await debitsOf(scene))[0]?.state, ...(await compared.balances(scene))]),
  );
  expect(states).toEqual([
    ['begun', 10_000, 10_000],
    ['begun', 6_000, 10_000],
    ['begun', 6_000, 10_000],
    ['taken', 6_000, 6_000],
  ]);
  expect(await compared.drifts()).toEqual([]);
  // The operator repeats half of them, and the writer's job ends the rest.
  for (const i of [0, 2]) {
    expect(await make(scenes[i] as Scene, 4_000, points[i])).toMatchObject({ created: true });
  }
  await wallets.endLeft(0);
  for (const scene of scenes) expect(await compared.balances(scene)).toEqual([6_000, 6_000]);
  expect(await compared.drifts()).toEqual([]);
  expect(await compared.repairs()).toEqual([]);
  await ledger.readBooks();
});

it('a debit that was begun while the clock was ahead is completed without waiting for that time', async () => {
  const scene = await compared.newScene(10_000);
  await expect(make(scene, 4_000, 'r', dying())).rejects.toThrow('killed');
  expect(await compared.balances(scene)).toEqual([6_000, 10_000]);
  await compared.ledger.sql`UPDATE debits SET created_at = created_at + interval '400 days'`;
  await wallets.endLeft();
  expect(await compared.balances(scene)).toEqual([6_000, 6_000]);
});

it('an outcome that the wallet has decided stays, even if its balance changes before the outcome is stored', async () => {
  const scene = await compared.newScene(10_000);
  await expect(make(scene, 10_001, 'refused', dying())).rejects.toThrow('killed');
  await compared.ledger.credit(scene.accountId, 500);
  await creditAll();
  await wallets.endLeft(0);
  expect(await debitsOf(scene)).toEqual([{ seq: 1, state: 'refused', amount: 10_001 }]);
  await expect(make(scene, 10_500, 'taken', dying())).rejects.toThrow('killed');
  await expect(make(scene, 1, 'another')).rejects.toMatchObject({ fields: { balance: 0 } });
  expect(await debitsOf(scene)).toMatchObject([{ state: 'refused' }, { state: 'taken' }, { state: 'refused' }]);
  expect(await compared.balances(scene)).toEqual([0, 0]);
});

it('a debit that Redis lost is taken again, with a record; the wallet that came back decides a debit that was begun', async () => {
  const { ledger } = compared;
  const [lost, begun, spent] = await Promise.all([1, 2, 3].map(() => compared.newScene(10_000)));
  if (!lost || !begun || !spent) throw new Error('no scenes');
  // In doubt, a wallet with something under way is repaired, and not dropped.
  await compared.keepBusy(lost);
  await keepState(ledger);
  await make(lost, 4_000, 'lost');
  await make(spent, 4_000, 'earlier');
  await expect(make(begun, 6_000, 'begun', dying())).rejects.toThrow('killed');
  await comeBackOlder(ledger);
  expect(await compared.balances(lost)).toEqual([10_000, 6_000]);
  // The next debit of the account takes the lost one, too, before it is decided.
  await expect(make(spent, 6_001, 'more than is left')).rejects.toMatchObject({ fields: { balance: 0.006 } });
  expect(await compared.balances(spent)).toEqual([6_000, 6_000]);
  await wallets.endLeft(0);
  expect(await compared.balances(begun)).toEqual([4_000, 4_000]);

  expect(await compared.drifts()).toEqual([]);
  expect(await compared.balances(lost)).toEqual([6_000, 6_000]);
  expect(await compared.repairs()).toMatchObject([
    {
      accountId: lost.accountId,
      state: 'done',
      changeMicros: -4_000,
      before: { debit_seq: 0, debited_micros: 0 },
      reason: expect.stringContaining('debits'),
      after: { debit_seq: 1, debited_micros: 4_000 },
    },
  ]);
  await ledger.store.command('flushall');
  await make(begun, 1_000, 'after a flush');
  expect(await compared.balances(begun)).toEqual([3_000, 3_000]);
  expect(await fieldsOf(begun)).toMatchObject({ debit_seq: '2', debited: '7000' });
  expect(await compared.drifts()).toEqual([]);
});

it('a restoration planned before another debit takes nothing if that debit has already restored the lost one', async () => {
  const { sql, store } = compared.ledger;
  const scene = await compared.newScene(10_000);
  await make(scene, 4_000, 'lost');
  await store.command('hset', store.walletName(scene.accountId), 'balance', 10_000, 'debit_seq', 0, 'debited', 0);
  const { script } = store.redis;
  // The debit comes between the reading of the wallet and its repair.
  const redis = Object.create(store.redis, {
    script: {
      value: async (wanted: { name: string }, ...rest: [number, readonly string[]]) => {
        if (wanted.name === 'repair-wallet') await make(scene, 1_000, 'between');
        return script.call(store.redis, wanted as never, ...rest);
      },
    },
    command: { value: store.redis.command.bind(store.redis) },
  });
  await new Reconciler({ sql, redis, keys: store.keys }).run('test');
  expect(await compared.balances(scene)).toEqual([5_000, 5_000]);
  expect(await compared.repairs()).toMatchObject([{ state: 'left' }]);
  expect(await compared.drifts()).toEqual([]);
});

it('a damaged wallet decides nothing, and the debit is decided once it is repaired', async () => {
  const { store } = compared.ledger;
  const scene = await compared.newScene(10_000);
  const name = store.walletName(scene.accountId);
  for (const [field, damage, sound] of [
    ['balance', '1e4', '10000'],
    ['debited', 'x', '0'],
    ['debit_seq', '1.5', '0'],
    ['debited', null, '0'],
    ['debit_seq', null, '0'],
  ] as const) {
    if (damage === null) await store.command('hdel', name, field);
    else await store.command('hset', name, field, damage);
    await expect(make(scene, 4_000)).rejects.toThrow('is damaged in redis');
    expect((await compared.drifts()).map(({ damagedFields }) => damagedFields)).toEqual([[field]]);
    await store.command('hset', name, field, sound);
  }
  expect(await make(scene, 4_000)).toMatchObject({ created: true });
  expect(await compared.balances(scene)).toEqual([6_000, 6_000]);
});

// ---- any order of steps, crashes and older Redises

type Step =
  | { readonly do: 'debit' | 'die before' | 'die after' | 'stall'; readonly amount: number; readonly repeat: boolean }
  | { readonly do: 'call' | 'credit'; readonly amount: number }
  | { readonly do: 'go on' | 'end left' | 'keep' | 'older' | 'empty' | 'reconcile' };

const amount = fc.integer({ min: 1, max: 60 }).map((n) => n * 100);
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constantFrom('debit', 'die before', 'die after', 'stall'),
        amount,
        repeat: fc.boolean(),
      }),
    },
    { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('call', 'credit'), amount }) },
    {
      weight: 5,
      arbitrary: fc.record({ do: fc.constantFrom('go on', 'end left', 'keep', 'older', 'empty', 'reconcile') }),
    },
  ) as fc.Arbitrary<Step>,
  { minLength: 4, maxLength: 16 },
);

/** One account, and processes that die or stall in the middle of its debits. */
class Story {
  readonly scene: Scene;
  /** What each reference was for, and whether somebody was told that it was taken. */
  readonly asked = new Map<string, { readonly amount: number; wasTold: boolean }>();
  readonly stalled: { readonly goOn: () => void; readonly over: Promise<unknown> }[] = [];
  hasLost = false;
  creditedMicros = 10_000;

  constructor(scene: Scene) {
    this.scene = scene;
  }

  async debit(amountMicros: number, repeat: boolean, carrier: Pick<DebitWallets, 'carryOut'>): Promise<void> {
    const last = Array.from(this.asked.keys()).at(-1);
    const reference = repeat && last !== undefined ? last : `r${this.asked.size}`;
    const asked = this.asked.get(reference) ?? { amount: amountMicros, wasTold: false };
    this.asked.set(reference, asked);
    try {
      await makeDebit(fence(), carrier, newDebit(this.scene, asked.amount, reference), BY);
      asked.wasTold = true;
    } catch (error) {
      expect((error as Error).message).toMatch(/^(killed|amount: the wallet has only .* USD apart from its holds\.)$/);
    }
  }

  /** A process that is suspended between the decision and its storing. */
  async stall(amountMicros: number, repeat: boolean): Promise<void> {
    const { sql } = compared.ledger;
    let goOn = () => {};
    let hasDecided = () => {};
    const resumed = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const decided = new Promise<void>((resolve) => {
      hasDecided = resolve;
    });
    const slow = Object.assign((() => {}) as unknown as Sql, {
      begin: async (work: Parameters<Sql['begin']>[0]) => {
        hasDecided();
        await resumed;
        return sql.begin(work);
      },
    });
    const over = this.debit(amountMicros, repeat, walletsWith(slow)).then(hasDecided);
    this.stalled.push({ goOn, over });
    await decided;
  }

  async goOn(): Promise<void> {
    const first = this.stalled.shift();
    first?.goOn();
    await first?.over;
  }

  async call(price: number): Promise<void> {
    const { store } = compared.ledger;
    const { keyId, accountId } = this.scene;
    await store.loadKey(keyId, accountId, 100_000);
    await compared.hydrator.loadWallet(accountId);
    const call = request(this.scene, price);
    if ((await admit(store, call)).outcome === 'admitted') await settle(store, call, false);
  }

  async credit(amountMicros: number): Promise<void> {
    await compared.ledger.credit(this.scene.accountId, amountMicros);
    this.creditedMicros += amountMicros;
    await creditAll();
  }

  /** Copies all of Redis into its second database. */
  async keep(): Promise<void> {
    const { store } = compared.ledger;
    await store.command('swapdb', 0, 1);
    await store.command('flushdb');
    await store.command('swapdb', 0, 1);
    for (const key of (await store.command('keys', '*')) as string[]) await store.command('copy', key, key, 'db', 1);
  }

  async comeBack(isEmpty: boolean): Promise<void> {
    const { store } = compared.ledger;
    await (isEmpty ? store.command('flushdb') : store.command('swapdb', 0, 1));
    if (!isEmpty) await this.keep();
    this.hasLost = true;
  }

  async take(step: Step): Promise<unknown> {
    switch (step.do) {
      case 'debit':
        return this.debit(step.amount, step.repeat, wallets);
      case 'die before':
        return this.debit(step.amount, step.repeat, { carryOut: () => Promise.reject(new Error('killed')) });
      case 'die after':
        return this.debit(step.amount, step.repeat, dying());
      case 'stall':
        return this.stall(step.amount, step.repeat);
      case 'go on':
        return this.goOn();
      case 'call':
        return this.call(step.amount);
      case 'credit':
        return this.credit(step.amount);
      case 'end left':
        return wallets.endLeft(0);
      case 'keep':
        return this.keep();
      case 'older':
      case 'empty':
        return this.comeBack(step.do === 'empty');
      case 'reconcile':
        return compared.drifts();
    }
  }
}

async function creditAll(): Promise<void> {
  const { sql, store } = compared.ledger;
  const credits = new CreditWallets({
    sql,
    redis: store.redis,
    keys: store.keys,
    hydrator: compared.hydrator,
    log: QUIET,
  });
  await credits.applyMissing();
}

/** Compares the account without repairing anything. Null while its wallet is not loaded. */
async function look({ accountId }: Scene) {
  const { sql, store } = compared.ledger;
  const stores = { sql, redis: store.redis, keys: store.keys };
  const view = new ShardView(stores, store.keys.shardOf(accountId), (await readRedisRun(store.redis)).dataId);
  await view.readAhead();
  const [state] = await view.read([accountId], async ({ states }) => states);
  return state === undefined ? null : { ...compare(state), missing: state.settled.missingCreditsMicros };
}

it('whatever dies, stalls or comes back older during debits, calls and credits, no micro-dollar is lost or taken twice', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (taken) => {
      await compared.clear();
      const story = new Story(await compared.newScene(10_000));
      await story.keep();
      for (const step of taken) {
        await story.take(step);
        const now = await look(story.scene);
        expect(now?.driftMicros ?? 0, `after ${step.do}`).toBe(0);
        if (!story.hasLost) expect(now?.walletMicros).toBeGreaterThanOrEqual(0);
      }
      while (story.stalled.length > 0) await story.goOn();
      await wallets.endLeft(0);
      await compared.hydrator.loadWallet(story.scene.accountId);
      expect(await compared.drifts()).toEqual([]);
      await creditAll();
      // The comparison has dropped it if Redis was in doubt.
      await compared.hydrator.loadWallet(story.scene.accountId);
      expect(await look(story.scene)).toMatchObject({ driftMicros: 0, lostDebitsMicros: 0, missing: 0 });

      const rows = await compared.ledger.sql<{ reference: string; amount: number; state: string }[]>`
        SELECT reference, amount, state FROM debits`;
      expect(rows.filter(({ state }) => state === 'begun')).toEqual([]);
      const paid = rows.filter(({ state }) => state === 'taken');
      for (const { reference, amount } of paid) expect(story.asked.get(reference)?.amount).toBe(amount);
      for (const [reference, { wasTold }] of story.asked) {
        if (wasTold) expect(paid.map((debit) => debit.reference)).toContain(reference);
      }
      const sum = paid.reduce((total, { amount }) => total + amount, 0);
      expect(await compared.ledger.balance(story.scene.accountId)).toBe(story.creditedMicros - sum);
      expect(Number((await fieldsOf(story.scene)).debited)).toBe(sum);
      await compared.ledger.readBooks();
    }),
    { numRuns: 15 },
  );
});
