import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { FLUSH_LOCK } from '../../../src/ledger/locks.ts';
import { hydrateWalletScript } from '../../../src/ledger/scripts.ts';
import { CreditWallets } from '../../../src/ledger/wallets/credit-wallets.ts';
import { Hydrator } from '../../../src/ledger/wallets/hydrate.ts';
import { uuidv7 } from '../../../src/platform/ids.ts';
import { isPostgresUnavailable, openPostgres, PostgresSession } from '../../../src/platform/postgres.ts';
import { RedisNotSent, type RedisStore } from '../../../src/platform/redis.ts';
import { freeField } from '../../../src/platform/redis-keys.ts';
import { readInText } from '../../support/child-state.ts';
import { QUIET } from '../../support/store.ts';
import { TcpProxy } from '../../support/tcp-proxy.ts';
import { timed } from '../../support/timed.ts';
import { until } from '../../support/wait.ts';
import { Ledger, newEvent } from '../support.ts';

let ledger: Ledger;
let hydrator: Hydrator;
beforeAll(async () => {
  ledger = await Ledger.open();
});
afterAll(() => ledger.close());
beforeEach(async () => {
  await ledger.clear();
  hydrator = newHydrator();
});
afterEach(() => hydrator.close());

function newHydrator(databaseUrl = ledger.databaseUrl, sql = ledger.sql, redis: RedisStore = ledger.store.redis) {
  return new Hydrator({ databaseUrl, sql, redis, keys: ledger.store.keys, log: QUIET });
}

const wallet = (accountId: string) => ledger.store.hash(ledger.store.walletName(accountId));
const keyState = (keyId: string, accountId: string) =>
  ledger.store.hash(ledger.store.keys.key(ledger.store.keys.shardOf(accountId), keyId));

describe('loading a wallet', () => {
  it('brings the balance, the numbers of the last credit and debit, and the free calls used', async () => {
    const accountId = await ledger.account(5_000);
    await ledger.credit(accountId, 700);
    const serviceId = uuidv7();
    await ledger.sql`INSERT INTO free_usage VALUES (${accountId}, ${serviceId}, 3)`;
    await hydrator.loadWallet(accountId);
    expect(await wallet(accountId)).toEqual({
      balance: '5700',
      credit_seq: '2',
      debit_seq: '0',
      debited: '0',
      [freeField(serviceId)]: '3',
    });
  });

  it('brings what its keys have spent in the latest period of their budgets, however many periods there are', async () => {
    const [accountId, other] = [await ledger.account(5_000), await ledger.account(1)];
    const used = (key: string, period: number, spent: number, of = accountId) =>
      ledger.sql`INSERT INTO budget_usage VALUES (${of}, ${key}, ${period}, ${spent})`;
    for (let day = 0; day < 5; day++) await used('acf_b', 3_020_000 + day, 10 + day);
    await used('acf_a', 0, 7);
    await used('acf_c', 1_000_000, 9_007_199_254_740_991);
    await used('acf_d', 8, 1, other);
    await hydrator.loadWallet(accountId);
    expect(await wallet(accountId)).toMatchObject({ balance: '5000' });
    const found = await readInText(ledger.store.redis, ledger.store.walletName(accountId));
    const { balance: _, credit_seq: __, debit_seq: ___, debited: ____, ...budgets } = found;
    expect(budgets).toEqual({
      acf_a: '0 0 7 0',
      acf_b: '0 0 14 3020004',
      acf_c: '0 0 9007199254740991 1000000',
    });
  });

  it('of an account without money or history creates an empty wallet, because an absent wallet means not loaded', async () => {
    const accountId = uuidv7();
    await hydrator.loadWallet(accountId);
    expect(await wallet(accountId)).toEqual({ balance: '0', credit_seq: '0', debit_seq: '0', debited: '0' });
  });

  it('leaves a loaded wallet alone', async () => {
    const accountId = await ledger.account(5_000);
    await ledger.store.loadWallet(accountId, 123);
    await hydrator.loadWallet(accountId);
    expect(await wallet(accountId)).toMatchObject({ balance: '123' });
    expect(hydrator.loadedWallets).toBe(0);
  });

  it('loads thousands of wallets in a few transactions', async () => {
    const accounts = Array.from({ length: 1_200 }, () => uuidv7());
    await ledger.sql`
      INSERT INTO balances SELECT id, 'wallet', 77 FROM unnest(${accounts}::uuid[]) AS id`;
    // Each wallet is requested twice, as by two calls of the same account.
    await Promise.all([...accounts, ...accounts].map((id) => hydrator.loadWallet(id)));
    expect(hydrator.loadedWallets).toBe(1_200);
    for (const id of accounts.slice(0, 20)) expect(await wallet(id)).toMatchObject({ balance: '77' });
  });

  it('waits for a flush of its shard, and then sees what the flush committed', async () => {
    const accountId = await ledger.account(5_000);
    const shard = ledger.store.keys.shardOf(accountId);
    const flush = new PostgresSession({ url: ledger.databaseUrl, applicationName: 'test' });
    await flush.query('BEGIN');
    await flush.query('SELECT pg_advisory_xact_lock($1::int, $2::int)', [FLUSH_LOCK, shard]);
    await flush.query('UPDATE balances SET balance = 4000 WHERE account_id = $1::uuid', [accountId]);
    const loading = hydrator.loadWallet(accountId);
    await until(async () => (await ledger.advisoryLocks({ granted: false })).length > 0);
    expect(await wallet(accountId)).toEqual({});
    await flush.query('COMMIT');
    await loading;
    expect(await wallet(accountId)).toMatchObject({ balance: '4000' });
    flush.close();
  });

  it('keeps flushes of the shard out until Redis has the wallet', async () => {
    // A flush that begins while the wallet is on its way must find the wallet in Redis.
    const accountId = await ledger.account(5_000);
    ledger.store.server.pause();
    const loading = hydrator.loadWallet(accountId);
    await until(async () => {
      const held = await ledger.advisoryLocks({ granted: true });
      return held.some(({ classid, mode }) => classid === FLUSH_LOCK && mode === 'ShareLock');
    });
    const shard = ledger.store.keys.shardOf(accountId);
    const [tried] = await ledger.sql`SELECT pg_try_advisory_xact_lock(${FLUSH_LOCK}::int, ${shard}::int) AS free`;
    expect(tried?.free).toBe(false);
    ledger.store.server.resume();
    await loading;
    const [after] = await ledger.sql`SELECT pg_try_advisory_xact_lock(${FLUSH_LOCK}::int, ${shard}::int) AS free`;
    expect(after?.free).toBe(true);
  });

  it('rejects in bounded time while another session has the lock, and works afterwards', async () => {
    const accountId = await ledger.account(5_000);
    const stuck = new PostgresSession({ url: ledger.databaseUrl, applicationName: 'test' });
    const shard = ledger.store.keys.shardOf(accountId);
    await stuck.query('SELECT pg_advisory_lock($1::int, $2::int)', [FLUSH_LOCK, shard]);
    try {
      // On a busy machine its own time limit may come first.
      const refused = () => expect(hydrator.loadWallet(accountId)).rejects.toThrow(/lock timeout|not loaded within/);
      expect(await timed(refused)).toBeLessThan(2_500);
    } finally {
      stuck.close();
    }
    await until(() =>
      hydrator.loadWallet(accountId).then(
        () => true,
        () => false,
      ),
    );
    expect(await wallet(accountId)).toMatchObject({ balance: '5000' });
  });
});

describe('a wallet that cannot be loaded', () => {
  it.each<[string, (id: string) => Promise<unknown>, RegExp]>([
    [
      'because of its balance',
      (id) => ledger.sql`UPDATE balances SET balance = 9007199254740993 WHERE account_id = ${id}`,
      /safe/,
    ],
    [
      'because Redis has another type under its key',
      (id) => ledger.store.command('set', ledger.store.walletName(id), 'x'),
      /WRONGTYPE/,
    ],
  ])('%s is rejected alone, and the others of its batch are loaded', async (_, spoil, message) => {
    const accounts = await Promise.all(Array.from({ length: 40 }, () => ledger.account(5_000)));
    const bad = accounts[17] as string;
    await spoil(bad);
    const results = await Promise.allSettled(accounts.map((id) => hydrator.loadWallet(id)));
    expect(results.map(({ status }) => status === 'rejected')).toEqual(accounts.map((id) => id === bad));
    expect(String((results[17] as PromiseRejectedResult).reason)).toMatch(message);
    for (const id of accounts) if (id !== bad) expect(await wallet(id)).toMatchObject({ balance: '5000' });
  });

  it('because its shard stays locked does not delay wallets of other shards', async () => {
    const accounts = await Promise.all(Array.from({ length: 20 }, () => ledger.account(5_000)));
    const isLocked = (id: string) => ledger.store.keys.shardOf(id) === 0;
    const stuck = new PostgresSession({ url: ledger.databaseUrl, applicationName: 'test' });
    await stuck.query('SELECT pg_advisory_lock($1::int, 0)', [FLUSH_LOCK]);
    try {
      const loads = accounts.map((id) => hydrator.loadWallet(id));
      const settled = Promise.allSettled(loads);
      let over = false;
      void settled.then(() => (over = true));
      // The other wallets are loaded while those of the locked shard wait.
      await Promise.all(loads.filter((_, i) => !isLocked(accounts[i] as string)));
      expect(over).toBe(false);
      expect((await settled).map(({ status }) => status === 'rejected')).toEqual(accounts.map(isLocked));
    } finally {
      stuck.close();
    }
  });
});

/** Resolves once the hydrator has read Postgres and waits for Redis. */
const hasRead = () =>
  until(async () => {
    const rows = await ledger.sql`
      SELECT 1 FROM pg_stat_activity
      WHERE application_name = 'tollgate-hydrate' AND datname = current_database() AND state = 'idle in transaction'`;
    return rows.length > 0;
  });

const killHydrators = () => ledger.sql`
  SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE application_name = 'tollgate-hydrate' AND datname = current_database()`;

it('a cluster node that is away does not prevent wallets of other nodes from being loaded', async () => {
  const { redis, keys } = ledger.store;
  const accounts = Array.from({ length: 20 }, () => uuidv7());
  const away = keys.shardOf(accounts[0] as string);
  const isAway = (id: string): boolean => keys.shardOf(id) === away;
  const refused = (): Promise<never> => Promise.reject(new RedisNotSent());
  const cluster: RedisStore = Object.create(redis, {
    isCluster: { value: true },
    shard: { value: (shard: number) => (shard === away ? { command: refused } : redis) },
    script: {
      value: (...given: Parameters<RedisStore['script']>) =>
        isAway(String(given[2][0]).split(':').at(-1) as string) ? refused() : redis.script(...given),
    },
  });
  const beside = newHydrator(ledger.databaseUrl, ledger.sql, cluster);
  await ledger.sql`UPDATE installation SET redis_layout = 'cluster'`;
  try {
    const results = await Promise.allSettled(accounts.map((id) => beside.loadWallet(id)));
    expect(results[0]?.status).toBe('rejected');
    const filled = await Promise.all(accounts.map(async (id) => 'balance' in (await wallet(id))));
    expect(filled).toEqual(accounts.map((id) => !isAway(id)));
  } finally {
    beside.close();
    await ledger.sql`UPDATE installation SET redis_layout = 'single'`;
  }
});

it('a wallet of a locked shard does not delay wallets that are requested later', async () => {
  const accounts = await Promise.all(Array.from({ length: 20 }, () => ledger.account(5_000)));
  const [locked, ...rest] = accounts.sort((a, b) => ledger.store.keys.shardOf(a) - ledger.store.keys.shardOf(b));
  const others = rest.filter((id) => ledger.store.keys.shardOf(id) !== 0);
  const stuck = new PostgresSession({ url: ledger.databaseUrl, applicationName: 'test' });
  await stuck.query('SELECT pg_advisory_lock($1::int, 0)', [FLUSH_LOCK]);
  let over = false;
  const waiting = hydrator.loadWallet(locked as string).finally(() => {
    over = true;
  });
  await until(async () => (await ledger.advisoryLocks({ granted: false })).length > 0);
  await Promise.all(others.map((id) => hydrator.loadWallet(id)));
  expect(over).toBe(false);
  stuck.close();
  await waiting;
  for (const id of [locked as string, ...others]) expect(await wallet(id)).toMatchObject({ balance: '5000' });
});

it('a shard that stays locked does not delay a shard that was locked for a moment', async () => {
  const [stuck, flush] = [0, 1].map(() => new PostgresSession({ url: ledger.databaseUrl, applicationName: 'test' }));
  if (stuck === undefined || flush === undefined) throw new Error('no sessions');
  const accountOf = async (shard: number): Promise<string> => {
    const id = await ledger.account(5_000);
    return ledger.store.keys.shardOf(id) === shard ? id : accountOf(shard);
  };
  const isWaiting = (shard: number) =>
    until(async () => {
      const rows = await ledger.sql`
        SELECT 1 FROM pg_locks JOIN pg_database d ON d.oid = database
        WHERE NOT granted AND classid::int = ${FLUSH_LOCK} AND objid::int = ${shard} AND d.datname = current_database()`;
      return rows.length > 0;
    });
  const load = async (waitedFor: number) => {
    await flush.query('SELECT pg_advisory_lock($1::int, 1)', [FLUSH_LOCK]);
    const accounts = [await accountOf(0), await accountOf(1)];
    const ends: string[] = [];
    const loads = accounts.map((id, shard) =>
      hydrator.loadWallet(id).then(
        () => ends.push(`${shard} loaded`),
        (error: unknown) => ends.push(`${shard} ${String(error)}`),
      ),
    );
    await isWaiting(waitedFor);
    await flush.query('SELECT pg_advisory_unlock($1::int, 1)', [FLUSH_LOCK]);
    await Promise.all(loads);
    return ends;
  };
  try {
    await stuck.query('SELECT pg_advisory_lock($1::int, 0)', [FLUSH_LOCK]);
    const ends = ['1 loaded', expect.stringMatching('0 .*lock timeout')];
    // First it waits for shard 0 without success, and the next time for shard 1 first.
    expect(await load(0)).toEqual(ends);
    expect(await load(1)).toEqual(ends);
  } finally {
    stuck.close();
    flush.close();
  }
});

it('a credit that is stored between reading and writing a wallet is in the wallet, once', async () => {
  const { sql, store } = ledger;
  const credits = new CreditWallets({ sql, redis: store.redis, keys: store.keys, hydrator, log: QUIET });
  const accountId = await ledger.account(5_000);
  store.server.pause();
  const loading = hydrator.loadWallet(accountId);
  await hasRead();
  const seq = await ledger.credit(accountId, 700);
  const applying = credits.apply({ accountId, seq, amountMicros: 700, budgets: null });
  store.server.resume();
  await Promise.all([loading, applying]);
  expect(await wallet(accountId)).toMatchObject({ balance: '5700', credit_seq: String(seq) });
});

it('if Postgres dies after it was read, all waiting loads fail, and a wallet that reached Redis meanwhile stays', async () => {
  const accounts = await Promise.all(Array.from({ length: 30 }, () => ledger.account(5_000)));
  const [first] = accounts as [string, ...string[]];
  ledger.store.server.pause();
  const loads = Promise.allSettled(accounts.map((id) => hydrator.loadWallet(id)));
  await hasRead();
  await killHydrators();
  ledger.store.server.resume();
  const results = await loads;
  for (const result of results) {
    expect(result.status === 'rejected' && isPostgresUnavailable(result.reason), result.status).toBe(true);
  }
  await ledger.store.command('del', ledger.store.walletName(first));
  await ledger.store.loadWallet(first, 123);
  await Promise.all(accounts.map((id) => hydrator.loadWallet(id)));
  for (const id of accounts) expect(await wallet(id)).toMatchObject({ balance: id === first ? '123' : '5000' });
});

it('if Redis loses everything and Postgres connections break while credits arrive, wallets end up right', async () => {
  const { sql, store } = ledger;
  const credits = new CreditWallets({ sql, redis: store.redis, keys: store.keys, hydrator, log: QUIET });
  const accounts = await Promise.all(Array.from({ length: 60 }, () => ledger.account(5_000)));
  const insist = (work: () => Promise<void>) =>
    until(() =>
      work().then(
        () => true,
        (error: unknown) => {
          if (!isPostgresUnavailable(error)) throw error;
          return false;
        },
      ),
    );
  for (let round = 0; round < 8; round++) {
    await store.command('flushall');
    const credited = accounts.slice(round, round + 10).map(async (accountId) => {
      const seq = await ledger.credit(accountId, 10);
      await insist(() => credits.apply({ accountId, seq, amountMicros: 10, budgets: null }));
    });
    const loads = accounts.map((id) => insist(() => hydrator.loadWallet(id)));
    for (let kills = 0; kills < 3; kills++) await killHydrators();
    if (round % 2 === 1) await store.command('flushall');
    await Promise.all([...credited, ...loads]);
    await Promise.all(accounts.map((id) => insist(() => hydrator.loadWallet(id))));
    const stored = await Promise.all(accounts.map((id) => ledger.balance(id)));
    const loaded = await Promise.all(accounts.map(async (id) => Number((await wallet(id)).balance)));
    expect(loaded).toEqual(stored);
  }
});

describe('a wallet that reaches Redis late', () => {
  /** The Redis of the test, with some of its methods replaced. */
  const withMethods = (methods: Partial<RedisStore>): RedisStore =>
    new Proxy(ledger.store.redis, {
      get: (target, name) => {
        const value: unknown = Reflect.get(methods, name) ?? Reflect.get(target, name, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  /** Redis with the time of the first fills set to one that has passed. */
  const lateTimes = (times: number): RedisStore => {
    let left = times;
    return withMethods({
      script: (script, n, args) => {
        const isLate = script === hydrateWalletScript && left-- > 0;
        return ledger.store.redis.script(script, n, isLate ? args.with(2, '1') : args);
      },
    });
  };

  it('is not filled if its process was suspended after it was read, because the flush lock is lost by that time', async () => {
    const { redis } = ledger.store;
    const replies: unknown[] = [];
    let goOn = (): void => {};
    const suspended = new Promise<void>((resolve) => (goOn = resolve));
    const slow = withMethods({
      script: async (script, ...rest) => {
        if (script !== hydrateWalletScript) return redis.script(script, ...rest);
        await suspended;
        const reply = await redis.script(script, ...rest);
        replies.push(reply);
        return reply;
      },
    });
    const late = newHydrator(ledger.databaseUrl, ledger.sql, slow);
    try {
      const accountId = await ledger.account(5_000);
      const loading = late.loadWallet(accountId).then(
        () => 'loaded',
        (error: unknown) => isPostgresUnavailable(error),
      );
      await until(async () => {
        const held = await ledger.advisoryLocks({ granted: true });
        return held.some(({ classid }) => classid === FLUSH_LOCK);
      });
      await hasRead();
      // A flush gets the lock as soon as the hydrator has lost it, and stores a call.
      const shard = ledger.store.keys.shardOf(accountId);
      await ledger.sql.begin(async (flush) => {
        await flush`SELECT pg_advisory_xact_lock(${FLUSH_LOCK}::int, ${shard}::int)`;
        await flush`UPDATE balances SET balance = 4000 WHERE account_id = ${accountId}`;
      });
      expect(await loading).toBe(true);
      goOn();
      await until(() => replies.length === 1);
      expect(replies).toEqual([2]);
      expect(await wallet(accountId)).toEqual({});
      await hydrator.loadWallet(accountId);
      expect(await wallet(accountId)).toMatchObject({ balance: '4000' });
    } finally {
      late.close();
    }
  });

  it('is read and filled once more for the loads that wait', async () => {
    const late = newHydrator(ledger.databaseUrl, ledger.sql, lateTimes(1));
    try {
      const accounts = await Promise.all(Array.from({ length: 5 }, () => ledger.account(5_000)));
      await Promise.all(accounts.map((id) => late.loadWallet(id)));
      for (const id of accounts) expect(await wallet(id)).toMatchObject({ balance: '5000' });
      expect(late.loadedWallets).toBe(5);
    } finally {
      late.close();
    }
  });

  it('twice makes the loads that wait fail, and a later load succeeds', async () => {
    const late = newHydrator(ledger.databaseUrl, ledger.sql, lateTimes(2));
    try {
      const accountId = await ledger.account(5_000);
      await expect(late.loadWallet(accountId)).rejects.toSatisfy(isPostgresUnavailable);
      expect(await wallet(accountId)).toEqual({});
      await late.loadWallet(accountId);
      expect(await wallet(accountId)).toMatchObject({ balance: '5000' });
    } finally {
      late.close();
    }
  });

  it('is refused if another flush has left its mark meanwhile, as a writer of a lost Postgres does', async () => {
    const { keys, redis } = ledger.store;
    const accountId = await ledger.account(5_000);
    const mark = keys.mark[keys.shardOf(accountId)] as string;
    let fills = 0;
    const marked = withMethods({
      script: async (script, n, args) => {
        if (script === hydrateWalletScript && fills++ === 0) await redis.command('set', [mark, `7 ${randomUUID()}`]);
        return redis.script(script, n, args);
      },
    });
    const late = newHydrator(ledger.databaseUrl, ledger.sql, marked);
    try {
      // Read once more, it finds that Postgres lacks that flush.
      await expect(late.loadWallet(accountId)).rejects.toThrow('older than Redis');
      expect(fills).toBe(1);
      expect(await wallet(accountId)).toEqual({});
    } finally {
      late.close();
      await redis.command('del', [mark]);
    }
    await hydrator.loadWallet(accountId);
    expect(await wallet(accountId)).toMatchObject({ balance: '5000' });
  });

  it('does not change a wallet that Redis already has', async () => {
    const late = newHydrator(ledger.databaseUrl, ledger.sql, lateTimes(1));
    try {
      const accountId = await ledger.account(5_000);
      await ledger.store.loadWallet(accountId, 123);
      await late.loadWallet(accountId);
      expect(await wallet(accountId)).toMatchObject({ balance: '123' });
    } finally {
      late.close();
    }
  });
});

describe('loading a key', () => {
  async function addKey(accountId: string, status = 'active'): Promise<string> {
    const keyId = `acf_${uuidv7().replaceAll('-', '').slice(10)}`;
    await ledger.sql`
      INSERT INTO api_keys (key_id, account_id, role, secret_hash, rate_limit, status)
      VALUES (${keyId}, ${accountId}, 'buyer', ${'0'.repeat(64)}, 120, ${status})`;
    return keyId;
  }

  it('brings its limit and status', async () => {
    const accountId = await ledger.account(1);
    const [active, revoked] = [await addKey(accountId), await addKey(accountId, 'revoked')];
    await Promise.all([hydrator.loadKey(active, accountId), hydrator.loadKey(revoked, accountId)]);
    expect(await keyState(active, accountId)).toEqual({ limit: '120', status: 'active' });
    expect(await keyState(revoked, accountId)).toEqual({ limit: '120', status: 'revoked' });
  });

  it('of a suspended account gives status suspended, unless the key is revoked; an unknown key is revoked', async () => {
    const accountId = await ledger.account(1);
    const [keyId, revoked] = [await addKey(accountId), await addKey(accountId, 'revoked')];
    await ledger.sql`UPDATE accounts SET status = 'suspended' WHERE id = ${accountId}`;
    await Promise.all([keyId, revoked, 'acf_nobody'].map((id) => hydrator.loadKey(id, accountId)));
    expect(await keyState(keyId, accountId)).toMatchObject({ status: 'suspended' });
    expect(await keyState(revoked, accountId)).toMatchObject({ status: 'revoked' });
    expect(await keyState('acf_nobody', accountId)).toMatchObject({ status: 'revoked' });
  });

  it('of a child brings every key above it, unless Redis has that key already', async () => {
    const accountId = await ledger.account(1);
    const [root, parent, child] = [
      await addKey(accountId),
      await addKey(accountId),
      await addKey(accountId, 'revoked'),
    ];
    await ledger.sql`
      UPDATE api_keys SET ancestors = ARRAY[${root}], budget_amount = 5000000, budget_period = 'week', budget_number = 3
      WHERE key_id = ${parent}`;
    await ledger.sql`
      UPDATE api_keys SET ancestors = ARRAY[${root}, ${parent}], expires_at = '2027-01-01T00:00:00Z' WHERE key_id = ${child}`;
    await ledger.sql`UPDATE accounts SET status = 'suspended' WHERE id = ${accountId}`;
    await ledger.store.command('hset', ledger.store.keys.key(ledger.store.keys.shardOf(accountId), root), 'limit', 7);
    await hydrator.loadKey(child, accountId);
    expect(await keyState(root, accountId)).toEqual({
      limit: '7',
      status: 'suspended',
      [parent]: '120 active 0 5000000 week 3',
      [child]: `120 revoked ${Date.UTC(2027, 0)} - - 0`,
    });
    expect(await keyState(child, accountId)).toEqual({});
  });

  it('does not overwrite a change that reached Redis first', async () => {
    const accountId = await ledger.account(1);
    const keyId = await addKey(accountId);
    await ledger.store.loadKey(keyId, accountId, 5, 'revoked');
    await hydrator.loadKey(keyId, accountId);
    expect(await keyState(keyId, accountId)).toEqual({ limit: '5', status: 'revoked' });
  });
});

describe('while Postgres is away', () => {
  it.each(['refuses connections', 'is silent'])(
    'and it %s, loading rejects in bounded time, and works when Postgres is back',
    async (how) => {
      const proxy = await TcpProxy.open(Number(new URL(ledger.databaseUrl).port));
      const url = proxy.through(ledger.databaseUrl);
      const sql = openPostgres({ url, maxConnections: 2, applicationName: 'test' });
      const away = newHydrator(url, sql);
      const accountId = await ledger.account(5_000);
      try {
        await away.loadWallet(uuidv7());
        if (how === 'refuses connections') proxy.refuse();
        else proxy.set('swallow requests');
        const tookMs = await timed(async () => {
          await expect(away.loadWallet(accountId)).rejects.toThrow();
          await expect(away.loadKey('acf_x', accountId)).rejects.toThrow();
        });
        expect(tookMs).toBeLessThan(5_000);
        proxy.cut();
        proxy.set('pass');
        await until(() =>
          away.loadWallet(accountId).then(
            () => true,
            (error: unknown) => {
              if (!isPostgresUnavailable(error)) throw error;
              return false;
            },
          ),
        );
        expect(await wallet(accountId)).toMatchObject({ balance: '5000' });
      } finally {
        away.close();
        await sql.end({ timeout: 1 });
        await proxy.close();
      }
    },
  );
});

it('wallets loaded while the writer stores calls of the same accounts are right at any moment', async () => {
  const accounts = await Promise.all(Array.from({ length: 4 }, () => ledger.account(1_000_000)));
  const writer = ledger.startWriter({ batchSize: 10 });
  for (let round = 0; round < 10; round++) {
    const events = Array.from({ length: 40 }, (_, i) => newEvent({ accountId: accounts[i % 4] as string }));
    await ledger.append(...events);
    await until(() => writer.stats().storedCalls > round * 40);
    // Redis loses everything. An event that the writer has read but not stored must not count both in a wallet and in Postgres.
    await ledger.store.command('flushall');
    await Promise.all(accounts.map((id) => hydrator.loadWallet(id)));
    await until(async () => {
      const held = await ledger.advisoryLocks({ granted: true });
      return !held.some(({ classid }) => classid === FLUSH_LOCK);
    });
    for (const id of accounts) expect(Number((await wallet(id)).balance)).toBe(await ledger.balance(id));
  }
});
