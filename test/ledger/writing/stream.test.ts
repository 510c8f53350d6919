import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { ReadOver } from '../../../src/ledger/writing/read-over.ts';
import { isAnyWaiting, readBatch, type StreamSource } from '../../../src/ledger/writing/stream.ts';
import { trim } from '../../../src/ledger/writing/trim.ts';
import { Store } from '../../support/store.ts';

let store: Store;
let source: StreamSource;
beforeAll(async () => {
  store = await Store.open();
  source = { redis: store.redis, keys: store.keys, feeBasisPoints: 0, readOver: new ReadOver() };
});
afterAll(() => store.close());
beforeEach(() => store.command('flushall'));

it('a writer without shards, because another has them all, finds no events waiting', async () => {
  await store.command('xadd', store.keys.usage[0] as string, '5-1', 'e', 'event');
  expect(await isAnyWaiting(source, [])).toBe(false);
  expect(await isAnyWaiting(source, [0])).toBe(true);
});

const add = async (shard: number, count: number): Promise<void> => {
  for (let i = 0; i < count; i++) await store.command('xadd', store.keys.usage[shard] as string, '*', 'e', 'event');
};

/** The commands that `work` sends, in order. */
async function sentBy<T>(work: (redis: StreamSource['redis']) => Promise<T>): Promise<{ result: T; sent: string[] }> {
  const sent: string[] = [];
  const redis = Object.create(store.redis) as StreamSource['redis'];
  redis.command = (name, args) => {
    sent.push(name);
    return store.redis.command(name, args);
  };
  redis.script = (script, ...args) => {
    sent.push(script.name);
    return store.redis.script(script, ...args);
  };
  return { result: await work(redis), sent };
}

it('small streams are read by one command, and trimmed by one command', async () => {
  await add(0, 3);
  await add(1, 5);
  const read = await sentBy((redis) => readBatch({ ...source, redis }, [0, 1], 100, null));
  expect(read.result.pages.map(({ shard, ids }) => [shard, ids.length])).toEqual([
    [0, 3],
    [1, 5],
  ]);
  expect(read.sent).toEqual(['xlen', 'xlen', 'xread']);
  const mark = { flushId: 1, token: '00000000-0000-4000-8000-000000000001' };
  const stored = { batch: read.result, mark, saw: new Map() };
  expect((await sentBy((redis) => trim({ ...source, redis }, stored))).sent).toEqual(['trim-stream']);
  expect(await isAnyWaiting(source, [0, 1])).toBe(false);
});

it('no command reads or deletes more than a thousand entries, however long the streams are', async () => {
  await add(0, 10);
  await add(1, 1_200);
  const { result, sent } = await sentBy((redis) => readBatch({ ...source, redis }, [0, 1], 10_000, null));
  expect([result.size, result.behind]).toEqual([1_210, 0]);
  expect(sent).toEqual(['xlen', 'xlen', 'xread', 'xread', 'xrange']);
  const mark = { flushId: 1, token: '00000000-0000-4000-8000-000000000001' };
  const deleting = await sentBy((redis) => trim({ ...source, redis }, { batch: result, mark, saw: new Map() }));
  expect(deleting.sent).toEqual(['trim-stream', 'trim-stream', 'trim-stream']);
});

it('an event that arrives while the lengths are read stays for the next batch', async () => {
  await add(0, 2);
  await add(1, 4);
  const redis = Object.create(store.redis) as StreamSource['redis'];
  redis.command = async (name, args) => {
    if (name === 'xread') await add(0, 2);
    return store.redis.command(name, args);
  };
  const batch = await readBatch({ ...source, redis }, [0, 1], 100, null);
  expect(batch.pages.map(({ ids }) => ids.length)).toEqual([2, 4]);
  expect((await readBatch(source, [0, 1], 100, batch)).size).toBe(2);
});
