import fc from 'fast-check';
import { expect, it } from 'vitest';
import { MAX_TAGS, OTHER_TAG } from '../../../src/ledger/rollups/tag-sums.ts';
import type { UsageEvent } from '../../../src/ledger/usage-event.ts';
import { uuidv7 } from '../../../src/platform/ids.ts';
import { until } from '../../support/wait.ts';
import { newEvent, newEventOf } from '../support.ts';
import { ledger, readAll, session, storeFast, storeWithCare, useFlush } from '../writing/flush-support.ts';
import { compareSums } from './sums-oracle.ts';
import { fillMonth, TagModel } from './tag-model.ts';

useFlush();

const OCTOBER = Date.UTC(2026, 9, 31, 12);
const DAY_MS = 86_400_000;
const provider = uuidv7();
const accounts = [uuidv7(), uuidv7()];
/** How many tags of a month may still get sums: the others are taken before the test begins. */
const ROOM = 3;

const anyEvent = fc
  .record({
    account: fc.nat(1),
    tag: fc.constantFrom(null, ...'abcdefgh', OTHER_TAG, 'taken-7'),
    // Late and early ones, in two months.
    days: fc.nat(2),
    heldMicros: fc.constantFrom(0, 40, 1_000),
    latencyUs: fc.constantFrom(0, 1_500),
    freeTier: fc.boolean(),
    // Free messages are in no sum, so they take no place.
    path: fc.constantFrom('/x', '/x', '/mcp#ping'),
  })
  .map(({ account, days, ...given }) =>
    newEvent({
      ...given,
      accountId: accounts[account] as string,
      providerId: provider,
      admittedAtMs: OCTOBER + days * DAY_MS,
    }),
  );

/** Stores what waits in a transaction of the session, and undoes it, as a crash before the commit does. */
async function crash(): Promise<void> {
  const died = new Error('died');
  const work = session.transaction(async () => {
    await storeFast(await readAll());
    throw died;
  });
  await expect(work).rejects.toBe(died);
}

it('the first tags of a month have a sum each until there is no room, and all other tags share one sum', async () => {
  const act = fc.constantFrom('flush', 'careful flush', 'crash, then flush', 'flush, and again');
  const property = fc.asyncProperty(
    fc.array(fc.tuple(act, fc.array(anyEvent, { minLength: 1, maxLength: 12 })), { maxLength: 10 }),
    async (acts) => {
      await ledger.clear();
      const model = new TagModel();
      await fillMonth(ledger.sql, model, accounts[0] as string, '2026-10-01', MAX_TAGS - ROOM);
      await fillMonth(ledger.sql, model, accounts[0] as string, '2026-11-01', MAX_TAGS - ROOM);
      for (const [how, events] of acts) await flush(how, events, model);
      expect(await model.read(ledger.sql)).toEqual(model.sums());
      expect(await compareSums(ledger.sql)).toEqual([]);
    },
  );
  await fc.assert(property, { numRuns: 12 });
});

async function flush(how: string, events: readonly UsageEvent[], model: TagModel): Promise<void> {
  await ledger.store.command('flushall');
  await ledger.append(...events);
  if (how === 'crash, then flush') await crash();
  const batch = await readAll();
  await session.transaction(() => (how === 'careful flush' ? storeWithCare(batch) : storeFast(batch)));
  if (how === 'flush, and again') await session.transaction(() => storeWithCare(batch));
  // The pages of a batch are one after the other by shard; of an account they are in the order of its calls.
  for (const event of events) model.add(event);
}

it('one batch with more tags than there is room for gives a sum to the first ones, across all its pages', async () => {
  const accountId = accounts[0] as string;
  const model = new TagModel();
  const events = Array.from({ length: 2_300 }, (_, i) =>
    newEvent({ accountId, tag: `t${i % 1_150}`, admittedAtMs: OCTOBER, heldMicros: i }),
  );
  await ledger.append(...events);
  for (const event of events) model.add(event);
  await session.transaction(async () => storeFast(await readAll()));
  expect(await model.read(ledger.sql)).toEqual(model.sums());
  expect(Object.keys(model.sums())).toHaveLength(MAX_TAGS + 1);
});

it('writers that store simultaneously choose the tags of each account as a single writer would', async () => {
  const model = new TagModel();
  const { store } = ledger;
  const buyers = [newEventOf(0, store), newEventOf(1, store)].map(({ accountId }) => accountId);
  for (const accountId of buyers) await fillMonth(ledger.sql, model, accountId, '2026-10-01', MAX_TAGS - ROOM);
  const writers = [ledger.startWriter({ batchSize: 7 }), ledger.startWriter({ batchSize: 7 })];
  await until(() => writers.every((writer) => writer.stats().ownedShards === 1));
  for (let i = 0; i < 200; i++) {
    const event = newEvent({
      accountId: buyers[i % 2] as string,
      tag: `t${(i * 7) % 11}`,
      admittedAtMs: OCTOBER,
      heldMicros: i,
    });
    await ledger.append(event);
    model.add(event);
  }
  await ledger.drained();
  expect(await model.read(ledger.sql)).toEqual(model.sums());
});
