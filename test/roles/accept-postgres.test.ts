import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Fence } from '../../src/ledger/history/fence.ts';
import type { Mark } from '../../src/ledger/history/judge.ts';
import { markText } from '../../src/ledger/history/marks.ts';
import { Corrector } from '../../src/ledger/reconcile/corrector.ts';
import { trim } from '../../src/ledger/writing/trim.ts';
import type { RedisStore } from '../../src/platform/redis.ts';
import { acceptPostgres } from '../../src/roles/accept-postgres.ts';
import type { Scene } from '../admission/calls.ts';
import { ComparedLedger } from '../ledger/reconcile/scene.ts';
import { newEventOf } from '../ledger/support.ts';

let compared: ComparedLedger;
beforeAll(async () => {
  compared = await ComparedLedger.open();
});
afterAll(() => compared.close());

let scene: Scene;
let shard: number;
beforeEach(async () => {
  const { ledger } = compared;
  await ledger.clear();
  scene = await compared.newScene(10_000);
  await ledger.sql`UPDATE credits SET applied_at = now()`;
  shard = ledger.store.keys.shardOf(scene.accountId);
});

const stores = () => ({
  sql: compared.ledger.sql,
  redis: compared.ledger.store.redis,
  keys: compared.ledger.store.keys,
});
const markKey = () => stores().keys.mark[shard] as string;
const mark = () => compared.ledger.store.command('get', markKey());
/** All that an acceptance may change. */
const state = async () => [
  await mark(),
  ...(await compared.ledger.sql`
    SELECT (SELECT count(*)::int FROM journal) AS journal, (SELECT count(*)::int FROM audit) AS acts,
           (SELECT json_agg(h ORDER BY shard)::text FROM shard_histories h) AS histories`),
];

/** Flushes a call for 700, and takes flush and charge out of Postgres as an earlier copy would. @returns the mark of the flush */
async function loseFlush(): Promise<Mark> {
  const { sql } = compared.ledger;
  const [before] = await sql`SELECT balance FROM balances WHERE account_id = ${scene.accountId} AND ledger = 'wallet'`;
  const usageId = await compared.call(scene, 700);
  await compared.storeAll();
  const [flush] = await sql<Mark[]>`
    SELECT id AS "flushId", token FROM journal WHERE id = (SELECT journal_id FROM calls WHERE usage_id = ${usageId})`;
  await sql.unsafe(`
    DELETE FROM calls; DELETE FROM entries WHERE journal_id = ${flush?.flushId}; DELETE FROM journal WHERE id = ${flush?.flushId};
    UPDATE balances SET balance = ${before?.balance} WHERE account_id = '${scene.accountId}'; DELETE FROM balances WHERE ledger IN ('earnings', 'fees')`);
  return flush as Mark;
}

/** Runs the program. @param answer made of what it has printed. @returns what it printed */
async function accept(
  answer: (printed: string) => string = (printed) => /yes [0-9a-f]+/.exec(printed)?.[0] ?? '',
  more: { redis?: RedisStore; afterCommit?: () => Promise<void> } = {},
): Promise<string> {
  const printed: string[] = [];
  const { redis = stores().redis, ...hooks } = more;
  const end = await acceptPostgres(
    { ...stores(), redis, installation: 'test' },
    { print: (text) => printed.push(text), answer: async () => answer(printed.join('\n')), ...hooks },
  );
  return [...printed, end].join('\n');
}

/** What goes on when Postgres is right: flushes and money. */
async function goesOn(): Promise<void> {
  await new Fence(stores()).check();
  await compared.ledger.append(newEventOf(shard, compared.ledger.store));
  await compared.storeAll();
}

it('the command says that there is nothing to accept, and asks nothing', async () => {
  await compared.call(scene, 700);
  await compared.storeAll();
  const before = await state();
  const asks = () => {
    throw new Error('asked');
  };
  expect(await accept(asks)).toMatch(/nothing to accept/);
  expect(await state()).toEqual(before);
});

it('the command lists what is lost, and changes nothing unless the answer confirms exactly that', async () => {
  const lost = await loseFlush();
  const before = await state();
  let text = '';
  for (const answer of ['', 'yes', 'yes 000000000000', 'no']) {
    const keep = (printed: string): string => {
      text = printed;
      return answer;
    };
    await expect(accept(keep)).rejects.toThrow('nothing was changed');
  }
  expect(text).toContain(`shard ${shard}: Redis was trimmed after flush ${markText(lost)}`);
  expect(text).toContain('Of 1 wallets that are loaded there, 1 are not what Postgres says');
  expect(text).toContain(`${scene.accountId}  -0.0007  (wallet 0.0093, by Postgres 0.01)  buyer`);
  expect(await state()).toEqual(before);
  await expect(new Fence(stores()).check()).rejects.toThrow('older than Redis');
  // Another flush was lost since: that is not what was shown.
  const shown = /yes [0-9a-f]+/.exec(text)?.[0] as string;
  await compared.ledger.store.command('set', markKey(), `${lost.flushId + 1} ${lost.token}`);
  await expect(accept(() => shown)).rejects.toThrow('nothing was changed');
});

it('the command lists the credits and debits that only the wallet has', async () => {
  await loseFlush();
  const wallet = compared.ledger.store.walletName(scene.accountId);
  await compared.ledger.store.command('hincrby', wallet, 'credit_seq', 2);
  await compared.ledger.store.command('hset', wallet, 'debit_seq', 1, 'debited', 300);
  await compared.ledger.store.command('hincrby', wallet, 'balance', 2_000 - 300);
  expect(await accept()).toContain('+0.001  (wallet 0.011, by Postgres 0.01; 2 credits or refunds; debits of 0.0003)');
});

it('after a yes the shard is flushed again, and its wallets are changed to match Postgres', async () => {
  const lost = await loseFlush();
  // With a call under way it is repaired; otherwise it would be loaded again.
  await compared.keepBusy(scene);
  expect(await accept()).toContain('accepted for 1 shards');
  const [flush] = await compared.ledger.sql`SELECT id, token FROM journal WHERE reference = 'accept-postgres'`;
  expect(await mark()).toBe(`${flush?.id} ${flush?.token}`);
  expect(await compared.ledger.sql`SELECT action, subject_id, before, after FROM audit`).toMatchObject([
    {
      action: 'reconciliation.accept_postgres',
      subject_id: String(shard),
      before: { mark: markText(lost) },
      after: { mark: `${flush?.id} ${flush?.token}` },
    },
  ]);
  // The lost Postgres, should it come back, lacks the flush of this act.
  const rename = (token: unknown) =>
    compared.ledger.sql`UPDATE journal SET token = ${String(token)} WHERE id = ${flush?.id}`;
  await rename('00000000-0000-4000-8000-000000000001');
  await expect(new Fence(stores()).check()).rejects.toThrow('older than Redis');
  await rename(flush?.token);
  await goesOn();
  await compared.run();
  expect(await compared.drifts()).toEqual([]);
  expect(await compared.balances(scene)).toEqual([10_000, 10_000]);
  expect(await compared.repairs()).toMatchObject([{ accountId: scene.accountId, changeMicros: 700 }]);
});

describe('a wallet with a credit that the accepted Postgres lacks', () => {
  const AHEAD = 'the wallet has a credit or a debit that Postgres does not know';

  /** Postgres lacks a call for 700 and a credit, and is accepted; the comparison has verified the shard. */
  async function acceptWithout(creditMicros: number): Promise<void> {
    await loseFlush();
    await compared.ledger.store.command('hincrby', compared.ledger.store.walletName(scene.accountId), 'credit_seq', 1);
    await compared.changeBalance(scene, creditMicros);
    await accept();
    await goesOn();
    await compared.run();
    const [history] = await compared.ledger.sql`SELECT doubt, verified FROM shard_histories WHERE shard = ${shard}`;
    expect(history?.verified).toBe(history?.doubt);
  }

  /** As an operator does; the wallet takes it for the one that it has. */
  async function creditAgain(micros: number): Promise<void> {
    await compared.ledger.credit(scene.accountId, micros);
    await compared.ledger.sql`UPDATE credits SET applied_at = now()`;
  }

  const inDoubt = () => compared.ledger.sql`SELECT account_id AS id FROM accounts_in_doubt`;

  it.each([
    ['a drift is left', 2_000, 2_000],
    ['the lost charges are as much as the credit, so it agrees', 700, 700],
    ['the next credit, which gets the same number, has another amount', 2_000, 500],
  ])('is repaired once the credit is made again: %s', async (_, lost, made) => {
    await acceptWithout(lost);
    expect(await compared.drifts()).toMatchObject(
      lost === 700 ? [] : [{ driftMicros: lost - 700, notRepaired: AHEAD }],
    );
    await compared.run();
    await creditAgain(made);
    expect(await compared.drifts()).toEqual([]);
    expect(await compared.balances(scene)).toEqual([10_000 + made, 10_000 + made]);
    expect(await compared.repairs()).toMatchObject([{ accountId: scene.accountId, changeMicros: made - lost + 700 }]);
    // From then on a drift is not Redis's any more.
    expect(await inDoubt()).toEqual([]);
    await compared.changeBalance(scene, 5);
    expect(await compared.drifts()).toMatchObject([{ driftMicros: 5, notRepaired: /has not changed/ }]);
  });

  it('is the only one in doubt: a drift of another wallet of its shard is not blamed on Redis', async () => {
    await acceptWithout(2_000);
    let other = await compared.newScene(100);
    while (stores().keys.shardOf(other.accountId) !== shard) other = await compared.newScene(100);
    await compared.changeBalance(other, 5);
    expect(await compared.drifts()).toMatchObject([{ driftMicros: 1_300 }, { driftMicros: 5 }]);
    expect(await compared.repairs()).toEqual([]);
  });

  it('lets every caller correct its books by Postgres', async () => {
    await acceptWithout(2_000);
    const corrector = new Corrector(stores());
    const wanted = { accountId: scene.accountId, reason: 'x', reference: 'r' };
    const operator = { madeBy: 'admin', record: async () => {} };
    await expect(corrector.correct({ ...wanted, believe: 'redis' }, operator)).rejects.toThrow('does not know');
    await corrector.correct({ ...wanted, believe: 'postgres' }, operator);
    expect(await compared.drifts()).toEqual([]);
    expect([await compared.balances(scene), await inDoubt()]).toEqual([[10_000, 10_000], []]);
  });
});

it('the command changes nothing that counts if it is killed between the two stores, and can be run again', async () => {
  await loseFlush();
  const killed = () => Promise.reject(new Error('killed'));
  for (let times = 0; times < 2; times++) {
    await expect(accept(undefined, { afterCommit: killed })).rejects.toThrow('killed');
    await expect(new Fence(stores()).check()).rejects.toThrow('older than Redis');
  }
  await accept();
  await goesOn();
  await compared.run();
  expect(await compared.balances(scene)).toEqual([10_000, 10_000]);
});

it('a late trim by the lost Postgres has no effect after the command, and stops the command if it comes in between', async () => {
  const lost = await loseFlush();
  const { store } = compared.ledger;
  const stream = store.keys.usage[shard] as string;
  const event = newEventOf(shard, store);
  await compared.ledger.append(event);
  const [[id, fields]] = (await store.command('xrange', stream, '-', '+')) as [[string, string[]]];
  const lateTrim = (token: string) => {
    const page = { shard, ids: [id], lastFields: fields, hasGaps: false };
    type Batch = Parameters<typeof trim>[1]['batch'];
    const batch = { pages: [page], shards: [shard], size: 1, behind: 0 } as unknown as Batch;
    return trim(stores(), { batch, mark: { flushId: lost.flushId + 1, token }, saw: new Map([[shard, lost]]) });
  };
  const between = () => lateTrim('00000000-0000-4000-8000-000000000001');
  await expect(accept(undefined, { afterCommit: between })).rejects.toThrow('run this again');
  expect(await store.command('xlen', stream)).toBe(0);
  await accept();
  await compared.ledger.append(event);
  await lateTrim('00000000-0000-4000-8000-000000000002');
  expect(await store.command('xlen', stream)).toBe(1);
  await goesOn();
});

it.each(['what is this', 'no \\255\\195 text'])('a mark that cannot be read is also replaced: "%s"', async (lua) => {
  await compared.ledger.store.command('eval', `redis.call('SET', KEYS[1], '${lua}')`, 1, markKey());
  await accept();
  await goesOn();
});

it('the command works in a full Redis, which only later trims can empty', async () => {
  await loseFlush();
  await compared.ledger.store.command('config', 'set', 'maxmemory', '1');
  try {
    await accept();
  } finally {
    await compared.ledger.store.command('config', 'set', 'maxmemory', '0');
  }
  await goesOn();
});

it('the command is refused while the Redis of a shard does not answer', async () => {
  await loseFlush();
  const before = await state();
  const away = { script: () => Promise.reject(new Error('away')) };
  const redis = { isCluster: true, shard: (asked: number) => (asked === shard ? stores().redis : away) };
  await expect(accept(undefined, { redis: redis as unknown as RedisStore })).rejects.toThrow(
    'does not answer: Error: away',
  );
  expect(await state()).toEqual(before);
});
