import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import * as ledgerScripts from '../../src/ledger/scripts.ts';
import { ForeignRedis, INSTALLATION_KEY } from '../../src/platform/installation.ts';
import { defineScript, isRedisUnavailable, RedisClient } from '../../src/platform/redis.ts';
import { ScriptConnection } from '../../src/platform/script-connection.ts';
import { TripEncoder } from '../../src/platform/trip-encoder.ts';
import { startTestRedis, type TestRedis } from '../support/stores.ts';
import { until } from '../support/wait.ts';

const OURS = '11111111-1111-4111-8111-111111111111';
const THEIRS = '22222222-2222-4222-8222-222222222222';
const ECHO = "return table.concat(KEYS, ',') .. '|' .. table.concat(ARGV, ',')";

let server: TestRedis;
/** The client of an operator: it claims nothing. */
let operator: RedisClient;
let client: RedisClient;
let warnings: { readonly message: string; readonly err?: unknown }[];

const log = {
  warn: (fields: object, message: string): void => void warnings.push({ message, ...fields }),
};
const clientOf = (): RedisClient => new RedisClient({ url: server.url, name: 'test', commandTimeoutMs: 5_000 }, log);

beforeEach(async () => {
  warnings = [];
  server = await startTestRedis();
  [operator, client] = [clientOf(), clientOf()];
  await Promise.all([operator.connect(), client.connect()]);
});
afterEach(async () => {
  operator.destroy();
  client.destroy();
  await server.stop();
});

const owner = (): Promise<unknown> => operator.command('get', [INSTALLATION_KEY]);
/** Redis is flushed, and another installation claims it first. */
async function loseTo(installation: string): Promise<void> {
  await operator.command('eval', [
    `redis.call('FLUSHALL') redis.call('SET', KEYS[1], ARGV[1])`,
    '1',
    INSTALLATION_KEY,
    installation,
  ]);
}

describe('a client that has claimed its Redis', () => {
  it('is the first to claim its Redis, and later clients are told the owner', async () => {
    await client.claim(OURS);
    await client.claim(OURS);
    const other = clientOf();
    await other.connect();
    await expect(other.claim(THEIRS)).rejects.toThrow(ForeignRedis);
    await expect(other.claim(THEIRS)).rejects.toThrow(
      new RegExp(`holds the data of installation ${OURS}, but our database belongs to installation ${THEIRS}`),
    );
    expect(await owner()).toBe(OURS);
    other.destroy();
  });

  it.each(Object.entries(ledgerScripts))('does not run %s in a Redis that is no longer its own', async (_, script) => {
    await client.claim(OURS);
    await loseTo(THEIRS);
    // More keys and arguments than any script reads: the test shows that the guard stops them all.
    const error = await client.script(script, 4, Array(12).fill('1')).catch((failure: unknown) => failure);
    expect(error).toBeInstanceOf(ForeignRedis);
    expect(isRedisUnavailable(error)).toBe(true);
    expect(await operator.command('keys', ['*'])).toEqual([INSTALLATION_KEY]);
  });

  it('passes keys and arguments to scripts unchanged, with or without a shebang, even after the scripts were flushed', async () => {
    await client.claim(OURS);
    for (const source of [ECHO, `#!lua flags=allow-oom\n${ECHO}`]) {
      const script = defineScript('echo', source);
      expect(await client.script(script, 2, ['k1', 'k2', 'a1', 'a2'])).toBe('k1,k2|a1,a2');
      expect(await client.script(script, 0, [])).toBe('|');
      await operator.command('script', ['flush']);
      expect(await client.script(script, 0, ['a'])).toBe('|a');
    }
  });

  it('is not ready while Redis belongs to another installation, logs that once, and recovers when Redis is free again', async () => {
    await client.claim(OURS);
    const told: Error[] = [];
    client.onForeign((error) => told.push(error));
    let readied = 0;
    client.onReady(() => readied++);
    await loseTo(THEIRS);
    // Nobody sends a command: the client checks by itself.
    await until(() => !client.ready);
    await expect(client.command('ping', [])).rejects.toThrow('redis is not connected');
    const tries = async (): Promise<number> =>
      Number(/total_connections_received:(\d+)/.exec(String(await operator.command('info', ['stats'])))?.[1]);
    const before = await tries();
    await until(async () => (await tries()) >= before + 4);
    expect(client.ready).toBe(false);
    // Told at each attempt, because other connections may have been made in between and must compare again.
    expect(told.length).toBeGreaterThan(1);
    expect(warnings).toMatchObject([{ message: 'redis connection lost or refused', err: expect.any(ForeignRedis) }]);
    await operator.command('flushall', []);
    await until(() => client.ready);
    expect([await owner(), readied, warnings.at(-1)?.message]).toEqual([OURS, 1, 'redis connection is back']);
  });
});

describe('a client that reconnects', () => {
  it('tells its listeners if it finds the data of another installation', async () => {
    await client.claim(OURS);
    const told: Error[] = [];
    client.onForeign((error) => told.push(error));
    await loseTo(THEIRS);
    await operator.command('client', ['kill', 'type', 'normal', 'skipme', 'yes']);
    await until(() => told.length > 0);
    expect(told[0]).toBeInstanceOf(ForeignRedis);
    expect(client.ready).toBe(false);
  });

  it('is ready in a Redis that has our id, even if that Redis refuses writes', async () => {
    await client.claim(OURS);
    await operator.command('config', ['set', 'min-replicas-to-write', '1']);
    await operator.command('client', ['kill', 'type', 'normal', 'skipme', 'yes']);
    await until(() => !client.ready);
    await until(() => client.ready);
    expect(await client.command('get', [INSTALLATION_KEY])).toBe(OURS);
    await expect(client.command('set', ['a', 'b'])).rejects.toThrow('NOREPLICAS');
  });

  it('tries four times a second, not twenty, while it cannot find out who owns the data', async () => {
    await client.claim(OURS);
    await operator.command('flushall', []);
    await operator.command('config', ['set', 'min-replicas-to-write', '1']);
    const connections = async (): Promise<number> =>
      Number(/total_connections_received:(\d+)/.exec(String(await operator.command('info', ['stats'])))?.[1]);
    await operator.command('client', ['kill', 'type', 'normal', 'skipme', 'yes']);
    // The attempts are 50, 100, 150, 200, 250, 250 … ms apart; if the pause did not grow, 50 ms each.
    const [startedAt, before] = [performance.now(), await connections()];
    await until(async () => (await connections()) >= before + 8);
    expect(performance.now() - startedAt).toBeGreaterThan(1_000);
  });
});

describe('a connection for batches', () => {
  const RUNS = defineScript(
    'runs',
    "#!lua flags=allow-oom\nif #KEYS > 0 then redis.call('INCR', KEYS[1]) end return 'done'",
  );
  const connectionOf = (installation: string): ScriptConnection =>
    new ScriptConnection(
      { url: server.url, name: 'batches', script: RUNS, installation, commandTimeoutMs: 5_000 },
      log,
    );
  const run = (connection: ScriptConnection): Promise<string> =>
    new Promise((resolve, reject) => {
      const trip = new TripEncoder();
      trip.key('runs');
      connection.send(trip, {
        onReply: (bytes, start, end) => resolve(bytes.toString('latin1', start, end)),
        onLost: reject,
      });
    });

  it('refuses a Redis of another installation, and claims a Redis without an owner', async () => {
    const first = connectionOf(THEIRS);
    await first.connect();
    expect(await owner()).toBe(THEIRS);
    await expect(connectionOf(OURS).connect()).rejects.toThrow(ForeignRedis);
    expect(await run(first)).toBe('done');
    await first.close();
  });

  it('compares the owner again after a reconnection, and carries out nothing until Redis is ours', async () => {
    const connection = connectionOf(OURS);
    await connection.connect();
    await loseTo(THEIRS);
    connection.reconnect(new Error('look again'));
    await expect(run(connection)).rejects.toThrow('redis is not connected');
    await until(() => warnings.some(({ err }) => err instanceof ForeignRedis));
    expect(connection.ready).toBe(false);
    expect(await operator.command('keys', ['*'])).toEqual([INSTALLATION_KEY]);
    await operator.command('flushall', []);
    await until(() => connection.ready);
    expect([await run(connection), await owner()]).toEqual(['done', OURS]);
    await connection.close();
  });

  it('can be opened, like a client, to a Redis that is full', async () => {
    await client.claim(OURS);
    await operator.command('config', ['set', 'maxmemory', '1']);
    const connection = connectionOf(OURS);
    await connection.connect();
    await connection.close();
    const late = clientOf();
    await late.connect();
    await late.claim(OURS);
    late.destroy();
  });
});
