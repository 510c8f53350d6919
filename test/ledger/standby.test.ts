// Money between a primary and its standby: data of a standby are never used, and what the standby may lack is not trimmed or confirmed.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { storeCredit } from '../../src/accounts/credits.ts';
import { makeDebit } from '../../src/accounts/debits.ts';
import { storePayout } from '../../src/accounts/payouts.ts';
import { Fence } from '../../src/ledger/history/fence.ts';
import { endDebit } from '../../src/ledger/wallets/debits-sql.ts';
import { Hydrator } from '../../src/ledger/wallets/hydrate.ts';
import { isPostgresUnavailable, openPostgres, type Sql } from '../../src/platform/postgres.ts';
import { addAccount } from '../support/accounts.ts';
import { hidingPooler } from '../support/hiding-pooler.ts';
import { QUIET } from '../support/store.ts';
import { SYNCHRONOUS, startTestPostgres, startTestStandby, type TestPostgres } from '../support/stores.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/wait.ts';
import { expectedBooks, Ledger, newEvent } from './support.ts';

let primary: TestPostgres;
let standby: TestPostgres;
let ledger: Ledger;
/** Asks the standby itself. */
let onStandby: Sql;
let pooler: Awaited<ReturnType<typeof hidingPooler>>;

beforeAll(async () => {
  primary = await startTestPostgres({ settings: SYNCHRONOUS });
  standby = await startTestStandby(primary);
  ledger = await Ledger.open({ url: primary.url, drop: async () => {} });
  pooler = await hidingPooler(standby.port);
  onStandby = openPostgres({ url: at(pooler.port), maxConnections: 1, applicationName: 'test' });
});
afterAll(async () => {
  await onStandby.end();
  await ledger.close();
  await pooler.close();
  await standby.stop();
  await primary.stop();
});
beforeEach(() => ledger.clear());
afterEach(() => ledger.stopWriters());

const at = (...ports: number[]): string => {
  const { host } = new URL(primary.url);
  return primary.url.replace(host, ports.map((port) => `127.0.0.1:${port}`).join(','));
};

describe('a standby that is behind', () => {
  let accountId: string;
  let keyId: string;

  /** The standby knows a balance of 100 and an active key; the primary 93, and that the key was revoked. */
  beforeEach(async () => {
    const account = await addAccount(ledger.sql);
    ({ accountId, keyId } = account);
    await ledger.credit(accountId, 100);
    await caughtUp();
    await onStandby`SELECT pg_wal_replay_pause()`;
    await ledger.sql`UPDATE balances SET balance = 93 WHERE account_id = ${accountId}`;
    await ledger.sql`UPDATE api_keys SET status = 'revoked' WHERE key_id = ${keyId}`;
  });
  afterEach(async () => {
    await onStandby`SELECT pg_wal_replay_resume()`;
    await caughtUp();
  });

  const caughtUp = async (): Promise<void> => {
    const [written] = await ledger.sql`SELECT pg_current_wal_lsn()::text AS lsn`;
    await until(
      async () =>
        (await onStandby`SELECT pg_last_wal_replay_lsn() >= ${written?.lsn as string}::pg_lsn AS yes`)[0]?.yes,
    );
  };

  async function load(url: string): Promise<void> {
    const { redis, keys } = ledger.store;
    const sql = openPostgres({ url, maxConnections: 1, applicationName: 'test' });
    const hydrator = new Hydrator({ databaseUrl: url, sql, redis, keys, log: QUIET });
    try {
      const loads = await Promise.allSettled([hydrator.loadWallet(accountId), hydrator.loadKey(keyId, accountId)]);
      for (const result of loads)
        if (result.status === 'rejected') expect(result.reason).toSatisfy(isPostgresUnavailable);
    } finally {
      hydrator.close();
      await sql.end();
    }
  }
  const keyName = () => ledger.store.keys.key(ledger.store.keys.shardOf(accountId), keyId);

  it('fills no wallet and no key: if the URL names several hosts, they are read from the primary', async () => {
    await load(at(standby.port, primary.port));
    expect(await ledger.store.balance(accountId)).toBe(93);
    expect(await ledger.store.hash(keyName())).toMatchObject({ status: 'revoked' });
  });

  it('fills no wallet and no key through a pooler that has moved the session to it', async () => {
    await load(at(pooler.port));
    expect(await ledger.store.hash(ledger.store.walletName(accountId))).toEqual({});
    expect(await ledger.store.hash(keyName())).toEqual({});
  });
});

it('a writer whose host name leads to the standby owns no shards, and stores once the name leads to the primary again', async () => {
  const proxy = await TcpProxy.open(primary.port);
  const writer = ledger.startWriter({ databaseUrl: proxy.through(primary.url) });
  await until(() => writer.stats().ownedShards === ledger.store.keys.shards);
  proxy.leadTo(standby.port);
  proxy.cut();
  await until(() => !writer.stats().working);
  const events = [newEvent(), newEvent()];
  await ledger.append(...events);
  const dialled = proxy.accepted;
  await until(() => proxy.accepted >= dialled + 3);
  expect(writer.stats().ownedShards).toBe(0);
  expect([...(await onStandby`SELECT FROM pg_locks WHERE locktype = 'advisory'`)]).toEqual([]);
  expect(await ledger.backlog()).toBe(2);
  proxy.leadTo(primary.port);
  await ledger.drained();
  expect(await ledger.readBooks()).toEqual(expectedBooks(events));
  await ledger.stopWriters();
  await proxy.close();
});

describe('while the synchronous standby is away and the wait for it is cancelled', () => {
  afterEach(() => standby.restart());

  /** The session of that name which waits for the standby; null: none. */
  async function waiting(name: string): Promise<number | null> {
    const [row] = await ledger.sql<{ pid: number }[]>`
      SELECT pid FROM pg_stat_activity WHERE application_name = ${name} AND wait_event = 'SyncRep'`;
    return row?.pid ?? null;
  }
  /** @param before  a session that waited before this one */
  async function nextWaiting(name: string, before: number | null = null): Promise<number> {
    let pid: number | null = null;
    await until(async () => {
      pid = await waiting(name);
      return pid !== null && pid !== before;
    });
    return pid as unknown as number;
  }
  const cancel = (pid: number) => ledger.sql`SELECT pg_cancel_backend(${pid})`;

  it('the writer trims nothing and connects again; it trims when the standby has what the writer finds stored', async () => {
    const writer = ledger.startWriter();
    await until(() => writer.stats().ownedShards === ledger.store.keys.shards);
    await standby.stop();
    const events = [newEvent(), newEvent(), newEvent()];
    await ledger.append(...events);
    const first = await nextWaiting('tollgate-writer');
    await cancel(first);
    // The events are stored by now, on the primary only. The second session finds them, and must wait as well.
    const second = await nextWaiting('tollgate-writer', first);
    expect(await ledger.sql`SELECT FROM calls`).toHaveLength(3);
    expect(await ledger.backlog()).toBe(3);
    await cancel(second);
    await nextWaiting('tollgate-writer', second);
    expect(await ledger.backlog()).toBe(3);
    await standby.restart();
    await ledger.drained();
    expect(await ledger.readBooks()).toEqual(expectedBooks(events));
  });

  it('a credit, a payout and a debit fail; a repeated request confirms each once, when the standby has it', async () => {
    const { accountId } = await addAccount(ledger.sql);
    await ledger.credit(accountId, 5_000);
    await ledger.sql`INSERT INTO balances VALUES (${accountId}, 'earnings', 5_000)`;
    const by = { actor: 'system', actorAccountId: null, requestId: null } as const;
    const sql = openPostgres({ url: primary.url, maxConnections: 1, applicationName: 'money' });
    const money = new Fence({ sql, redis: ledger.store.redis, keys: ledger.store.keys });
    const carrier = {
      carryOut: async (debit: Parameters<typeof endDebit>[1]) => ({
        ...(await endDebit(money, debit, 'taken')),
        balanceMicros: 5_000,
      }),
    };
    const wanted = { accountId, amountMicros: 700, reference: 'r' };
    const acts = {
      credit: () => storeCredit(money, wanted, by),
      payout: () => storePayout(money, wanted, by),
      debit: () => makeDebit(money, carrier, { ...wanted, reason: 'x' }, by),
    };
    await standby.stop();
    for (const act of Object.values(acts)) {
      let last: number | null = null;
      for (let times = 0; times < 3; times++) {
        const acting = act().then(
          () => null,
          (error: unknown) => error,
        );
        last = await nextWaiting('money', last);
        await cancel(last);
        expect(await acting).toSatisfy(isPostgresUnavailable);
      }
    }
    await standby.restart();
    expect((await acts.credit())?.created).toBe(false);
    expect((await acts.payout())?.created).toBe(false);
    // It had begun, and nobody had asked the wallet.
    expect((await acts.debit())?.created).toBe(true);
    expect((await acts.debit())?.created).toBe(false);
    expect(await ledger.sql`SELECT FROM journal WHERE reference = 'r'`).toHaveLength(3);
    await sql.end();
  });
});
