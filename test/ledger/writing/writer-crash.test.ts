import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { MAX_TAGS } from '../../../src/ledger/rollups/tag-sums.ts';
import { uuidv7 } from '../../../src/platform/ids.ts';
import { buildSources } from '../../support/build.ts';
import { until } from '../../support/wait.ts';
import { fillMonth, TagModel } from '../rollups/tag-model.ts';
import { expectedBooks, Ledger, newEvent } from '../support.ts';
import { ended, kill, WriterProcesses } from './writer-processes.ts';

let ledger: Ledger;
let processes: WriterProcesses;
beforeAll(async () => {
  const build = buildSources();
  ledger = await Ledger.open();
  processes = new WriterProcesses(ledger, build);
});
afterAll(() => ledger.close());
beforeEach(() => ledger.clear());
afterEach(() => processes.killAll());

const accounts = Array.from({ length: 5 }, () => uuidv7());
const someEvents = (n: number) =>
  Array.from({ length: n }, (_, i) =>
    newEvent({
      accountId: accounts[i % accounts.length] as string,
      freeTier: i % 4 === 0,
      heldMicros: i % 4 === 0 ? 0 : 1_000 + i,
      outcome: i % 7 === 0 ? 'refunded:upstream_5xx' : 'completed',
      tag: i % 3 === 0 ? `tag-${Math.floor(i / 40)}` : null,
      // On one day, whatever the time is.
      admittedAtMs: Date.UTC(2026, 10, 20),
    }),
  );

const storedCalls = async (): Promise<number> => {
  const [row] = await ledger.sql<{ n: number }[]>`SELECT count(*)::int AS n FROM calls`;
  return row?.n as number;
};

it.each([1, 2, 3])(
  'a writer killed between commit %i and its deletion stores no row twice, and balances are right',
  async (dieAfterCommit) => {
    const events = someEvents(200);
    await ledger.append(...events);
    const first = processes.start({ dieAfterCommit });
    await until(() => ended(first));
    // The writer died where it should: the events are stored, and still in the stream.
    const stored = await storedCalls();
    expect(stored).toBe(dieAfterCommit * 50);
    expect(await ledger.backlog()).toBeGreaterThan(200 - stored);

    processes.start();
    await ledger.drained();
    expect(await ledger.readBooks()).toEqual(expectedBooks(events));
  },
);

it('however often writers are killed while calls arrive, each call is stored once, and the same tags have sums', async () => {
  const events = someEvents(3_000);
  const tags = new TagModel();
  for (const id of accounts) await fillMonth(ledger.sql, tags, id, '2026-11-01', MAX_TAGS - 5);
  for (const event of events) tags.add(event);
  let appended = 0;
  const appending = (async () => {
    for (; appended < events.length; appended += 50) await ledger.append(...events.slice(appended, appended + 50));
  })();
  for (let round = 0; round < 6; round++) {
    const writer = processes.start({ batchSize: 20 });
    const before = await storedCalls();
    await until(async () => {
      const stored = await storedCalls();
      return stored > before + round * 7 || stored === events.length;
    });
    await kill(writer);
  }
  await appending;
  processes.start();
  await ledger.drained();
  expect(await ledger.readBooks()).toEqual(expectedBooks(events));
  expect(await tags.read(ledger.sql)).toEqual(tags.sums());
});

it('when a writer is killed, the other writer takes its shards', async () => {
  const first = processes.start();
  const second = ledger.startWriter();
  await until(() => second.stats().ownedShards === 1);
  const events = someEvents(20);
  await ledger.append(...events.slice(0, 10));
  await ledger.drained();
  const before = second.stats().storedCalls;
  await kill(first);
  await ledger.append(...events.slice(10));
  await ledger.drained(5_000);
  await until(() => second.stats().storedCalls === before + 10);
  expect(await ledger.readBooks()).toEqual(expectedBooks(events));
});
