import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Mark } from '../../../src/ledger/history/judge.ts';
import { markText } from '../../../src/ledger/history/marks.ts';
import { ReadOver } from '../../../src/ledger/writing/read-over.ts';
import { type Batch, readBatch, type StreamSource } from '../../../src/ledger/writing/stream.ts';
import { trim } from '../../../src/ledger/writing/trim.ts';
import { Store } from '../../support/store.ts';

let store: Store;
let source: StreamSource;
let usage: string;
let mark: string;
beforeAll(async () => {
  store = await Store.open();
  source = { redis: store.redis, keys: store.keys, feeBasisPoints: 0, readOver: new ReadOver() };
  usage = store.keys.usage[0] as string;
  mark = store.keys.mark[0] as string;
});
afterAll(() => store.close());
beforeEach(() => store.command('flushall'));

const flush = (flushId: number): Mark => ({
  flushId,
  token: `00000000-0000-4000-8000-${String(flushId).padStart(12, '0')}`,
});
const add = (id: string, text = `event ${id}`) => store.command('xadd', usage, id, 'e', text);
const read = (count = 10_000, after: Batch | null = null) => readBatch(source, [0], count, after);
const idsThere = async () => ((await store.command('xrange', usage, '-', '+')) as [string][]).map(([id]) => id);
const trimmed = (batch: Batch, its = flush(1), saw: Mark | null = null) =>
  trim(source, { batch, mark: its, saw: new Map([[0, saw]]) });

async function addSome(count: number): Promise<void> {
  for (let seq = 1; seq <= count; seq++) await add(`5-${seq}`);
}

describe('trimming a batch that was stored', () => {
  it('deletes what was read, over any number of pages, and nothing that arrived later', async () => {
    await addSome(2_500);
    const batch = await read();
    expect(batch.pages.length).toBeGreaterThan(1);
    await add('5-2501');
    await trimmed(batch);
    expect(await idsThere()).toEqual(['5-2501']);
  });

  it('leaves older entries that were not in the batch', async () => {
    await addSome(6);
    const first = await read(3);
    await trimmed(await read(3, first));
    expect(await idsThere()).toEqual(['5-1', '5-2', '5-3']);
  });

  it('leaves new entries with the same ids, in a Redis that came back empty with its clock behind', async () => {
    await addSome(3);
    const batch = await read();
    await store.command('del', usage);
    await add('5-1', 'another call');
    await add('5-2', 'a second one');
    await add('6-1', 'and one that is younger');
    await trimmed(batch);
    expect(await idsThere()).toEqual(['5-1', '5-2', '6-1']);
  });

  it('leaves new entries with the ids of entries that Redis has lost', async () => {
    await addSome(3);
    const batch = await read();
    await store.command('del', usage);
    await add('5-1');
    await add('5-2', 'of a call that nobody has stored');
    await add('5-3', 'of another one');
    await trimmed(batch);
    expect(await idsThere()).toEqual(['5-1', '5-2', '5-3']);
  });

  it('leaves entries that reappeared between the entries that were read', async () => {
    await add('5-1');
    await add('5-9');
    const batch = await read();
    await store.command('del', usage);
    await add('5-1');
    await add('5-4', 'of a call that nobody has stored');
    await add('5-9', 'of another one');
    await trimmed(batch);
    expect(await idsThere()).toEqual(['5-1', '5-4', '5-9']);
  });

  it('deletes an entry whose id has the largest possible number', async () => {
    await add('5-1');
    await add('5-18446744073709551615');
    const batch = await read();
    await add('6-0');
    await trimmed(batch);
    expect(await idsThere()).toEqual(['6-0']);
  });

  it('deletes an entry that is not valid text', async () => {
    await store.redis.command('xadd', [usage, '5-1', 'e', Buffer.from([0xc3, 0x28, 0xff])]);
    const batch = await read();
    await trimmed(batch);
    expect(await idsThere()).toEqual([]);
  });

  it('may be repeated', async () => {
    await addSome(3);
    const batch = await read();
    await trimmed(batch);
    await add('7-1');
    await trimmed(batch);
    expect(await idsThere()).toEqual(['7-1']);
  });

  it('leaves the mark of its flush, and continues only if it finds the mark that the flush saw, or its own', async () => {
    await addSome(3);
    await trimmed(await read(1), flush(1));
    expect(await store.command('get', mark)).toBe(markText(flush(1)));
    await trimmed(await read(1), flush(2), flush(1));
    expect(await store.command('get', mark)).toBe(markText(flush(2)));
    for (const saw of [null, flush(1), { ...flush(2), token: flush(9).token }])
      await trimmed(await read(), flush(3), saw);
    expect(await idsThere()).toEqual(['5-3']);
    expect(await store.command('get', mark)).toBe(markText(flush(2)));
  });

  it('trims a Redis that has lost its mark only if the flush saw no mark', async () => {
    await addSome(2);
    await trimmed(await read(), flush(2), flush(1));
    expect(await idsThere()).toEqual(['5-1', '5-2']);
    await trimmed(await read(), flush(2));
    expect(await idsThere()).toEqual([]);
  });

  it('works when Redis is full, and leaves the mark of the flush there', async () => {
    await addSome(1_500);
    const batch = await read();
    await store.command('config', 'set', 'maxmemory', '1');
    try {
      await expect(add('6-1')).rejects.toThrow('OOM');
      await trimmed(batch);
    } finally {
      await store.command('config', 'set', 'maxmemory', '0');
    }
    expect(await idsThere()).toEqual([]);
    expect(await store.command('get', mark)).toBe(markText(flush(1)));
  });
});
