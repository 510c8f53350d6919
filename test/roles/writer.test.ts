import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { Metrics } from '../../src/observability/metrics.ts';
import { PostgresSession } from '../../src/platform/postgres.ts';
import { startWriter, type Writer } from '../../src/roles/writer.ts';
import { expectedBooks, FEE_BASIS_POINTS, holdOf, Ledger, newEvent } from '../ledger/support.ts';
import { QUIET } from '../support/store.ts';
import { until } from '../support/wait.ts';

let ledger: Ledger;
let metrics: Metrics;
beforeAll(async () => {
  ledger = await Ledger.open();
});
afterAll(() => ledger.close());
beforeEach(async () => {
  await ledger.clear();
  metrics = new Metrics();
});

async function start({ redis = ledger.store.redis, instanceLeaseSeconds = 15 } = {}): Promise<Writer> {
  const { databaseUrl, sql, store } = ledger;
  const [row] = await sql<{ id: string }[]>`SELECT id FROM installation`;
  const installation = row?.id as string;
  const config = {
    databaseUrl,
    redisUrl: store.server.url,
    platformFeeBasisPoints: FEE_BASIS_POINTS,
    instanceLeaseSeconds,
    upstreamAllowCidrs: [],
    usageRetentionDays: 400,
    exportDir: null,
  };
  return startWriter({
    config,
    stores: { sql, redis, cluster: null, keys: store.keys, installation },
    metrics,
    log: QUIET,
  });
}

async function metric(name: string): Promise<number> {
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(await metrics.render())?.[1]);
}

it('the writer stops in time and stores all usage, even while a credit is stuck', async () => {
  const writer = await start();
  const lock = new PostgresSession({ url: ledger.databaseUrl, applicationName: 'test' });
  await lock.query('BEGIN');
  await lock.query('LOCK TABLE credits IN ACCESS EXCLUSIVE MODE');
  try {
    await until(async () => (await ledger.sql`SELECT 1 FROM pg_locks WHERE NOT granted`).length > 0);
    const events = Array.from({ length: 50 }, () => newEvent());
    await ledger.append(...events);
    const startedAt = performance.now();
    await writer.stop();
    expect(performance.now() - startedAt).toBeLessThan(7_000);
    // The books are read without the lock, because they have the credits of refunds.
    await lock.query('ROLLBACK');
    expect(await ledger.readBooks()).toEqual(expectedBooks(events));
    expect(await ledger.backlog()).toBe(0);
  } finally {
    lock.close();
  }
});

it('a stopping writer stores what a sweep under way settles', async () => {
  const { redis, keys } = ledger.store;
  const event = newEvent();
  const shard = keys.shardOf(event.accountId);
  await ledger.store.command('hset', keys.lease[shard] as string, 'gateway-1', (await ledger.store.now()) - 60_000);
  await ledger.store.command('hset', keys.open[shard] as string, event.usageId, holdOf(event));
  let stopped: Promise<void> | null = null;
  let [sweeping, looks] = [false, 0];
  // The same Redis, except that it answers the sweep only after the stopping writer has looked at the streams again.
  const command: typeof redis.command = async (name, args) => {
    if (name === 'hscan' && args[0] === keys.open[shard]) {
      sweeping = true;
      await until(() => looks > 2 * keys.shards);
    }
    if (name === 'xlen' && stopped !== null) looks++;
    return redis.command(name, args);
  };
  const slow = new Proxy(redis, {
    get: (target, name) => {
      if (name === 'command') return command;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const writer = await start({ redis: slow, instanceLeaseSeconds: 1 });
  await until(() => sweeping);
  stopped = writer.stop();
  await stopped;
  expect(await ledger.backlog()).toBe(0);
  expect((await ledger.readBooks()).calls).toMatchObject([{ usage_id: event.usageId, outcome: 'abandoned' }]);
});

it('a writer adds the hours that are over to the sums by day', async () => {
  const { sql } = ledger;
  await sql`UPDATE installation SET days_summed_to = date_trunc('hour', now() - interval '30 hours', 'UTC')`;
  const writer = await start();
  await until(async () => {
    const rows = await sql`SELECT FROM installation WHERE days_summed_to > now() - interval '70 minutes'`;
    return rows.length === 1;
  });
  await writer.stop();
});

it('metrics report what the writer stores, rejects, sweeps and loads', async () => {
  const writer = await start();
  await ledger.append(newEvent(), newEvent());
  await ledger.appendRaw(newEvent().accountId, 'not-a-uuid', '', '');
  await ledger.account(1_000);
  await until(async () => (await metric('tollgate_writer_rejected_events_total')) === 1);
  await until(async () => (await metric('tollgate_writer_stored_calls_total')) === 2);
  await until(async () => (await metric('tollgate_writer_loaded_wallets_total')) === 1);
  await until(async () => (await metric('tollgate_writer_backlog_events')) === 0);
  expect(await metric('tollgate_writer_flushes_total')).toBeGreaterThan(0);
  expect(await metric('tollgate_writer_owned_shards')).toBe(ledger.store.keys.shards);
  expect(await metric('tollgate_writer_working')).toBe(1);
  expect(await metric('tollgate_writer_swept_holds_total')).toBe(0);
  await until(async () => (await metric('tollgate_reconciliation_last_run_timestamp_seconds')) > 0);
  for (const name of ['drift_micros', 'drift_accounts', 'shards_not_compared', 'repairs_total']) {
    expect(await metric(`tollgate_reconciliation_${name}`)).toBe(0);
  }
  await ledger.store.server.stop();
  await until(async () => (await metric('tollgate_writer_working')) === 0);
  await ledger.store.server.restart();
  await until(async () => (await metric('tollgate_writer_working')) === 1);
  await writer.stop();
});

it('metrics report for how many shards Postgres is older than Redis, until it no longer is', async () => {
  const fenced = () => metric('tollgate_writer_fenced_shards');
  const writer = await start();
  const event = newEvent();
  await ledger.append(event);
  await ledger.drained();
  expect(await fenced()).toBe(0);
  const [flush] = await ledger.sql`SELECT id, token FROM journal ORDER BY id DESC LIMIT 1`;
  await ledger.sql`UPDATE journal SET token = gen_random_uuid() WHERE id = ${flush?.id}`;
  await ledger.append(newEvent({ accountId: event.accountId }));
  await until(async () => (await fenced()) === 1);
  await ledger.sql`UPDATE journal SET token = ${flush?.token} WHERE id = ${flush?.id}`;
  await until(async () => (await fenced()) === 0);
  await writer.stop();
  expect(await ledger.backlog()).toBe(0);
});

it('metrics report an older Postgres even if nobody makes calls', async () => {
  const fenced = () => metric('tollgate_writer_fenced_shards');
  ledger.startWriter();
  await ledger.append(newEvent());
  await ledger.drained();
  await ledger.stopWriters();
  const [flush] = await ledger.sql`SELECT id, token FROM journal ORDER BY id DESC LIMIT 1`;
  await ledger.sql`UPDATE journal SET token = gen_random_uuid() WHERE id = ${flush?.id}`;
  const writer = await start();
  await until(async () => (await fenced()) === 1);
  await ledger.sql`UPDATE journal SET token = ${flush?.token} WHERE id = ${flush?.id}`;
  await until(async () => (await fenced()) === 0);
  await writer.stop();
});

it('metrics report the total drift of wallets, and the number of accounts with a drift', async () => {
  await ledger.knowRedis();
  for (const [balance, wrong] of [
    [1_000, 1_250],
    [1_000, 600],
    [1_000, 1_000],
  ] as const) {
    const id = await ledger.account(balance);
    await ledger.sql`UPDATE credits SET applied_at = now() WHERE account_id = ${id}`;
    await ledger.setWallet(id, wrong);
  }
  const writer = await start();
  await until(async () => (await metric('tollgate_reconciliation_last_run_timestamp_seconds')) > 0);
  expect(await metric('tollgate_reconciliation_drift_accounts')).toBe(2);
  expect(await metric('tollgate_reconciliation_drift_micros')).toBe(250 + 400);
  await writer.stop();
});
