import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Admission } from '../../../src/admission/admission.ts';
import type { AdmitResult } from '../../../src/admission/commands.ts';
import { CANCELLED } from '../../../src/ledger/usage-event.ts';
import { Hydrator } from '../../../src/ledger/wallets/hydrate.ts';
import { uuidv7 } from '../../../src/platform/ids.ts';
import { COMPLETED, REFUNDED, request, type Scene } from '../../admission/calls.ts';
import { QUIET } from '../../support/store.ts';
import { TcpProxy } from '../../support/tcp-proxy.ts';
import { timed } from '../../support/timed.ts';
import { until } from '../../support/wait.ts';
import { expectedBooks, Ledger, newEvent } from '../support.ts';

let ledger: Ledger;
let proxy: TcpProxy;
let throughProxy: string;
let lines: string[];
const log = {
  ...QUIET,
  info: (_: object, message: string) => void lines.push(message),
  warn: (_: object, message: string) => void lines.push(message),
};

beforeAll(async () => {
  ledger = await Ledger.open();
  proxy = await TcpProxy.open(Number(new URL(ledger.databaseUrl).port));
  throughProxy = proxy.through(ledger.databaseUrl);
});
afterAll(async () => {
  await ledger.close();
  await proxy.close();
});
beforeEach(async () => {
  await ledger.clear();
  proxy.set('pass');
  lines = [];
});
afterEach(() => ledger.stopWriters());

describe('while Postgres is away', () => {
  it('events wait in the stream, and all are stored within two seconds after it is back', async () => {
    const events = Array.from({ length: 300 }, () => newEvent());
    const writer = ledger.startWriter({ databaseUrl: throughProxy, batchSize: 40, log });
    await ledger.append(...events.slice(0, 100));
    await ledger.drained();
    proxy.refuse();
    await ledger.append(...events.slice(100, 200));
    await until(() => !writer.stats().working);
    const failing = lines.length;
    // After this many failures the wait between attempts has reached its bound.
    const attempts = proxy.refused;
    await until(() => proxy.refused >= attempts + 6);
    await ledger.append(...events.slice(200));
    expect(await ledger.backlog()).toBe(200);

    const tookMs = await timed(() => {
      proxy.set('pass');
      return ledger.drained();
    });
    expect(tookMs).toBeLessThan(2_000);
    await until(() => writer.stats().working);
    expect(await ledger.readBooks()).toEqual(expectedBooks(events));
    // One log line per change of cause, however many attempts: at most two causes (the cut, then the refusals).
    expect(failing).toBeGreaterThan(0);
    expect(lines.filter((line) => line.startsWith('writer cannot work')).length).toBeLessThanOrEqual(2);
    expect(lines.filter((line) => line === 'writer works again')).toHaveLength(1);
  });

  it('connections cut in the middle of flushes lose no event and store no event twice', async () => {
    const events = Array.from({ length: 600 }, () => newEvent());
    await ledger.append(...events);
    const writer = ledger.startWriter({ databaseUrl: throughProxy, batchSize: 15, log });
    for (let cuts = 0; cuts < 8; cuts++) {
      const stored = writer.stats().storedCalls;
      await until(() => writer.stats().storedCalls > stored || writer.stats().storedCalls === 600);
      proxy.cut();
    }
    await ledger.drained();
    expect(await ledger.readBooks()).toEqual(expectedBooks(events));
  });

  it('stopping the writer takes no longer than its bound', async () => {
    proxy.refuse();
    const writer = ledger.startWriter({ databaseUrl: throughProxy });
    await until(() => !writer.stats().working);
    expect(await timed(() => writer.stop(500))).toBeLessThan(1_500);
  });
});

it('while Redis is away the writer waits, and it goes on when Redis is back', async () => {
  const writer = ledger.startWriter({ log });
  await until(() => writer.stats().ownedShards > 0);
  await ledger.store.server.stop();
  await until(() => !writer.stats().working);
  await ledger.store.server.restart();
  await ledger.store.reconnected();
  const event = newEvent();
  await ledger.append(event);
  await ledger.drained();
  expect(await ledger.readBooks()).toEqual(expectedBooks([event]));
  expect(lines.filter((line) => line.startsWith('writer cannot work')).length).toBeLessThanOrEqual(2);
});

const GONE = 'usage events that were about to be stored have left their stream: reading again';

/** The same Redis, to which something happens just after it has answered the writer's first reading. */
function whenRead(happens: (redis: Ledger['store']['redis'], entries: [id: string][]) => Promise<unknown>) {
  const { redis } = ledger.store;
  let hasHappened = false;
  const read = Object.create(redis) as typeof redis;
  read.script = (...args) => redis.script(...args);
  read.command = async (name, args) => {
    const reply = await redis.command(name, args);
    if (name === 'xread' && reply !== null && !hasHappened) {
      hasHappened = true;
      const [[, entries]] = reply as [[stream: string, entries: [id: string][]]];
      await happens(redis, entries);
    }
    return reply;
  };
  return read;
}

it('an event that another writer deletes after this one read it is not stored: a lost Postgres had stored it', async () => {
  const accountId = uuidv7();
  const [first, second] = [newEvent({ accountId }), newEvent({ accountId })];
  await ledger.append(first);
  await ledger.append(second);
  const stream = ledger.store.keys.usage[ledger.store.keys.shardOf(accountId)] as string;
  const redis = whenRead((its, [[id] = ['']]) => its.command('xdel', [stream, id]));
  ledger.startWriter({ redis, log });
  await ledger.drained();
  expect(lines).toContain(GONE);
  expect(await ledger.sql`SELECT usage_id AS id FROM calls`).toEqual([{ id: second.usageId }]);
});

it('events that Redis loses after the writer read them are not stored: their wallets will be loaded without them', async () => {
  const events = [newEvent(), newEvent()];
  await ledger.append(...events);
  const writer = ledger.startWriter({ redis: whenRead((redis) => redis.command('flushall', [])), log });
  await until(() => lines.includes(GONE));
  expect(await ledger.sql`SELECT usage_id FROM calls`).toEqual([]);
  // Afterwards the writer stores new events.
  await ledger.append(events[0] as (typeof events)[0]);
  await ledger.drained();
  await until(() => writer.stats().storedCalls === 1);
});

describe('Redis flushed while calls run', () => {
  const scenes: Scene[] = [];
  let hydrator: Hydrator;
  let admission: Admission;

  beforeEach(async () => {
    const { redis, batches, keys } = ledger.store;
    hydrator = new Hydrator({ databaseUrl: ledger.databaseUrl, sql: ledger.sql, redis, keys, log: QUIET });
    const instance = 'gateway-1';
    admission = new Admission({ batches, keys, instance, loader: hydrator, cancelSettlement: CANCELLED, log: QUIET });
    admission.start();
    scenes.length = 0;
    for (let i = 0; i < 6; i++) {
      const accountId = await ledger.account(1_000_000);
      const keyId = `acf_${String(i).padStart(22, '0')}`;
      await ledger.sql`
        INSERT INTO api_keys (key_id, account_id, role, secret_hash, rate_limit)
        VALUES (${keyId}, ${accountId}, 'buyer', ${'0'.repeat(64)}, 300)`;
      scenes.push({ accountId, keyId, serviceId: uuidv7() });
    }
  });
  afterEach(async () => {
    await admission.drain(1_000);
    hydrator.close();
  });

  const call = (scene: Scene, refund: boolean): Promise<AdmitResult['outcome']> =>
    new Promise((resolve) => {
      const one = request(scene, 700, 3);
      const onAdmission = (result: AdmitResult): void => {
        if (result.outcome === 'admitted') {
          admission.settle(one.usageId, one.buyer, refund, refund ? REFUNDED : COMPLETED, result.owner);
        }
        resolve(result.outcome);
      };
      admission.admit(one, { onAdmission });
    });

  it('the next calls are served, and in the end wallets and Postgres agree to the micro-dollar', async () => {
    const writer = ledger.startWriter({ batchSize: 25, log });
    let calls = 0;
    for (let round = 0; round < 4; round++) {
      const outcomes = await Promise.all(
        scenes.flatMap((scene) => Array.from({ length: 40 }, (_, i) => call(scene, i % 3 === 0))),
      );
      calls += outcomes.filter((outcome) => outcome === 'admitted').length;
      // At this moment the writer is somewhere between reading and deleting.
      await until(() => writer.stats().storedCalls > round * 20);
      await ledger.store.command('flushall');
      const next = await Promise.all(scenes.map((scene) => call(scene, false)));
      expect(next).toEqual(scenes.map(() => 'admitted'));
    }
    expect(calls).toBe(4 * 6 * 40);
    expect(await admission.drain(5_000)).toBe(0);
    await ledger.drained();
    await writer.stop();
    for (const { accountId } of scenes) {
      const { balance, ...rest } = await ledger.store.hash(ledger.store.walletName(accountId));
      expect(Number(balance)).toBe(await ledger.balance(accountId));
      const rows = await ledger.sql<{ key: string; used: number }[]>`
        SELECT 'free:' || service_id AS key, used FROM free_usage WHERE account_id = ${accountId}`;
      const used = Object.entries(rest).filter(([field, n]) => field.startsWith('free:') && n !== '0');
      expect(Object.fromEntries(used)).toEqual(Object.fromEntries(rows.map((row) => [row.key, String(row.used)])));
    }
    await ledger.readBooks();
    const { reports } = await ledger.reconciler().run('test');
    expect(reports.flatMap(({ drifts }) => drifts)).toEqual([]);
  });
});
