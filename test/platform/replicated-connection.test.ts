import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { defineScript, RedisClient, RedisNotSent } from '../../src/platform/redis.ts';
import { warnOfMissingReplicas } from '../../src/platform/replicas.ts';
import {
  ReplicaDemand,
  TooFewReplicas,
  type TripConnection,
  tripConnection,
} from '../../src/platform/replicated-connection.ts';
import { TripEncoder } from '../../src/platform/trip-encoder.ts';
import { ask, startTestReplica, type TestReplica } from '../support/replica.ts';
import { QUIET } from '../support/store.ts';
import { startTestRedis, type TestRedis } from '../support/stores.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/wait.ts';

/** Writes a key, and replies its value. A connection opens with a run without keys. */
const WRITE = defineScript(
  'write',
  `if #KEYS == 0 then return '' end
   redis.call('SET', KEYS[1], ARGV[1])
   return ARGV[1]`,
);
/** Nothing here lasts this long. So a stall of a busy machine is not taken for a lost reply, or for a missing replica. */
const COMMAND_TIMEOUT_MS = 20_000;
/** For trips that no replica gets. Half of it is waited for replicas. */
const SHORT_MS = 200;

let master: TestRedis;
let replica: TestReplica;
let connection: TripConnection;
let demand: ReplicaDemand;
/** Waits for replicas only briefly. */
let hasty: TripConnection;
let hastyDemand: ReplicaDemand;

const connectTo = async (url: string, waitFor: ReplicaDemand | null): Promise<TripConnection> => {
  const options = { url, name: 'test', script: WRITE, commandTimeoutMs: COMMAND_TIMEOUT_MS };
  const made = tripConnection(options, QUIET, waitFor);
  await made.connect();
  return made;
};

beforeEach(async () => {
  master = await startTestRedis();
  replica = await startTestReplica(master);
  demand = new ReplicaDemand(1, COMMAND_TIMEOUT_MS);
  connection = await connectTo(master.url, demand);
  hastyDemand = new ReplicaDemand(1, SHORT_MS);
  hasty = await connectTo(master.url, hastyDemand);
});
afterEach(async () => {
  await connection.close();
  await hasty.close();
  await replica.close();
  await master.stop();
});

function send(key: string, value: string, through = connection): Promise<string> {
  const trip = new TripEncoder();
  trip.key(key);
  trip.arg(value);
  return new Promise((resolve, reject) => {
    through.send(trip, {
      onReply: (bytes, start, end) => resolve(bytes.toString('latin1', start, end)),
      onLost: reject,
    });
  });
}
const settle = (trips: readonly Promise<string>[]): Promise<unknown[]> =>
  Promise.all(trips.map((trip) => trip.catch((error: unknown) => error)));
const has = async (redis: TestRedis, key: string): Promise<boolean> =>
  !(await ask(redis, `GET ${key}`)).startsWith('$-1');

describe('a trip', () => {
  it('counts only when a replica has it if replicas are required; otherwise it counts at once', async () => {
    replica.line.delayMs = 150;
    expect(await send('waited', 'yes')).toBe('yes');
    expect(await has(replica.server, 'waited')).toBe(true);
    const plain = await connectTo(master.url, null);
    replica.server.pause();
    expect(await send('plain', 'yes', plain)).toBe('yes');
    replica.server.resume();
    await plain.close();
  });

  it('has an unknown outcome if too few replicas confirm it in time, although Redis has carried it out', async () => {
    replica.server.pause();
    await expect(send('unknown', 'yes', hasty)).rejects.toBeInstanceOf(TooFewReplicas);
    expect(await has(master, 'unknown')).toBe(true);
    let missed = 1;
    expect(hastyDemand.missed).toBe(missed);
    replica.server.resume();
    await replica.caughtUp();
    // On a busy machine the replica may be late again.
    await until(async () => {
      const [outcome] = await settle([send('known', 'yes', hasty)]);
      if (outcome === 'yes') return true;
      expect(outcome).toBeInstanceOf(TooFewReplicas);
      missed++;
      return false;
    });
    expect(hastyDemand.missed).toBe(missed);
  });

  it('is counted as missed if Redis refuses it because there are too few replicas', async () => {
    await ask(master, 'CONFIG SET min-replicas-to-write 2');
    await expect(send('refused', 'yes')).rejects.toThrow('NOREPLICAS');
    expect(await has(master, 'refused')).toBe(false);
    expect(demand.missed).toBe(1);
  });

  it('shares the next wait if it arrives during a wait, and is not sent if that wait fails', async () => {
    const first = [send('a', '1'), send('b', '2')];
    await new Promise(setImmediate);
    const second = [send('c', '3'), send('d', '4')];
    expect(await settle([...first, ...second])).toEqual(['1', '2', '3', '4']);
    // One WAIT for each two.
    expect(await ask(master, 'INFO commandstats')).toMatch(/cmdstat_wait:calls=2,/);

    replica.server.pause();
    const lost = send('e', '5', hasty);
    await new Promise(setImmediate);
    const held = send('f', '6', hasty);
    const [unknown, refused] = await settle([lost, held]);
    expect(unknown).toBeInstanceOf(TooFewReplicas);
    expect(refused).toBeInstanceOf(RedisNotSent);
    expect(await has(master, 'f')).toBe(false);
    replica.server.resume();
  });

  it('waits for replicas even if Redis had forgotten the script', async () => {
    await ask(master, 'SCRIPT FLUSH');
    replica.line.delayMs = 100;
    expect(await send('again', 'yes')).toBe('yes');
    expect(await has(replica.server, 'again')).toBe(true);
  });

  it('has an unknown outcome if it was sent again and its connection is then closed', async () => {
    await ask(master, 'SCRIPT FLUSH');
    const trip = settle([send('again', 'yes')]);
    // It has been sent, and no reply has been read.
    await new Promise(process.nextTick);
    await connection.close();
    const [unknown] = await trip;
    expect(unknown).toBeInstanceOf(Error);
    expect(unknown).not.toBeInstanceOf(RedisNotSent);
    expect(await has(master, 'again')).toBe(true);
  });

  it('has an unknown outcome if its connection breaks during the wait, and buffered trips are refused', async () => {
    const proxy = await TcpProxy.open(master.port);
    const through = await connectTo(proxy.through(master.url), demand);
    replica.server.pause();
    const waits = send('waits', 'yes', through);
    await until(() => has(master, 'waits'));
    const held = send('held', 'yes', through);
    proxy.refuse();
    const [unknown, refused] = await settle([waits, held]);
    expect(unknown).not.toBeInstanceOf(RedisNotSent);
    expect(refused).toBeInstanceOf(RedisNotSent);
    expect(await has(master, 'held')).toBe(false);
    replica.server.resume();
    await replica.caughtUp();
    proxy.set('pass');
    await until(() => through.ready);
    expect(await send('later', 'yes', through)).toBe('yes');
    await through.close();
    await proxy.close();
  });

  it('has an unknown outcome if its master becomes a replica during the wait', async () => {
    replica.server.pause();
    const waits = settle([send('waits', 'yes')]);
    await until(() => has(master, 'waits'));
    await ask(master, 'REPLICAOF 127.0.0.1 1');
    const [unknown] = await waits;
    expect(unknown).toBeInstanceOf(Error);
    expect(unknown).not.toBeInstanceOf(RedisNotSent);
    replica.server.resume();
  });
});

describe('a start', () => {
  const check = async (wanted: number, user = ''): Promise<string[]> => {
    const warnings: string[] = [];
    const client = new RedisClient(
      { url: master.url.replace('//', `//${user}`), name: 'test', commandTimeoutMs: COMMAND_TIMEOUT_MS },
      QUIET,
    );
    await client.connect();
    try {
      await warnOfMissingReplicas([{ address: 'node:1', store: client }], wanted, {
        warn: (_, message) => warnings.push(message),
      });
    } finally {
      client.destroy();
    }
    return warnings;
  };

  it('warns of each master that has fewer replicas than a trip requires', async () => {
    expect(await check(1)).toEqual([]);
    expect(await check(2)).toEqual([
      expect.stringMatching(/^redis node:1 has 1 replicas, but REDIS_WAIT_REPLICAS is 2/),
    ]);
  });

  it('is refused for a user who may not WAIT', async () => {
    await ask(master, 'ACL SETUSER gateway on >secret ~* &* +@all -wait');
    await expect(check(1, 'gateway:secret@')).rejects.toThrow(/redis node:1 refuses WAIT.*NOPERM/);
  });
});
