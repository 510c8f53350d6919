import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { CreditWallets } from '../../../src/ledger/wallets/credit-wallets.ts';
import { Hydrator } from '../../../src/ledger/wallets/hydrate.ts';
import { isPostgresUnavailable } from '../../../src/platform/postgres.ts';
import { isRedisUnavailable, type RedisStore } from '../../../src/platform/redis.ts';
import { QUIET } from '../../support/store.ts';
import { until } from '../../support/wait.ts';
import { comeBackOlder, keepState } from '../reconcile/older-redis.ts';
import { expectedBooks, Ledger, newEvent } from '../support.ts';

let ledger: Ledger;
beforeAll(async () => {
  ledger = await Ledger.open();
});
afterAll(() => ledger.close());
beforeEach(() => ledger.clear());

const BALANCE = 50_000;
const CHARGE = 1_000;
const ACCOUNTS = 40;
const CREDITED = 31;

/**
 * The test's Redis, for a batch of wallets during which it dies. The first ten have arrived and ten more are on their way when `died` is
 * called. The rest is sent once `back` has resolved.
 */
function dyingRedis(died: () => Promise<void>, back: Promise<unknown>): RedisStore {
  const { redis } = ledger.store;
  const onTheWay: Promise<unknown>[] = [];
  let sent = 0;
  let isAlive = true;
  const script: RedisStore['script'] = async (...call) => {
    if (!isAlive) return redis.script(...call);
    const turn = sent++;
    if (turn < 10) {
      const reply = redis.script(...call);
      onTheWay.push(reply);
      return reply;
    }
    await Promise.all(onTheWay);
    if (turn === 10) ledger.store.server.pause();
    if (turn < 20) {
      const reply = redis.script(...call);
      if (turn === 19) {
        isAlive = false;
        void died();
      }
      return reply;
    }
    await back;
    return redis.script(...call);
  };
  return new Proxy(redis, {
    get: (target, name) => {
      if (name === 'script') return script;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

it.each(['empty', 'older'])(
  'a Redis killed during a batch of wallets that comes back %s ends up with what Postgres has, each charge and credit once',
  async (how) => {
    const { sql, store, databaseUrl } = ledger;
    const accounts = await Promise.all(Array.from({ length: ACCOUNTS }, () => ledger.account(BALANCE)));
    // In the older state every other account has a wallet that has paid for a call, and Postgres does not have that call yet.
    const charged = how === 'older' ? accounts.filter((_, i) => i % 2 === 0) : [];
    const events = charged.map((accountId) => newEvent({ accountId, heldMicros: CHARGE, outcome: 'completed' }));
    await Promise.all(charged.map((id) => store.loadWallet(id, BALANCE - CHARGE)));
    await ledger.append(...events);
    await keepState(ledger);
    await store.command('flushall');
    if (how === 'empty') await store.command('save');

    let credit: () => Promise<void> = async () => {};
    let isBack = (): void => {};
    const back = new Promise<void>((resolve) => (isBack = resolve));
    const died = async (): Promise<void> => {
      // A credit that the batch has not read. The wallet is sent after Redis is back.
      const accountId = accounts[CREDITED] as string;
      const seq = await ledger.credit(accountId, 700);
      credit = () => credits.apply({ accountId, seq, amountMicros: 700, budgets: null });
      await comeBackOlder(ledger);
      isBack();
    };
    const hydrator = new Hydrator({ databaseUrl, sql, redis: dyingRedis(died, back), keys: store.keys, log: QUIET });
    const credits = new CreditWallets({ sql, redis: store.redis, keys: store.keys, hydrator, log: QUIET });
    const insist = (work: () => Promise<void>) =>
      until(() =>
        work().then(
          () => true,
          (error: unknown) => {
            if (!isRedisUnavailable(error) && !isPostgresUnavailable(error)) throw error;
            return false;
          },
        ),
      );
    try {
      const first = await Promise.allSettled(accounts.map((id) => hydrator.loadWallet(id)));
      // Nobody is told that a wallet is there that Redis never got.
      expect(first.map(({ status }) => status)).toEqual(accounts.map(() => 'rejected'));
      await back;
      await insist(() => credit());
      await Promise.all(accounts.map((id) => insist(() => hydrator.loadWallet(id))));
      ledger.startWriter();
      await ledger.drained();
      await ledger.stopWriters();
      const balances = accounts.map(
        (id, i) => BALANCE + (i === CREDITED ? 700 : 0) - (charged.includes(id) ? CHARGE : 0),
      );
      expect(await Promise.all(accounts.map((id) => store.balance(id)))).toEqual(balances);
      expect(await Promise.all(accounts.map((id) => ledger.balance(id)))).toEqual(balances);
      expect((await ledger.readBooks()).calls).toEqual(expectedBooks(events).calls);
    } finally {
      hydrator.close();
    }
  },
);
