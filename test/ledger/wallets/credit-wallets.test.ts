import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { CreditWallets } from '../../../src/ledger/wallets/credit-wallets.ts';
import { Hydrator } from '../../../src/ledger/wallets/hydrate.ts';
import { KeyStates } from '../../../src/ledger/wallets/key-states.ts';
import { Wallets } from '../../../src/ledger/wallets/wallets.ts';
import { RedisClient } from '../../../src/platform/redis.ts';
import { admit, INSTANCE, newKeyId, openScene, request, settle, take } from '../../admission/calls.ts';
import { QUIET } from '../../support/store.ts';
import { timed } from '../../support/timed.ts';
import { until } from '../../support/wait.ts';
import { holdOf, Ledger, newEvent } from '../support.ts';

let ledger: Ledger;
let hydrator: Hydrator;
let credits: CreditWallets;
let wallets: Wallets;
beforeAll(async () => {
  ledger = await Ledger.open();
});
afterAll(() => ledger.close());
beforeEach(async () => {
  await ledger.clear();
  const { sql, store, databaseUrl } = ledger;
  const parts = { sql, redis: store.redis, keys: store.keys, log: QUIET };
  hydrator = new Hydrator({ databaseUrl, ...parts });
  credits = new CreditWallets({ ...parts, hydrator });
  wallets = new Wallets({ ...parts, hydrator });
});
afterEach(async () => {
  await credits.stop();
  hydrator.close();
});

const unapplied = async (): Promise<number> => {
  const [row] = await ledger.sql<{ n: number }[]>`SELECT count(*)::int AS n FROM credits WHERE applied_at IS NULL`;
  return row?.n as number;
};

describe('a key state', () => {
  it('applies to the very next call', async () => {
    const { store } = ledger;
    const scene = await openScene(store, 5_000, 60);
    const states = new KeyStates({ ...store, maxRateLimit: 300, commandTimeoutMs: 10_000 });
    const terms = { limit: 7, ancestors: [], expiresAt: null, budgetMicros: null, budgetPeriod: null, budgetNumber: 0 };
    await states.put(scene.keyId, scene.accountId, { ...terms, status: 'active' });
    expect(await take(store, scene)).toMatchObject({ outcome: 'taken', rate: { limit: 7 } });
    const child = { ...scene, keyId: newKeyId(), ancestors: [scene.keyId] };
    const budget = { budgetMicros: 1_000, budgetPeriod: 'total', budgetNumber: 2 };
    await states.put(child.keyId, child.accountId, {
      ...terms,
      ...budget,
      status: 'active',
      ancestors: child.ancestors,
    });
    expect(await admit(store, request(child, 1_000))).toMatchObject({ outcome: 'admitted', balanceMicros: 0 });
    const expiresAt = new Date((await store.now()) - 1);
    await states.put(child.keyId, child.accountId, {
      ...terms,
      status: 'active',
      ancestors: child.ancestors,
      expiresAt,
    });
    expect((await admit(store, request(child, 1))).outcome).toBe('expired');
    await states.put(scene.keyId, scene.accountId, { ...terms, status: 'revoked' });
    for (const one of [scene, child]) expect((await take(store, one)).outcome).toBe('revoked');
  });

  it('that reaches Redis after its sender gave up changes nothing, because Redis may have a newer one', async () => {
    const { store } = ledger;
    const scene = await openScene(store, 5_000, 60);
    const child = { ...scene, keyId: newKeyId(), ancestors: [scene.keyId] };
    const terms = { limit: 7, status: 'active', ancestors: child.ancestors, expiresAt: null } as const;
    const budgetOf = (budgetMicros: number) => ({ ...terms, budgetMicros, budgetPeriod: 'total', budgetNumber: 1 });
    const link = Object.create(store.redis) as typeof store.redis;
    const states = new KeyStates({ redis: link, keys: store.keys, maxRateLimit: 300, commandTimeoutMs: 20 });
    const patient = new KeyStates({ ...store, maxRateLimit: 300, commandTimeoutMs: 10_000 });
    // The link keeps the script back until Redis's clock has passed the time for which a reply is waited for.
    let newer: Promise<void> | null = null;
    link.script = async (...sent) => {
      const sentAtMs = await store.now();
      newer = patient.put(child.keyId, child.accountId, budgetOf(1_000));
      await newer;
      await until(async () => (await store.now()) > sentAtMs + 20);
      return store.redis.script(...sent);
    };
    await expect(states.put(child.keyId, child.accountId, budgetOf(4_000))).rejects.toThrow('too late');
    expect(newer).not.toBeNull();
    expect((await admit(store, request(child, 1_001))).outcome).toBe('budget_exceeded');
  });
});

describe('a credit', () => {
  it('is added once, however often it is applied', async () => {
    const accountId = await ledger.account(1_000);
    await hydrator.loadWallet(accountId);
    const seq = await ledger.credit(accountId, 500);
    for (let i = 0; i < 3; i++) await credits.apply({ accountId, seq, amountMicros: 500, budgets: null });
    expect(await ledger.store.balance(accountId)).toBe(1_500);
    expect(await unapplied()).toBe(0);
  });

  it('brings earlier credits that never reached the wallet too', async () => {
    const accountId = await ledger.account(1_000);
    await hydrator.loadWallet(accountId);
    await ledger.credit(accountId, 10);
    await ledger.credit(accountId, 20);
    const seq = await ledger.credit(accountId, 40);
    await credits.apply({ accountId, seq, amountMicros: 40, budgets: null });
    expect(await ledger.store.balance(accountId)).toBe(1_070);
    expect(await unapplied()).toBe(0);
  });

  it('is not lost when a load under way read Postgres before the credit was stored', async () => {
    const accountId = await ledger.account(1_000);
    // The load has read a balance of 1 000 with credit 1, and is on its way to Redis…
    const slow = hydrator.loadWallet(accountId);
    const seq = await ledger.credit(accountId, 500);
    // … while the credit finds no wallet in Redis.
    await Promise.all([credits.apply({ accountId, seq, amountMicros: 500, budgets: null }), slow]);
    expect(await ledger.store.balance(accountId)).toBe(1_500);
  });

  it('of an account without a wallet loads the wallet, including the credit', async () => {
    const accountId = await ledger.account(1_000);
    await credits.apply({ accountId, seq: 1, amountMicros: 1_000, budgets: null });
    const wallet = await ledger.store.hash(ledger.store.walletName(accountId));
    expect(wallet).toMatchObject({ balance: '1000', credit_seq: '1' });
  });

  it('that did not reach Redis is applied by the writer within seconds, in order', async () => {
    const accounts = await Promise.all([1, 2, 3].map(() => ledger.account(1_000)));
    for (const id of accounts) await hydrator.loadWallet(id);
    for (const id of accounts) for (const amount of [1, 20, 300]) await ledger.credit(id, amount);
    credits.start();
    await until(async () => (await unapplied()) === 0);
    for (const id of accounts) expect(await ledger.store.balance(id)).toBe(1_321);
  });

  it('that a restarted Redis lost is applied again, although it was marked as applied', async () => {
    const accountId = await ledger.account(1_000);
    await hydrator.loadWallet(accountId);
    const seq = await ledger.credit(accountId, 500);
    await credits.apply({ accountId, seq, amountMicros: 500, budgets: null });
    await credits.applyMissing();
    expect(await unapplied()).toBe(0);
    // Redis loses the last second before an fsync: the wallet is as it was before the credit.
    await ledger.store.server.restart();
    await ledger.store.reconnected();
    await ledger.store.loadWallet(accountId, 1_000);
    await credits.applyMissing();
    expect(await ledger.store.hash(ledger.store.walletName(accountId))).toEqual({ balance: '1500', credit_seq: '2' });
  });

  it('made while Redis is away fails and stays unapplied; the job logs that once and applies the credit later', async () => {
    const lines: string[] = [];
    const log = { info: () => {}, warn: (_: object, line: string) => void lines.push(line) };
    const { sql, store } = ledger;
    const own = new CreditWallets({ sql, redis: store.redis, keys: store.keys, hydrator, log });
    const accountId = await ledger.account(1_000);
    await store.server.stop();
    await until(() => !store.redis.ready);
    await expect(own.apply({ accountId, seq: 1, amountMicros: 1_000, budgets: null })).rejects.toThrow('not connected');
    expect(await unapplied()).toBe(1);
    own.start();
    await until(() => lines.length > 0);
    await store.server.restart();
    await until(async () => (await unapplied()) === 0);
    await own.stop();
    expect(lines).toEqual(['credits cannot be applied to their wallets now']);
    expect(await store.balance(accountId)).toBe(1_000);
  });
});

describe('a credit of a damaged wallet', () => {
  it('is tried once per round, and the wallet is not loaded for it', async () => {
    const accountId = await ledger.account(1_000);
    await hydrator.loadWallet(accountId);
    for (const amount of [500, 20]) await ledger.credit(accountId, amount);
    await ledger.store.command('hset', ledger.store.walletName(accountId), 'balance', '1.5');
    const load = vi.spyOn(hydrator, 'loadWallet');
    await expect(credits.apply({ accountId, seq: 3, amountMicros: 20, budgets: null })).rejects.toThrow(
      'is damaged in redis',
    );
    expect(load).not.toHaveBeenCalled();
    expect(await ledger.store.hash(ledger.store.walletName(accountId))).toMatchObject({
      balance: '1.5',
      credit_seq: '1',
    });
  });

  it('whose balance an operator has deleted is loaded with the whole balance, not created from the credit alone', async () => {
    const accountId = await ledger.account(1_000);
    await hydrator.loadWallet(accountId);
    await ledger.store.command('hdel', ledger.store.walletName(accountId), 'balance');
    const seq = await ledger.credit(accountId, 500);
    await credits.apply({ accountId, seq, amountMicros: 500, budgets: null });
    expect(await ledger.store.balance(accountId)).toBe(1_500);
  });

  it('is logged once by the job, which still logs what keeps other accounts from their credits', async () => {
    const lines: string[] = [];
    const log = { info: () => {}, warn: (_: object, line: string) => void lines.push(line) };
    const { sql, store } = ledger;
    const own = new CreditWallets({ sql, redis: store.redis, keys: store.keys, hydrator, log });
    const [damaged, other] = [await ledger.account(1_000), await ledger.account(1_000)];
    await store.command('set', store.walletName(damaged), 'x');
    own.start();
    await until(async () => lines.length > 0 && (await unapplied()) === 1);
    expect(lines).toEqual([expect.stringContaining('the wallet of an account is damaged')]);
    vi.spyOn(hydrator, 'loadWallet').mockRejectedValue(new Error('Postgres is away'));
    await store.command('del', store.walletName(other));
    await ledger.credit(other, 500);
    await until(() => lines.length > 1);
    await own.stop();
    expect(lines.slice(1)).toEqual(['credits cannot be applied to their wallets now']);
  });
});

describe('missing credits', () => {
  it('reach every account except one whose wallet cannot take its credit', async () => {
    const accounts = await Promise.all(Array.from({ length: 5 }, () => ledger.account(1_000)));
    // This account is the first in the order of a round.
    const bad = accounts.sort()[0] as string;
    await ledger.store.command('set', ledger.store.walletName(bad), 'no wallet');
    await expect(credits.applyMissing()).rejects.toThrow('is damaged in redis');
    expect(await unapplied()).toBe(1);
    for (const id of accounts.slice(1)) expect(await ledger.store.balance(id)).toBe(1_000);
  });

  it('reach all other accounts, even if more accounts than fit in one round cannot take their credits', async () => {
    const bad = Array.from({ length: 500 }, (_, i) => `00000000-0000-7000-8000-${String(i).padStart(12, '0')}`);
    await ledger.sql`INSERT INTO accounts (id, owner_id, credit_seq) SELECT id, 'buyer', 1 FROM unnest(${bad}::uuid[]) AS id`;
    const [journal] = await ledger.sql`INSERT INTO journal (kind) VALUES ('credit') RETURNING id`;
    await ledger.sql`
      INSERT INTO credits (account_id, seq, amount, reference, journal_id)
      SELECT id, 1, 5, id::text, ${journal?.id} FROM unnest(${bad}::uuid[]) AS id`;
    await Promise.all(bad.map((id) => ledger.store.command('set', ledger.store.walletName(id), 'no wallet')));
    const good = await ledger.account(1_000);
    await credits.applyMissing().catch(() => {});
    await credits.applyMissing().catch(() => {});
    expect(await ledger.store.balance(good)).toBe(1_000);
    expect(await unapplied()).toBe(500);
  });

  it('are applied by one round at a time, and stopping waits no longer than its bound', async () => {
    let loads = 0;
    const never = { loadWallet: () => new Promise<void>(() => void loads++) };
    const { sql, store } = ledger;
    const stuck = new CreditWallets({ sql, redis: store.redis, keys: store.keys, hydrator: never, log: QUIET });
    await ledger.account(1_000);
    let ticks = 0;
    stuck.start();
    await until(() => loads > 0);
    // Wait until three more rounds are due.
    const ticking = setInterval(() => ticks++, 1_000);
    await until(() => ticks === 3);
    clearInterval(ticking);
    expect(await timed(() => stuck.stop(200))).toBeLessThan(1_000);
    expect(loads).toBe(1);
  });
});

describe('reading a wallet', () => {
  it('returns the balance that can be spent and the sum of the open holds', async () => {
    const scene = await openScene(ledger.store, 5_000);
    const other = await openScene(ledger.store, 9_000);
    const [first, second] = [request(scene, 1_000), request(scene, 700)];
    await admit(ledger.store, first, INSTANCE);
    await admit(ledger.store, second, INSTANCE);
    await admit(ledger.store, request(other, 9_000), INSTANCE);
    expect(await wallets.read(scene.accountId)).toEqual({ balanceMicros: 3_300, heldMicros: 1_700 });
    await settle(ledger.store, first, false);
    await settle(ledger.store, second, true);
    expect(await wallets.read(scene.accountId)).toEqual({ balanceMicros: 4_000, heldMicros: 0 });
  });

  it('sums the holds of each account, each once, even if the shard has too many to read at one instant', async () => {
    const scene = await openScene(ledger.store, 5_000_000);
    const shard = ledger.store.keys.shardOf(scene.accountId);
    const open = ledger.store.keys.open[shard] as string;
    const ours = Array.from({ length: 900 }, (_, i) => newEvent({ accountId: scene.accountId, heldMicros: i }));
    const others = Array.from({ length: 900 }, () => newEvent({ heldMicros: 77 }));
    const fields = [...ours, ...others].flatMap((event) => [event.usageId, holdOf(event)]);
    await ledger.store.redis.command('hset', [open, ...fields, 'kept', 'x\t\t1\tgateway', 'damaged', 'v1\tnothing']);
    const reading = await Promise.all([wallets.read(scene.accountId), wallets.read(scene.accountId)]);
    const heldMicros = (899 * 900) / 2;
    expect(reading).toEqual(Array(2).fill({ balanceMicros: 5_000_000, heldMicros }));
    // The balance is live; the sum may be a second old.
    await ledger.store.redis.command('hdel', [open, ...ours.slice(450).map(({ usageId }) => usageId)]);
    await until(async () => (await wallets.read(scene.accountId)).heldMicros === (449 * 450) / 2);
  });

  it('loads the wallet first if it is not loaded', async () => {
    const accountId = await ledger.account(1_234);
    expect(await wallets.read(accountId)).toEqual({ balanceMicros: 1_234, heldMicros: 0 });
  });

  it('is unavailable while Redis is away', async () => {
    const redis = new RedisClient({ url: 'redis://127.0.0.1:1', name: 'test', commandTimeoutMs: 100 }, QUIET);
    const away = new Wallets({ redis, keys: ledger.store.keys, hydrator });
    await expect(away.read(await ledger.account(1))).rejects.toMatchObject({ code: 'unavailable', status: 503 });
    redis.destroy();
  });
});
