import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { storeCredit } from '../../../src/accounts/credits.ts';
import { makeDebit } from '../../../src/accounts/debits.ts';
import { storePayout } from '../../../src/accounts/payouts.ts';
import { type RefundedCall, selectRefundedCall } from '../../../src/accounts/refunds/refund-sql.ts';
import { storeRefund } from '../../../src/accounts/refunds/refunds.ts';
import { seedBuyers } from '../../../src/accounts/seed-buyers.ts';
import { ApiError } from '../../../src/errors.ts';
import { Fence } from '../../../src/ledger/history/fence.ts';
import { CreditWallets } from '../../../src/ledger/wallets/credit-wallets.ts';
import { DebitWallets } from '../../../src/ledger/wallets/debit-wallets.ts';
import { uuidv7 } from '../../../src/platform/ids.ts';
import { isOlderPostgres, isPostgresUnavailable } from '../../../src/platform/postgres.ts';
import { RedisNotSent, type RedisStore } from '../../../src/platform/redis.ts';
import { addCall } from '../../support/accounts.ts';
import { buildSources } from '../../support/build.ts';
import { QUIET, SHARDS } from '../../support/store.ts';
import { newEvent } from '../support.ts';
import { ledger, useLedger } from '../use-ledger.ts';

const BY = { actor: 'system', actorAccountId: null, requestId: null } as const;
const HELD = 5_000;
/** Loads nothing: the wallets of these tests are in Redis from the beginning. */
const hydrator = { loadWallet: () => Promise.reject(new Error('no wallet is to be loaded')) };

useLedger();

let accountId: string;
let usageId: string;
beforeEach(async () => {
  accountId = await ledger.account(HELD);
  await ledger.sql`UPDATE credits SET applied_at = now()`;
  await ledger.setWallet(accountId, HELD);
  await ledger.sql`INSERT INTO balances VALUES (${accountId}, 'earnings', ${HELD})`;
  // Bought from itself: such a call costs nothing else.
  usageId = await addCall(ledger.sql, {
    buyer: { accountId, keyId: 'acf_0000000000000000000000' },
    providerId: accountId,
    serviceId: uuidv7(),
    amount: 700,
  });
});

const stores = () => ({ sql: ledger.sql, redis: ledger.store.redis, keys: ledger.store.keys });
const debits = () => new DebitWallets({ ...stores(), hydrator, log: QUIET });
const wanted = (reference: string) => ({ accountId, amountMicros: 700, reference, reason: 'x' });
const acts = {
  credit: (fence: Fence) => storeCredit(fence, wanted('r'), BY),
  payout: (fence: Fence) => storePayout(fence, wanted('r'), BY),
  refund: async (fence: Fence) => {
    const call = (await selectRefundedCall(ledger.sql, usageId)) as RefundedCall;
    const giver = { isOperator: false, accountId };
    return storeRefund(fence, call, { usageId, amountMicros: 1, reason: 'x', reference: 'r' }, giver, BY);
  },
  debit: (fence: Fence) => makeDebit(fence, debits(), wanted('r'), BY),
  seed: (fence: Fence) =>
    seedBuyers(fence, { buyers: 1, balanceMicros: 5, rateLimit: 10, label: 'seed', firstNumber: 1 }),
};
/** A debit tells its caller itself that nothing was begun, because that is not known of other errors. */
const isRefusal = (error: unknown): boolean =>
  isPostgresUnavailable(error) ||
  (error instanceof ApiError && /older than Redis|Nothing was moved/.test(error.message));
/** What each act and each late step may change. */
const money = () => ledger.sql`
  SELECT (SELECT json_agg(b ORDER BY b) FROM balances b)::text AS balances, (SELECT count(*)::int FROM journal) AS journal,
         (SELECT count(*)::int FROM credits) AS credits, (SELECT count(*)::int FROM payouts) AS payouts,
         (SELECT json_agg(d ORDER BY d)::text FROM debits d) AS debits, (SELECT count(*)::int FROM audit) AS acts`;
const wallet = () =>
  ledger.store.command('hgetall', ledger.store.keys.wallet(ledger.store.keys.shardOf(accountId), accountId));

/** Flushes a call of another account, and takes the flush out of Postgres as a restored copy would. @returns how it comes back */
async function rewind(): Promise<() => Promise<unknown>> {
  ledger.startWriter();
  await ledger.append(newEvent());
  await ledger.drained();
  await ledger.stopWriters();
  const [row] = await ledger.sql`
    UPDATE journal SET token = gen_random_uuid() WHERE id = (SELECT max(id) FROM journal)
    RETURNING id, (SELECT token FROM journal j WHERE j.id = journal.id) AS token`;
  return () => ledger.sql`UPDATE journal SET token = ${row?.token} WHERE id = ${row?.id}`;
}

describe('while Postgres is older than Redis', () => {
  it.each(Object.keys(acts) as (keyof typeof acts)[])(
    'a %s is refused as if Postgres were away, and succeeds once the right Postgres is back',
    async (act) => {
      const comeBack = await rewind();
      const before = [await money(), await wallet()];
      await expect(acts[act](new Fence(stores()))).rejects.toSatisfy(isRefusal);
      expect([await money(), await wallet()]).toEqual(before);
      await comeBack();
      await acts[act](new Fence(stores()));
      expect(await money()).not.toEqual(before[0]);
    },
  );

  it('a debit that had begun is neither decided nor stored', async () => {
    const stuck = { carryOut: () => Promise.reject(new Error('killed')) };
    await expect(makeDebit(new Fence(stores()), stuck, wanted('r'), BY)).rejects.toThrow('killed');
    const comeBack = await rewind();
    const before = [await money(), await wallet()];
    await expect(debits().endLeft(0)).rejects.toThrow('older than Redis');
    expect([await money(), await wallet()]).toEqual(before);
    await comeBack();
    await debits().endLeft(0);
    expect(await ledger.balance(accountId)).toBe(HELD - 700);
    expect(await wallet()).toMatchObject({ balance: String(HELD - 700) });
  });

  it('a debit that the wallet has taken is stored later', async () => {
    const comeBack = new Map<string, () => Promise<unknown>>();
    // Postgres goes back between the beginning and the end of the debit.
    const carrier = {
      carryOut: async (debit: Parameters<DebitWallets['carryOut']>[0]) => {
        comeBack.set('now', await rewind());
        return debits().carryOut(debit);
      },
    };
    const made = makeDebit(new Fence(stores()), carrier, wanted('r'), BY);
    await expect(made).rejects.toSatisfy(isOlderPostgres);
    expect(await ledger.balance(accountId)).toBe(HELD);
    await comeBack.get('now')?.();
    await debits().endLeft(0);
    expect(await ledger.balance(accountId)).toBe(HELD - 700);
    expect(await wallet()).toMatchObject({ balance: String(HELD - 700), debited: '700' });
  });

  it('no credit that the older Postgres stored goes into a wallet', async () => {
    const comeBack = await rewind();
    await ledger.credit(accountId, 300);
    const credits = new CreditWallets({ ...stores(), hydrator, log: QUIET });
    await expect(credits.applyMissing()).rejects.toThrow('older than Redis');
    expect(await wallet()).toMatchObject({ balance: String(HELD) });
    await comeBack();
    await credits.applyMissing();
    expect(await wallet()).toMatchObject({ balance: String(HELD + 300) });
  });
});

describe('while Redis does not answer', () => {
  /** A cluster in which only these shards answer. */
  function withShards(answers: (shard: number) => boolean): Fence {
    const { redis, ...rest } = stores();
    const shard = (asked: number): Pick<RedisStore, 'script'> => ({
      script: (...args) => (answers(asked) ? redis.script(...args) : Promise.reject(new RedisNotSent())),
    });
    return new Fence({ ...rest, redis: { isCluster: true, shard } as RedisStore });
  }

  it.each(['credit', 'payout', 'refund', 'debit'] as const)('a %s of its accounts is refused', async (act) => {
    const own = ledger.store.keys.shardOf(accountId);
    const before = await money();
    await expect(acts[act](withShards((shard) => shard !== own))).rejects.toSatisfy(isRefusal);
    expect(await money()).toEqual(before);
    await acts[act](withShards((shard) => shard === own));
    expect(await money()).not.toEqual(before);
  });

  it('one shard of another account is enough to detect an older Postgres', async () => {
    await rewind();
    const [{ shard } = { shard: -1 }] = await ledger.sql<{ shard: number }[]>`SELECT shard FROM shard_histories`;
    const other = Array.from({ length: 99 }, () => uuidv7()).find((id) => ledger.store.keys.shardOf(id) !== shard);
    const begun = withShards(() => true).begin([other as string], () => Promise.resolve('moved'));
    await expect(begun).rejects.toThrow('older than Redis');
  });
});

it('a process suspended in the middle of a payout delays flushes by a few seconds, and its payout is not stored', async () => {
  const payout = { accountId, amountMicros: 700, reference: 'r' };
  const { databaseUrl, store } = ledger;
  const settings = JSON.stringify({ databaseUrl, redisUrl: store.server.url, shards: SHARDS, payout });
  const file = path.resolve('test/ledger/fixtures/payout-process.mjs');
  const child = spawn(process.execPath, [file, buildSources(), settings], { stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    await once(child.stdout, 'data');
    // What it earns meanwhile goes to the balance that the payout has locked.
    await ledger.append(newEvent({ providerId: accountId, heldMicros: 1_000, outcome: 'completed' }));
    ledger.startWriter();
    await ledger.drained();
    child.kill('SIGCONT');
    expect((await once(child, 'exit'))[0]).toBe(3);
    expect(await ledger.sql`SELECT FROM payouts`).toEqual([]);
    expect(await ledger.balance(accountId, 'earnings')).toBeGreaterThan(HELD);
  } finally {
    child.kill('SIGKILL');
  }
});

it('a flush that is trimmed while the transaction begins is not mistaken for an older Postgres', async () => {
  const { sql, ...rest } = stores();
  const late = Object.assign((() => {}) as unknown as typeof sql, {
    begin: async (work: Parameters<typeof sql.begin>[0]) => {
      ledger.startWriter();
      await ledger.append(newEvent());
      await ledger.drained();
      return sql.begin(work);
    },
  });
  expect(await new Fence({ sql: late, ...rest }).begin([accountId], async () => 'moved')).toBe('moved');
});
