import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { WRITER_LOCK } from '../../../src/ledger/locks.ts';
import { uuidv7 } from '../../../src/platform/ids.ts';
import { RedisClient } from '../../../src/platform/redis.ts';
import { RedisKeys } from '../../../src/platform/redis-keys.ts';
import { buildSources } from '../../support/build.ts';
import { QUIET } from '../../support/store.ts';
import { TcpProxy } from '../../support/tcp-proxy.ts';
import { until } from '../../support/wait.ts';
import { expectedBooks, holdOf, Ledger, newEvent, tailOf } from '../support.ts';
import { kill, WriterProcesses } from './writer-processes.ts';

const SHARDS = 16;
const keys = new RedisKeys(SHARDS);

let ledger: Ledger;
let processes: WriterProcesses;
let proxy: TcpProxy;
let cutOff: RedisClient;
beforeAll(async () => {
  const build = buildSources();
  ledger = await Ledger.open();
  await ledger.sql`UPDATE installation SET redis_shards = ${SHARDS}`;
  processes = new WriterProcesses(ledger, build);
});
afterAll(() => ledger.close());
beforeEach(async () => {
  await ledger.clear();
  proxy = await TcpProxy.open(Number(new URL(ledger.store.server.url).port));
  const url = proxy.through(ledger.store.server.url);
  cutOff = new RedisClient({ url, name: 'test', commandTimeoutMs: 5_000 }, QUIET);
  await cutOff.connect();
});
afterEach(async () => {
  await processes.killAll();
  await ledger.stopWriters();
  cutOff.destroy();
  await proxy.close();
});

const accounts = Array.from({ length: 64 }, () => uuidv7());

async function appendEvents(count: number) {
  const events = Array.from({ length: count }, (_, i) =>
    newEvent({ accountId: accounts[i % accounts.length] as string, heldMicros: 1_000 + i }),
  );
  await Promise.all(
    events.map((event) => {
      const stream = keys.usage[keys.shardOf(event.accountId)] as string;
      const text = [event.usageId, holdOf(event), tailOf(event)].join('\t');
      return ledger.store.command('xadd', stream, '*', 'e1', text);
    }),
  );
  return events;
}

async function drained(): Promise<void> {
  await until(async () => {
    const lengths = await Promise.all(keys.usage.map((stream) => ledger.store.command('xlen', stream)));
    return lengths.every((length) => length === 0);
  });
}

/** How many shards each writer has that has any, fewest first. */
async function shares(): Promise<number[]> {
  const rows = await ledger.sql<{ shards: number }[]>`
    SELECT count(*)::int AS shards FROM pg_locks JOIN pg_database d ON d.oid = database
    WHERE locktype = 'advisory' AND granted AND classid::int = ${WRITER_LOCK} AND d.datname = current_database()
    GROUP BY pid ORDER BY 1`;
  return rows.map(({ shards }) => shards);
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);
const areShared = (...expected: number[]) => until(async () => (await shares()).join() === expected.join());

it('writers share shards evenly and take those of a killed, suspended or cut-off one in seconds; each call is stored once', async () => {
  const [killed, suspended] = [0, 1].map(() => processes.start({ shards: SHARDS, batchSize: 20 }));
  if (killed === undefined || suspended === undefined) throw new Error('no processes');
  const healthy = ledger.startWriter({ keys, batchSize: 20 });
  ledger.startWriter({ keys, batchSize: 20, redis: cutOff, redisUrl: null });
  await areShared(4, 4, 4, 4);
  // While it has nothing to store: a writer that is suspended within a transaction is found out by another timeout.
  suspended.kill('SIGSTOP');
  const events = await appendEvents(400);
  const more = appendEvents(1_600);
  await until(() => healthy.stats().storedCalls > 40);
  proxy.refuse();
  await kill(killed);
  events.push(...(await more), ...(await appendEvents(200)));
  await areShared(SHARDS);
  // It knows a moment later than Postgres.
  await until(() => healthy.stats().ownedShards === SHARDS);
  await drained();
  // Those that come back take their share again, and nothing that they had begun is stored a second time.
  suspended.kill('SIGCONT');
  proxy.set('pass');
  // Who of the two that come back gets 4 to 6 is a matter of chance; nobody keeps more than a third of 16, rounded up.
  await until(async () => {
    const owned = await shares();
    return owned.length === 3 && sum(owned) === SHARDS && Math.max(...owned) <= 6;
  }, 25_000);
  events.push(...(await appendEvents(400)));
  await drained();
  expect(await ledger.readBooks()).toEqual(expectedBooks(events));
});

it('a writer that continues after another has taken its shards neither stores nor deletes anything in them', async () => {
  let [asleep, wake] = [false, () => {}];
  const woken = new Promise<void>((resolve) => (wake = resolve));
  const sleeper = ledger.startWriter({
    keys,
    batchSize: 20,
    // It has committed a batch and not deleted it, and it has read the next one.
    afterCommit: () => {
      if (asleep) return;
      asleep = true;
      return woken;
    },
  });
  await until(() => sleeper.stats().ownedShards === SHARDS);
  const events = await appendEvents(200);
  await until(() => asleep);
  const stored = sleeper.stats().storedCalls;
  // As Postgres does by `idle_session_timeout`.
  await ledger.sql`
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE application_name = 'tollgate-writer' AND datname = current_database()`;
  const other = ledger.startWriter({ keys, batchSize: 20 });
  await drained();
  expect(stored + other.stats().storedCalls).toBe(events.length);
  const more = appendEvents(200);
  wake();
  events.push(...(await more));
  await areShared(8, 8);
  events.push(...(await appendEvents(200)));
  await drained();
  expect(await ledger.readBooks()).toEqual(expectedBooks(events));
  expect(sleeper.stats().storedCalls + other.stats().storedCalls).toBe(events.length);
});
