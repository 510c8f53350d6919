import { afterAll, beforeAll, expect, it } from 'vitest';
import { ReadOver } from '../../../src/ledger/writing/read-over.ts';
import { isAnyWaiting, type StreamSource } from '../../../src/ledger/writing/stream.ts';
import { Store } from '../../support/store.ts';

let store: Store;
let source: StreamSource;
beforeAll(async () => {
  store = await Store.open();
  source = { redis: store.redis, keys: store.keys, feeBasisPoints: 0, readOver: new ReadOver() };
});
afterAll(() => store.close());

it('a writer that has no shards, because another has them all, finds nothing waiting', async () => {
  await store.command('xadd', store.keys.usage[0] as string, '5-1', 'e', 'event');
  expect(await isAnyWaiting(source, [])).toBe(false);
  expect(await isAnyWaiting(source, [0])).toBe(true);
});
