import { expect, it } from 'vitest';
import type { UsageEvent } from '../../../src/ledger/usage-event.ts';
import { uuidv7 } from '../../../src/platform/ids.ts';
import { until } from '../../support/wait.ts';
import { newEvent } from '../support.ts';
import { ledger, useLedger } from '../use-ledger.ts';

useLedger();

const accountId = uuidv7();
const shard = () => ledger.store.keys.shardOf(accountId);
const mark = () => ledger.store.command('get', ledger.store.keys.mark[shard()] as string);
const waiting = () => ledger.store.command('xlen', ledger.store.keys.usage[shard()] as string);
const history = async () => (await ledger.sql`SELECT * FROM shard_histories WHERE shard = ${shard()}`)[0];
const newest = async () =>
  (await ledger.sql`SELECT id, token FROM journal ORDER BY id DESC LIMIT 1`)[0] as { id: number; token: string };

async function flushOne(): Promise<void> {
  await ledger.append(newEvent({ accountId }));
  await ledger.drained();
}

it('each flush leaves its journal row and token in Redis, and Postgres remembers it', async () => {
  ledger.startWriter();
  for (let flushes = 1; flushes <= 2; flushes++) {
    await flushOne();
    const { id, token } = await newest();
    expect(await mark()).toBe(`${id} ${token}`);
    expect(await history()).toMatchObject({ flush_id: id, doubt: 1, verified: 0 });
  }
});

it('a Redis with other data causes one new doubt, and a Redis that has lost its mark causes none', async () => {
  ledger.startWriter();
  await flushOne();
  await ledger.store.command('del', ledger.store.keys.mark[shard()] as string);
  await flushOne();
  expect(await history()).toMatchObject({ doubt: 1 });
  // Its process is the same, and its replication id is another.
  await ledger.store.command('replicaof', '127.0.0.1', 1);
  await ledger.store.command('replicaof', 'no', 'one');
  await flushOne();
  await flushOne();
  expect(await history()).toMatchObject({ doubt: 2 });
});

it.each([
  ['it lacks the flush', (id: number) => ledger.sql`DELETE FROM journal WHERE id = ${id}`],
  [
    'another flush has its number',
    (id: number) => ledger.sql`UPDATE journal SET token = gen_random_uuid() WHERE id = ${id}`,
  ],
])('nothing is stored or trimmed while Postgres is older than Redis: %s', async (_, goBack) => {
  const errors: unknown[] = [];
  const log = { info: () => {}, warn: () => {}, error: (fields: object) => errors.push(fields) };
  const writer = ledger.startWriter({ log });
  await flushOne();
  const { id, token } = await newest();
  await goBack(id);
  await ledger.append(newEvent({ accountId }));
  await until(() => writer.fencedShards.has(shard()));
  expect(errors).toEqual([{ shard: shard() }]);
  // Another shard waits, too: its calls would be missing in the right Postgres.
  const other = Array.from({ length: 200 }, () => newEvent()).find(
    (it) => ledger.store.keys.shardOf(it.accountId) !== shard(),
  ) as UsageEvent;
  await ledger.append(other);
  await until(() => writer.stats().backlog === 0);
  expect(await ledger.sql`SELECT 1 FROM calls WHERE usage_id = ${other.usageId}`).toEqual([]);
  expect(await waiting()).toBe(1);
  expect(await mark()).toBe(`${id} ${token}`);

  // The right Postgres is back.
  // A steady load on the other shard does not keep this one fenced.
  await ledger.append(newEvent({ accountId: other.accountId }));
  await ledger.sql`INSERT INTO journal (id, kind, token) OVERRIDING SYSTEM VALUE VALUES (${id}, 'usage', ${token})
                   ON CONFLICT (id) DO UPDATE SET token = excluded.token`;
  await ledger.drained();
  expect(writer.fencedShards.size).toBe(0);
});

it('a mark of another type counts as damaged: the flush is fenced, and nothing fails', async () => {
  const writer = ledger.startWriter();
  await flushOne();
  const name = ledger.store.keys.mark[shard()] as string;
  await ledger.store.command('del', name);
  await ledger.store.command('hset', name, 'a', 1);
  await ledger.append(newEvent({ accountId }));
  await until(() => writer.fencedShards.has(shard()));
  expect(writer.stats().working).toBe(true);
  await ledger.store.command('del', name);
  await ledger.drained();
});

it('a mark that cannot be read counts as a flush that Postgres lacks', async () => {
  const writer = ledger.startWriter();
  await flushOne();
  await ledger.store.command('set', ledger.store.keys.mark[shard()] as string, 'what is this');
  await ledger.append(newEvent({ accountId }));
  await until(() => writer.fencedShards.has(shard()));
  expect(await waiting()).toBe(1);
});
