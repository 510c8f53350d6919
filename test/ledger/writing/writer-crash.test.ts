import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { uuidv7 } from '../../../src/platform/ids.ts';
import { buildSources } from '../../support/build.ts';
import { SHARDS } from '../../support/store.ts';
import { until } from '../../support/wait.ts';
import { expectedBooks, FEE_BASIS_POINTS, Ledger, newEvent } from '../support.ts';

let ledger: Ledger;
let build: string;
const children: ChildProcess[] = [];
beforeAll(async () => {
  build = buildSources();
  ledger = await Ledger.open();
});
afterAll(() => ledger.close());
beforeEach(() => ledger.clear());
afterEach(async () => {
  await Promise.all(children.splice(0).map(kill));
});

function startWriterProcess(options: { batchSize?: number; dieAfterCommit?: number } = {}): ChildProcess {
  const settings = JSON.stringify({
    databaseUrl: ledger.databaseUrl,
    redisUrl: ledger.store.server.url,
    shards: SHARDS,
    batchSize: 50,
    feeBasisPoints: FEE_BASIS_POINTS,
    ...options,
  });
  const file = path.resolve('test/ledger/fixtures/writer-process.mjs');
  const child = spawn(process.execPath, [file, build, settings], { stdio: ['pipe', 'ignore', 'inherit'] });
  children.push(child);
  return child;
}

const ended = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null;

async function kill(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  await until(() => ended(child));
}

const accounts = Array.from({ length: 5 }, () => uuidv7());
const someEvents = (n: number) =>
  Array.from({ length: n }, (_, i) =>
    newEvent({
      accountId: accounts[i % accounts.length] as string,
      freeTier: i % 4 === 0,
      heldMicros: i % 4 === 0 ? 0 : 1_000 + i,
      outcome: i % 7 === 0 ? 'refunded:upstream_5xx' : 'completed',
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
    const first = startWriterProcess({ dieAfterCommit });
    await until(() => ended(first));
    // The writer died where it should: the events are stored, and still in the stream.
    const stored = await storedCalls();
    expect(stored).toBe(dieAfterCommit * 50);
    expect(await ledger.backlog()).toBeGreaterThan(200 - stored);

    startWriterProcess();
    await ledger.drained();
    expect(await ledger.readBooks()).toEqual(expectedBooks(events));
  },
);

it('when writers are killed at any moment, again and again, while calls come in, each call is stored once', async () => {
  const events = someEvents(3_000);
  let appended = 0;
  const appending = (async () => {
    for (; appended < events.length; appended += 50) await ledger.append(...events.slice(appended, appended + 50));
  })();
  for (let round = 0; round < 6; round++) {
    const writer = startWriterProcess({ batchSize: 20 });
    const before = await storedCalls();
    await until(async () => {
      const stored = await storedCalls();
      return stored > before + round * 7 || stored === events.length;
    });
    await kill(writer);
  }
  await appending;
  startWriterProcess();
  await ledger.drained();
  expect(await ledger.readBooks()).toEqual(expectedBooks(events));
}, 60_000);

it('when a writer is killed, a writer that waited takes its shards', async () => {
  const first = startWriterProcess();
  await ledger.append(...someEvents(10));
  await ledger.drained();
  const second = ledger.startWriter();
  const events = someEvents(10);
  await until(() => second.stats().working && second.stats().ownedShards === 0);
  await kill(first);
  await ledger.append(...events);
  await ledger.drained(5_000);
  await until(() => second.stats().storedCalls === 10);
  expect(await storedCalls()).toBe(20);
});
