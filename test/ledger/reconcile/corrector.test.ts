import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { recordAct } from '../../../src/accounts/audit.ts';
import { makeDebit } from '../../../src/accounts/debits.ts';
import { selectStatement } from '../../../src/accounts/statement-sql.ts';
import { Fence } from '../../../src/ledger/history/fence.ts';
import type { MovedBalance } from '../../../src/ledger/posting.ts';
import type { NewCorrection } from '../../../src/ledger/reconcile/corrections-sql.ts';
import { Corrector } from '../../../src/ledger/reconcile/corrector.ts';
import { repairWalletScript } from '../../../src/ledger/scripts.ts';
import { CreditWallets } from '../../../src/ledger/wallets/credit-wallets.ts';
import { DebitWallets } from '../../../src/ledger/wallets/debit-wallets.ts';
import { uuidv7 } from '../../../src/platform/ids.ts';
import type { RedisStore } from '../../../src/platform/redis.ts';
import { admit, request, type Scene, settle } from '../../admission/calls.ts';
import { OPERATOR } from '../../support/accounts.ts';
import { QUIET } from '../../support/store.ts';
import { comeBackOlder, keepState } from './older-redis.ts';
import { ComparedLedger } from './scene.ts';

let compared: ComparedLedger;
beforeAll(async () => {
  compared = await ComparedLedger.open();
});
afterAll(() => compared.close());
beforeEach(() => compared.clear());

/** As another process would have it. */
function corrector(redis: RedisStore = compared.ledger.store.redis): Corrector {
  const { sql, store } = compared.ledger;
  return new Corrector({ sql, redis, keys: store.keys });
}

const operator = {
  madeBy: 'admin acf_1',
  record: (tx: Parameters<typeof recordAct>[0], _: object, moved: MovedBalance | null) =>
    recordAct(tx, {
      ...OPERATOR,
      action: 'account.correct',
      subjectType: 'account',
      subjectId: 'x',
      before: moved?.before ?? null,
      after: moved?.after ?? null,
    }),
};

const wanted = (
  { accountId }: Pick<Scene, 'accountId'>,
  believe: NewCorrection['believe'],
  reference = 'incident 1',
): NewCorrection => ({ accountId, believe, reference, reason: 'a test' });
const correct = (
  scene: Pick<Scene, 'accountId'>,
  believe: NewCorrection['believe'],
  reference?: string,
  by = corrector(),
) => by.correct(wanted(scene, believe, reference), operator);

const wallet = ({ accountId }: Scene) => compared.ledger.store.hash(compared.ledger.store.walletName(accountId));
const change = ({ accountId }: Scene, field: string, by: number) =>
  compared.ledger.store.command('hincrby', compared.ledger.store.walletName(accountId), field, by);
const openOf = ({ accountId }: Scene): string => {
  const { keys } = compared.ledger.store;
  return keys.open[keys.shardOf(accountId)] as string;
};
const acts = async () =>
  (await compared.ledger.sql`SELECT before, after FROM audit`).map(({ before, after }) => ({ before, after }));
const journalOf = async ({ accountId }: Scene) => {
  const rows = await compared.ledger.sql`
    SELECT j.reference, e.ledger, e.amount FROM journal j JOIN entries e ON e.journal_id = j.id
    WHERE j.kind = 'correction' AND j.id IN (SELECT journal_id FROM entries WHERE account_id = ${accountId}) ORDER BY e.ledger`;
  return rows.map((row) => ({ ...row }));
};
const refused = (message: string) => ({ code: 'conflict', message: expect.stringContaining(message) });

/** An account with a call that is held, one that waits to be stored and one that is stored, and a drift of money and of free calls. */
async function drifting(micros: number, freeCalls: number): Promise<Scene> {
  const scene = await compared.newScene(10_000);
  await compared.call(scene, 100, false, 5);
  await compared.call(scene, 500);
  await compared.storeAll();
  await compared.call(scene, 40);
  await admit(compared.ledger.store, request(scene, 3));
  await compared.changeBalance(scene, micros);
  await change(scene, `free:${scene.serviceId}`, freeCalls);
  return scene;
}

describe('an operator who believes postgres', () => {
  it('takes the drift out of the wallet, with a record as for a repair', async () => {
    const scene = await drifting(700, -1);
    const { correction, created } = await correct(scene, 'postgres');
    expect(created).toBe(true);
    expect(correction).toMatchObject({
      ...wanted(scene, 'postgres'),
      madeBy: 'admin acf_1',
      driftMicros: 700,
      freeDrifts: [{ serviceId: scene.serviceId, used: 0, expected: 1 }],
      storedHolds: 0,
    });
    expect(await compared.balances(scene)).toEqual([9_457, 9_500]);
    expect(await compared.repairs()).toMatchObject([
      {
        accountId: scene.accountId,
        madeBy: 'admin acf_1',
        reason: 'a test',
        state: 'done',
        changeMicros: -700,
        before: { balance_micros: 10_157, free_used: { [scene.serviceId]: 0 } },
        after: { balance_micros: 9_457, free_used: { [scene.serviceId]: 1 } },
      },
    ]);
    expect(await compared.drifts()).toEqual([]);
    expect(await journalOf(scene)).toEqual([]);
    expect(await acts()).toEqual([{ before: { wallet: 0.010157 }, after: { wallet: 0.009457 } }]);
  });

  it('removes holds of stored calls, whatever else drifts', async () => {
    const { ledger } = compared;
    const scene = await compared.newScene(10_000);
    const call = request(scene, 500);
    await admit(ledger.store, call);
    const { [call.usageId]: hold = '' } = await ledger.store.open(scene.accountId);
    await settle(ledger.store, call, false);
    await compared.storeAll();
    await ledger.store.command('hset', openOf(scene), call.usageId, hold);
    await compared.changeBalance(scene, 33);
    await expect(correct(scene, 'redis')).rejects.toMatchObject(refused('holds of calls that Postgres has stored'));
    expect(await correct(scene, 'postgres')).toMatchObject({ correction: { driftMicros: 33, storedHolds: 1 } });
    expect(await ledger.store.open(scene.accountId)).toEqual({});
    expect(await compared.balances(scene)).toEqual([9_500, 9_500]);
    expect(await compared.drifts()).toEqual([]);
  });

  it('takes back credit and debit numbers that Postgres lacks, so that the next ones with these numbers count', async () => {
    const { ledger, hydrator } = compared;
    const { sql, store } = ledger;
    const stores = { sql, redis: store.redis, keys: store.keys, hydrator, log: QUIET };
    const scene = await compared.newScene(10_000);
    // As after a Postgres that lost a credit of 300 and a debit of 50.
    await compared.changeBalance(scene, 250);
    await change(scene, 'credit_seq', 1);
    await change(scene, 'debit_seq', 1);
    await change(scene, 'debited', 50);
    await expect(correct(scene, 'redis')).rejects.toMatchObject(
      refused('credits or debits that Postgres does not know'),
    );
    await correct(scene, 'postgres');
    expect(await compared.drifts()).toEqual([]);
    expect(await wallet(scene)).toMatchObject({ balance: '10000', credit_seq: '1', debit_seq: '0', debited: '0' });

    const seq = await ledger.credit(scene.accountId, 5_000);
    await new CreditWallets(stores).apply({ accountId: scene.accountId, seq, amountMicros: 5_000, budgets: null });
    const debit = { accountId: scene.accountId, amountMicros: 70, reference: 'd', reason: 'again' };
    await makeDebit(new Fence(stores), new DebitWallets(stores), debit, OPERATOR);
    expect(await compared.balances(scene)).toEqual([14_930, 14_930]);
    expect(await compared.drifts()).toEqual([]);
  });

  it('ends a debit that waits because the wallet has given its number to a debit that Postgres lost', async () => {
    const { ledger, hydrator } = compared;
    const stores = { sql: ledger.sql, redis: ledger.store.redis, keys: ledger.store.keys, hydrator, log: QUIET };
    const scene = await compared.newScene(10_000);
    await compared.changeBalance(scene, -50);
    await change(scene, 'debit_seq', 1);
    await change(scene, 'debited', 50);
    const debit = { accountId: scene.accountId, amountMicros: 70, reference: 'another', reason: 'a test' };
    const make = () => makeDebit(new Fence(stores), new DebitWallets(stores), debit, OPERATOR);
    await expect(make()).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('end its drift'),
    });
    const notRepaired = 'the wallet has a credit or a debit that Postgres does not know';
    expect(await compared.drifts()).toMatchObject([{ driftMicros: -50, notRepaired }]);
    await correct(scene, 'postgres');
    expect(await make()).toMatchObject({ created: true });
    expect(await compared.balances(scene)).toEqual([9_930, 9_930]);
    expect(await compared.drifts()).toEqual([]);
  });
});

describe('an operator who believes redis', () => {
  it('changes the books on both sides and leaves the wallet alone; the account sees it in its statement', async () => {
    const { ledger } = compared;
    const scene = await drifting(-250, 2);
    const { ticket: _, ...before } = await wallet(scene);
    expect(await correct(scene, 'redis')).toMatchObject({ created: true, correction: { driftMicros: -250 } });
    const { ticket: __, ...after } = await wallet(scene);
    expect(after).toEqual(before);
    expect(await compared.balances(scene)).toEqual([9_207, 9_250]);
    expect(await journalOf(scene)).toEqual([
      { reference: 'incident 1', ledger: 'cash', amount: 250 },
      { reference: 'incident 1', ledger: 'wallet', amount: -250 },
    ]);
    expect((await ledger.readBooks()).free).toEqual({ [`${scene.accountId} ${scene.serviceId}`]: 3 });
    expect(await compared.drifts()).toEqual([]);
    expect(await compared.repairs()).toEqual([]);
    expect(await acts()).toEqual([{ before: { settled: 0.0095 }, after: { settled: 0.00925 } }]);
    await compared.storeAll();
    const asked = {
      accountId: scene.accountId,
      ledger: 'wallet',
      fromMs: null,
      toMs: null,
      before: null,
      limit: 10,
    } as const;
    const { movements } = await selectStatement(ledger.sql, asked);
    expect(movements.find(({ kind }) => kind === 'correction')).toMatchObject({
      amountMicros: -250,
      reference: 'incident 1',
      reason: 'a test',
    });
    expect(movements.reduce((sum, { amountMicros }) => sum + amountMicros, 0)).toBe(
      await ledger.balance(scene.accountId),
    );
  });

  it('changes nothing if its process dies before the end, and can be made again', async () => {
    const scene = await drifting(-250, 2);
    const dying = { ...operator, record: () => Promise.reject(new Error('killed')) };
    await expect(corrector().correct(wanted(scene, 'redis'), dying)).rejects.toThrow('killed');
    expect(await journalOf(scene)).toEqual([]);
    expect(await compared.drifts()).toMatchObject([{ driftMicros: -250 }]);
    expect(await correct(scene, 'redis')).toMatchObject({ created: true });
    expect(await compared.drifts()).toEqual([]);
    expect(await acts()).toHaveLength(1);
  });
});

it('believes redis only once the comparison has judged what Redis may have lost', async () => {
  const { ledger } = compared;
  const scene = await compared.newScene(10_000);
  await compared.keepBusy(scene);
  await keepState(ledger);
  await compared.call(scene, 300);
  await compared.storeAll();
  await comeBackOlder(ledger);
  await expect(correct(scene, 'redis')).rejects.toMatchObject(refused('Compare now'));
  expect(await compared.drifts()).toEqual([]);
  expect(await compared.balances(scene)).toEqual([9_700, 9_700]);
  await compared.changeBalance(scene, 4);
  expect(await correct(scene, 'redis')).toMatchObject({ correction: { driftMicros: 4 } });
  expect(await compared.balances(scene)).toEqual([9_704, 9_704]);
});

describe.each(['postgres', 'redis'] as const)('believing %s', (believe) => {
  it('ends the drift exactly, while calls, credits and debits continue and are stored', async () => {
    const { ledger, hydrator } = compared;
    const { sql, store } = ledger;
    const stores = { sql, redis: store.redis, keys: store.keys, hydrator, log: QUIET };
    const [credits, debits] = [new CreditWallets(stores), new DebitWallets(stores)];
    const scene = await drifting(1_234, 1);
    const writer = ledger.startWriter({ batchSize: 20 });
    let running = true;
    const load = [1, 2, 3].map(async (price) => {
      for (let i = 0; running; i++) await compared.call(scene, price, i % 3 === 0, i % 2 === 0 ? 5 : 0);
    });
    const money = (async () => {
      for (let i = 0; running; i++) {
        const seq = await ledger.credit(scene.accountId, 50);
        await credits.apply({ accountId: scene.accountId, seq, amountMicros: 50, budgets: null });
        const debit = { accountId: scene.accountId, amountMicros: 7, reference: `d${i}`, reason: 'load' };
        await makeDebit(new Fence(stores), debits, debit, OPERATOR);
      }
    })();
    const drifts: number[] = [];
    try {
      for (const round of [1, 2, 3]) {
        drifts.push((await correct(scene, believe, `round ${round}`)).correction.driftMicros);
        await compared.changeBalance(scene, -round);
      }
      drifts.push((await correct(scene, believe, 'last')).correction.driftMicros);
    } finally {
      running = false;
      await Promise.all([...load, money]);
    }
    expect(drifts).toEqual([1_234, -1, -2, -3]);
    await ledger.drained();
    await writer.stop();
    expect(await compared.drifts()).toEqual([]);
    const [redis, postgres] = await compared.balances(scene);
    // The call that is still open holds 3.
    expect(redis + 3).toBe(postgres);
    await ledger.readBooks();
  });

  it('is made once per reference: a repeat gets the same answer, and another decision is refused', async () => {
    const scene = await drifting(700, 0);
    const first = await correct(scene, believe);
    await compared.changeBalance(scene, 11);
    expect(await correct(scene, believe)).toEqual({ ...first, created: false });
    const other = believe === 'postgres' ? 'redis' : 'postgres';
    const another = await drifting(1, 0);
    await expect(correct(scene, other)).rejects.toMatchObject(refused('reference: belongs to another correction'));
    await expect(correct(another, believe)).rejects.toMatchObject(refused('reference: belongs to another correction'));
    const reworded = { ...wanted(scene, believe), reason: 'other words' };
    await expect(corrector().correct(reworded, operator)).rejects.toMatchObject(refused('reference'));
    expect((await compared.drifts()).map(({ driftMicros }) => driftMicros).sort()).toEqual([1, 11]);
    expect(await acts()).toHaveLength(1);
  });

  it('counts once when two admins decide simultaneously, with one reference or two, in one process or two', async () => {
    for (const other of ['postgres', 'redis'] as const) {
      const scene = await drifting(700, 1);
      const results = await Promise.allSettled([
        correct(scene, believe, `${scene.accountId} a`),
        correct(scene, other, `${scene.accountId} b`),
      ]);
      expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
      expect(results.find(({ status }) => status === 'rejected')).toMatchObject({ reason: refused('no drift') });
    }
    const scene = await drifting(700, 1);
    const one = corrector();
    const same = await Promise.all([one, one, corrector()].map((by) => correct(scene, believe, 'same', by)));
    expect(same.map(({ created }) => created).sort()).toEqual([false, false, true]);
    expect(new Set(same.map(({ correction }) => correction.createdAt.getTime())).size).toBe(1);
    const all = await Promise.allSettled(
      [await drifting(5, 0), await drifting(6, 0)].map((of) => correct(of, believe, 'x')),
    );
    expect(all.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(await compared.drifts()).toHaveLength(1);
    await compared.ledger.readBooks();
  });

  it('does not count in addition to a repair by a comparison that runs at the same moment', async () => {
    const { ledger } = compared;
    const scenes = await Promise.all(Array.from({ length: 6 }, () => compared.newScene(10_000)));
    await compared.keepBusy(...scenes);
    await keepState(ledger);
    for (const scene of scenes) await compared.call(scene, 300);
    await compared.storeAll();
    await comeBackOlder(ledger);
    const outcomes = await Promise.allSettled([
      compared.run(),
      ...scenes.map((scene, i) => correct(scene, believe, `incident ${i}`)),
    ]);
    for (const outcome of outcomes) {
      // 55P03: on a busy machine the comparison may wait for its locks in vain.
      if (outcome.status === 'rejected')
        expect(outcome.reason).toMatchObject({ code: expect.stringMatching(/^(conflict|unavailable|55P03)$/) });
    }
    expect(await compared.drifts()).toEqual([]);
    await ledger.readBooks();
  });

  it('is refused if there is no drift, wallet or account, or if the drift cannot be determined', async () => {
    const { store } = compared.ledger;
    const scene = await compared.newScene(10_000);
    await expect(correct(scene, believe)).rejects.toMatchObject(refused('no drift'));
    await expect(correct({ accountId: uuidv7() }, believe)).rejects.toMatchObject({ code: 'not_found' });
    await change(scene, 'balance', 9);
    const open = openOf(scene);
    await store.command('hset', open, uuidv7(), 'v2\tnobody knows');
    await expect(correct(scene, believe)).rejects.toMatchObject(refused('cannot read'));
    await store.command('del', open);
    await store.command('set', open, 'no hash');
    await expect(correct(scene, believe)).rejects.toMatchObject(refused('damaged in Redis'));
    await store.command('del', open);
    await store.command('hset', store.walletName(scene.accountId), 'credit_seq', 'x');
    await expect(correct(scene, believe)).rejects.toMatchObject(refused('damaged in Redis: credit_seq'));
    await store.command('del', store.walletName(scene.accountId));
    await expect(correct(scene, believe)).rejects.toMatchObject(refused('not in Redis'));
    expect(await acts()).toEqual([]);
  });

  it('is refused while Postgres is older than Redis, and while the writer is behind', async () => {
    const { store } = compared.ledger;
    const scene = await drifting(700, 0);
    const shard = store.keys.shardOf(scene.accountId);
    const mark = String(await store.command('get', store.keys.mark[shard] as string));
    await store.command('set', store.keys.mark[shard] as string, `${mark.split(' ')[0]} ${uuidv7()}`);
    await expect(correct(scene, believe)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/older than Redis: it lacks calls that were stored. No money moves/),
      cause: { message: expect.stringContaining(`(shards ${shard})`) },
    });
    await store.command('set', store.keys.mark[shard] as string, mark);
    const fill = "for i = 1, 10001 do redis.call('XADD', KEYS[1], '*', 'e1', 'x') end";
    await store.command('eval', fill, 1, store.keys.usage[shard] as string);
    await expect(correct(scene, believe)).rejects.toMatchObject({ code: 'unavailable' });
    await store.command('xtrim', store.keys.usage[shard] as string, 'MAXLEN', '0');
    expect(await compared.repairs()).toEqual([]);
    expect(await journalOf(scene)).toEqual([]);
  });
});

describe('a correction of the wallet whose reply was lost', () => {
  it.each([true, false])('counts once, and a repeat says that it was made (made in Redis: %s)', async (isMade) => {
    const { redis } = compared.ledger.store;
    const scene = await drifting(700, 1);
    const script: RedisStore['script'] = async (which, keys, args) => {
      const isRepair = which === repairWalletScript;
      const reply = isRepair && !isMade ? null : await redis.script(which, keys, args);
      if (isRepair) throw new Error('Command timed out');
      return reply;
    };
    const deaf: RedisStore = Object.create(redis, {
      shard: { value: () => deaf },
      script: { value: script },
      command: { value: redis.command.bind(redis) },
    });
    await expect(correct(scene, 'postgres', 'r', corrector(deaf))).rejects.toThrow('timed out');
    expect((await compared.repairs()).map(({ state }) => state)).toEqual(['begun']);
    expect(await correct(scene, 'postgres', 'r')).toMatchObject({
      created: !isMade,
      correction: { reference: 'r', driftMicros: 700 },
    });
    expect(await correct(scene, 'postgres', 'r')).toMatchObject({ created: false, correction: { driftMicros: 700 } });
    expect((await compared.repairs()).map(({ state }) => state)).toEqual(isMade ? ['done'] : ['done', 'left']);
    expect(await compared.drifts()).toEqual([]);
    expect(await acts()).toHaveLength(1);
  });
});

describe('whatever drift there is', () => {
  const story = fc.record({
    believe: fc.constantFrom('postgres' as const, 'redis' as const),
    balance: fc.oneof(fc.integer({ min: -20_000, max: 20_000 }), fc.constantFrom(-(2 ** 52), 2 ** 52, 0)),
    freeCalls: fc.integer({ min: -3, max: 3 }),
    credits: fc.constantFrom(0, 0, 2),
    debits: fc.constantFrom(0, 0, 2),
    calls: fc.array(
      fc.record({
        price: fc.integer({ min: 0, max: 900 }),
        free: fc.boolean(),
        end: fc.constantFrom('held', 'charged', 'refunded'),
      }),
      { maxLength: 4 },
    ),
    /** How many of the calls are stored before the rest is made. */
    stored: fc.nat({ max: 4 }),
  });
  type Story = typeof story extends fc.Arbitrary<infer T> ? T : never;

  async function make(scene: Scene, calls: Story['calls']): Promise<void> {
    for (const { price, free, end } of calls) {
      const call = request(scene, price, free ? 2 : 0);
      await admit(compared.ledger.store, call);
      if (end !== 'held') await settle(compared.ledger.store, call, end === 'refunded');
    }
  }

  async function damage(scene: Scene, { balance, freeCalls, credits, debits }: Story): Promise<void> {
    const changes = { balance, [`free:${scene.serviceId}`]: freeCalls, credit_seq: credits, debit_seq: debits };
    for (const [field, by] of Object.entries(changes)) if (by !== 0) await change(scene, field, by);
  }

  /** @returns whether it was made. A refusal must have its reason: nothing drifts, or the books cannot follow the wallet. */
  async function carryOut(scene: Scene, { believe, balance, credits, debits }: Story, drift?: { driftMicros: number }) {
    try {
      const { correction } = await correct(scene, believe, `${scene.accountId} ${believe}`);
      expect(correction.driftMicros).toBe(drift?.driftMicros);
      return true;
    } catch (error) {
      expect(error).toMatchObject({ code: 'conflict' });
      const isBeyondBooks = believe === 'redis' && (credits > 0 || debits > 0 || Math.abs(balance) > 2 ** 51);
      expect([drift === undefined, isBeyondBooks]).toContain(true);
      if (drift !== undefined) await correct(scene, 'postgres', `${scene.accountId} then`);
      return false;
    }
  }

  it('the account agrees after the operation, and the books balance', async () => {
    const made = { true: 0, false: 0 };
    await fc.assert(
      fc.asyncProperty(fc.array(story, { minLength: 5, maxLength: 5 }), async (stories) => {
        const { ledger } = compared;
        const scenes = await Promise.all(stories.map(() => compared.newScene(10_000)));
        const each = (work: (scene: Scene, story: Story) => Promise<void>) =>
          Promise.all(scenes.map((scene, i) => work(scene, stories[i] as Story)));
        await each((scene, { calls, stored }) => make(scene, calls.slice(0, stored)));
        await compared.storeAll();
        await each((scene, { calls, stored }) => make(scene, calls.slice(stored)));
        await each(damage);
        const drifts = new Map((await compared.drifts()).map((drift) => [drift.accountId, drift]));
        await each(async (scene, its) => {
          made[`${await carryOut(scene, its, drifts.get(scene.accountId))}`]++;
        });
        expect(await compared.drifts()).toEqual([]);
        await compared.storeAll();
        expect(await compared.drifts()).toEqual([]);
        await ledger.readBooks();
      }),
      { numRuns: 8 },
    );
    expect(Math.min(made.true, made.false)).toBeGreaterThan(2);
  });
});
