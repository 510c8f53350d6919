import { execFileSync } from 'node:child_process';
import { connect, createServer } from 'node:net';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { defineScript, RedisNotSent } from '../../src/platform/redis.ts';
import { ScriptConnection, type TripMeter } from '../../src/platform/script-connection.ts';
import { TripEncoder } from '../../src/platform/trip-encoder.ts';
import { startTestRedis, type TestRedis } from '../support/stores.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/wait.ts';

/** Replies its keys and arguments, joined so that they can be split again. Writes a key, so that a replica refuses it. */
const ECHO = defineScript(
  'echo',
  `redis.call('INCR', 'runs')
   local parts = {}
   for _, list in ipairs({ KEYS, ARGV }) do
     for _, text in ipairs(list) do parts[#parts + 1] = #text .. ':' .. text end
     parts[#parts + 1] = '|'
   end
   return table.concat(parts)`,
);
/** Long: a stall of a busy machine is no lost reply. */
const PATIENT_MS = 5_000;
/** Of a connection whose Redis falls silent. It notices that up to an eighth of its former limit later. */
const TIMEOUT_MS = 300;

let server: TestRedis;
let proxy: TcpProxy;
let connection: ScriptConnection;
let warnings: string[];
/** The limit of every connection, which reads it each time. */
let commandTimeoutMs: number;

const connectTo = (url: string, meter?: TripMeter): ScriptConnection => {
  const options = {
    url,
    name: 'test',
    script: ECHO,
    meter,
    get commandTimeoutMs() {
      return commandTimeoutMs;
    },
  };
  return new ScriptConnection(options, { warn: (_, message) => warnings.push(message) });
};

beforeEach(async () => {
  warnings = [];
  commandTimeoutMs = PATIENT_MS;
  server = await startTestRedis({ password: 'p@ssword' });
  proxy = await TcpProxy.open(server.port);
  connection = connectTo(proxy.through(server.url));
  await connection.connect();
});
afterEach(async () => {
  await connection.close();
  await proxy.close();
  await server.stop();
});

const tripOf = (keys: readonly string[], args: readonly string[]): TripEncoder => {
  const trip = new TripEncoder();
  for (const key of keys) trip.key(key);
  for (const arg of args) trip.arg(arg);
  return trip;
};

function send(trip: TripEncoder): Promise<string> {
  return new Promise((resolve, reject) => {
    connection.send(trip, {
      onReply: (bytes, start, end) => resolve(bytes.toString('latin1', start, end)),
      onLost: reject,
    });
  });
}

const echo = (keys: readonly string[], args: readonly string[]): string =>
  [keys, args].map((list) => `${list.map((text) => `${text.length}:${text}`).join('')}|`).join('');

/** Asks Redis something beside the connection under test. */
async function ask(...args: string[]): Promise<string> {
  const { hostname, port, password } = new URL(server.url);
  const socket = connect(Number(port), hostname);
  let answer = '';
  socket.on('data', (chunk) => {
    answer += chunk;
  });
  for (const command of [['AUTH', decodeURIComponent(password)], args, ['QUIT']]) {
    socket.write(`*${command.length}\r\n${command.map((arg) => `$${arg.length}\r\n${arg}\r\n`).join('')}`);
  }
  await new Promise((resolve) => socket.once('close', resolve));
  return answer.slice('+OK\r\n'.length, -'+OK\r\n'.length);
}

/** Waits for the answer without a turn of the event loop. */
function runsNow(): string {
  const { port, password } = new URL(server.url);
  const script = `const socket = require('node:net').connect(${port}, '127.0.0.1');
    socket.pipe(process.stdout);
    socket.end('AUTH ${decodeURIComponent(password)}\\r\\nGET runs\\r\\n');`;
  return execFileSync(process.execPath, ['-e', script], { encoding: 'utf8' });
}

describe('an encoded trip', () => {
  it('arrives as it was written, whatever ASCII it contains', async () => {
    const ascii = fc.string({
      unit: fc.integer({ min: 0, max: 0x7f }).map((code) => String.fromCharCode(code)),
      maxLength: 40,
    });
    await fc.assert(
      fc.asyncProperty(fc.array(ascii, { maxLength: 5 }), fc.array(ascii, { maxLength: 20 }), async (keys, args) => {
        expect(await send(tripOf(keys, args))).toBe(echo(keys, args));
      }),
      { numRuns: 200 },
    );
  });

  it('gets its own reply when many are under way at once', async () => {
    const trips = Array.from({ length: 200 }, (_, i) => [`trip ${i}`, 'x'.repeat(i * 20)]);
    const replies = await Promise.all(trips.map((args) => send(tripOf([], args))));
    expect(replies).toEqual(trips.map((args) => echo([], args)));
  });

  it('contains nothing of an earlier trip that was never sent', async () => {
    const trip = tripOf(['left'], ['over']);
    trip.begin();
    trip.arg('new');
    expect(await send(trip)).toBe(echo([], ['new']));
    // Longer than the memory that the encoder starts with.
    trip.arg('x'.repeat(100_000));
    expect(await send(trip)).toBe(echo([], ['x'.repeat(100_000)]));
  });

  it('with characters beyond ASCII still ends where it should end', async () => {
    expect(await send(tripOf(['k'], ['caf\u00e9 \u20ac\r\n$3', 'after']))).toMatch(/5:after\|$/);
  });

  it('is carried out once even if Redis had forgotten the script', async () => {
    await ask('SCRIPT', 'FLUSH');
    await ask('DEL', 'runs');
    expect(await Promise.all([send(tripOf([], ['a'])), send(tripOf([], ['b']))])).toEqual([
      echo([], ['a']),
      echo([], ['b']),
    ]);
    expect(await ask('GET', 'runs')).toBe('$1\r\n2\r\n');
  });
});

describe('a connection', () => {
  it('counts its trips as answered, refused or lost, each once, and counts no command of its own', async () => {
    const counts = { answered: 0, refused: 0, lost: 0 };
    const meter = {
      answered: (us: number) => {
        counts.answered++;
        expect(Number.isInteger(us) && us >= 0).toBe(true);
      },
      refused: () => void counts.refused++,
      lost: () => void counts.lost++,
    };
    await connection.close();
    connection = connectTo(proxy.through(server.url), meter);
    await connection.connect();
    // The first trip makes Redis load the script again.
    await ask('SCRIPT', 'FLUSH');
    await send(tripOf([], ['a']));
    await send(tripOf([], ['b']));
    expect(counts).toEqual({ answered: 2, refused: 0, lost: 0 });
    await ask('SET', 'runs', 'no number');
    await expect(send(tripOf([], ['c']))).rejects.toThrow(/not an integer/);
    expect(counts).toEqual({ answered: 2, refused: 1, lost: 0 });
    server.pause();
    commandTimeoutMs = TIMEOUT_MS;
    await expect(send(tripOf([], ['d']))).rejects.toThrow('Command timed out');
    commandTimeoutMs = PATIENT_MS;
    server.resume();
    await expect(send(tripOf([], ['e']))).rejects.toThrow(/not an integer/);
    expect(counts).toEqual({ answered: 2, refused: 2, lost: 1 });
  });

  it('rejects with the reason when the first attempt fails', async () => {
    const wrong = connectTo(server.url.replace(/:[^:@]*@/, ':wrong@'));
    await expect(wrong.connect()).rejects.toThrow(/WRONGPASS/);
    await expect(connectTo('redis://127.0.0.1:1').connect()).rejects.toThrow(/ECONNREFUSED/);
    expect(warnings).toEqual([]);
  });

  it('uses the database that its URL names', async () => {
    const other = connectTo(`${server.url.replace(/\/$/, '')}/3`);
    await other.connect();
    expect(await ask('INFO', 'keyspace')).toMatch(/db3:keys=1/);
    await other.close();
  });

  it('that breaks loses the trips under way, logs that once, and restores itself', async () => {
    proxy.set('swallow replies');
    const lost = [send(tripOf([], ['a'])), send(tripOf([], ['b']))].map((pending) =>
      pending.catch((error: unknown) => error),
    );
    await until(() => proxy.swallowed > 0);
    proxy.refuse();
    for (const error of await Promise.all(lost)) {
      expect(error).toBeInstanceOf(Error);
      expect(error).not.toBeInstanceOf(RedisNotSent);
    }
    await expect(send(tripOf([], ['c']))).rejects.toBeInstanceOf(RedisNotSent);
    await until(() => proxy.refused > 2);
    expect(warnings).toEqual(['redis connection lost or refused']);
    let times = 0;
    connection.onReady(() => times++);
    proxy.set('pass');
    await until(() => connection.ready);
    expect(times).toBe(1);
    expect(warnings).toEqual(['redis connection lost or refused', 'redis connection is back']);
    expect(await send(tripOf([], ['d']))).toBe(echo([], ['d']));
  });

  it('that is silent loses the trips under way after the timeout, and a late reply goes to no other trip', async () => {
    server.pause();
    commandTimeoutMs = TIMEOUT_MS;
    const startedAt = performance.now();
    await expect(send(tripOf([], ['late']))).rejects.toThrow('Command timed out');
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(TIMEOUT_MS);
    commandTimeoutMs = PATIENT_MS;
    const next = send(tripOf([], ['next']));
    server.resume();
    expect(await next).toBe(echo([], ['next']));
  });

  it('that stays silent is replaced by a new one', async () => {
    proxy.set('swallow replies');
    commandTimeoutMs = TIMEOUT_MS;
    const lost = send(tripOf([], ['a'])).catch((error: unknown) => error);
    await until(() => !connection.ready);
    expect(await lost).toBeInstanceOf(Error);
    commandTimeoutMs = PATIENT_MS;
    proxy.set('pass');
    await until(() => connection.ready);
  });

  it('reads the replies that are already in the socket before it counts a trip as late', async () => {
    // Not through the proxy, which would itself need turns of the event loop.
    await connection.close();
    connection = connectTo(server.url);
    await connection.connect();
    const runs = runsNow();
    commandTimeoutMs = TIMEOUT_MS;
    const pending = send(tripOf([], ['a']));
    await new Promise((resolve) => setImmediate(resolve));
    // Blocks the event loop for longer than the limit and until the reply has arrived, which nobody has read.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 4 * TIMEOUT_MS);
    while (runsNow() === runs);
    expect(await pending).toBe(echo([], ['a']));
  });

  it('does not use a replica, and is ready when the server is a primary again', async () => {
    await ask('REPLICAOF', '127.0.0.1', '1');
    await expect(send(tripOf([], ['a']))).rejects.toThrow(/READONLY/);
    await until(() => warnings.length === 1);
    expect(connection.ready).toBe(false);
    await ask('REPLICAOF', 'NO', 'ONE');
    await until(() => connection.ready);
    expect(await send(tripOf([], ['b']))).toBe(echo([], ['b']));
  });

  it('loses a trip only once when Redis falls silent after it forgot the script', async () => {
    // Stands in for a Redis that stops between two replies.
    const fake = createServer((socket) => {
      socket.on('error', () => {});
      let isOpen = false;
      socket.on('data', (data) => {
        const text = data.toString('latin1');
        if (isOpen) {
          if (!text.includes('LOAD')) socket.write('-NOSCRIPT No matching script.\r\n');
          return;
        }
        for (const [, command] of text.matchAll(/\r\n(SETNAME|LOAD|EVALSHA)\r\n/g)) {
          socket.write(command === 'EVALSHA' ? '$0\r\n\r\n' : '+OK\r\n');
          isOpen ||= command === 'EVALSHA';
        }
      });
    });
    await new Promise<void>((resolve) => fake.listen(0, '127.0.0.1', resolve));
    await connection.close();
    connection = connectTo(`redis://127.0.0.1:${(fake.address() as { port: number }).port}`);
    await connection.connect();
    commandTimeoutMs = TIMEOUT_MS;
    const lost: string[] = [];
    connection.send(tripOf([], ['a']), {
      onReply: () => lost.push('reply'),
      onLost: (error) => lost.push(error.message),
    });
    await until(() => lost.length > 0);
    commandTimeoutMs = PATIENT_MS;
    // By the time the connection is ready again, all pending trips have been told that they are lost.
    await until(() => connection.ready);
    expect(lost).toHaveLength(1);
    await connection.close();
    await new Promise((resolve) => fake.close(resolve));
  });

  it('opens with a password that Redis does not require, and for a user who may not name connections', async () => {
    const open = await startTestRedis();
    const unneeded = connectTo(open.url.replace('redis://', 'redis://:unneeded@'));
    await unneeded.connect();
    await unneeded.close();
    await open.stop();
    await ask('ACL', 'SETUSER', 'gateway', 'on', '>secret', '~*', '&*', '+@all', '-client|setname');
    const url = new URL(server.url);
    url.username = 'gateway';
    url.password = 'secret';
    const nameless = connectTo(url.href);
    await nameless.connect();
    await Promise.all([nameless.close(), nameless.close()]);
  });

  it('that is closed waits for trips under way, for at most the timeout of a trip', async () => {
    const pending = send(tripOf([], ['a']));
    await connection.close();
    expect(await pending).toBe(echo([], ['a']));
    await expect(send(tripOf([], ['b']))).rejects.toBeInstanceOf(RedisNotSent);
    connection = connectTo(server.url);
    await connection.connect();
    server.pause();
    commandTimeoutMs = TIMEOUT_MS;
    const lost = send(tripOf([], ['c'])).catch((error: Error) => error.message);
    await connection.close();
    expect(await lost).toBe('Command timed out');
    server.resume();
    expect(warnings).toEqual([]);
  });

  it('is dropped if the server is not Redis', async () => {
    await connection.close();
    const web = createServer((socket) => {
      socket.on('error', () => {});
      socket.resume();
      socket.write('HTTP/1.1 400 Bad Request\r\n\r\n');
    });
    await new Promise<void>((resolve) => web.listen(0, '127.0.0.1', resolve));
    const { port } = web.address() as { port: number };
    await expect(connectTo(`redis://127.0.0.1:${port}`).connect()).rejects.toThrow(/unknown type/);
    await new Promise((resolve) => web.close(resolve));
  });
});

it('the connection has no timer while nothing is under way', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  try {
    const other = connectTo(proxy.through(server.url));
    await other.connect();
    vi.advanceTimersByTime(PATIENT_MS);
    expect(vi.getTimerCount()).toBe(0);
    const replied = new Promise<void>((resolve, reject) => {
      other.send(tripOf([], ['x']), { onReply: () => resolve(), onLost: reject });
    });
    expect(vi.getTimerCount()).toBe(1);
    await replied;
    vi.advanceTimersByTime(PATIENT_MS);
    expect(vi.getTimerCount()).toBe(0);
    await other.close();
  } finally {
    vi.useRealTimers();
  }
});
