import { type AddressInfo, createServer } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  isPostgresUnavailable,
  openPostgres,
  PostgresSession,
  type Sql,
  type Tx,
} from '../../src/platform/postgres.ts';
import { PostgresPool } from '../../src/platform/postgres-pool.ts';
import { createDatabase, startTestPostgres, type TestDatabase } from '../support/stores.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { timed } from '../support/timed.ts';
import { until } from '../support/wait.ts';

let database: TestDatabase;
let sql: Sql;
let killer: Sql;
const unhandled: unknown[] = [];
const remember = (error: unknown): void => void unhandled.push(error);

beforeAll(async () => {
  database = await createDatabase();
  killer = openPostgres({ url: database.url, maxConnections: 1, applicationName: 'killer' });
  process.on('unhandledRejection', remember);
  process.on('uncaughtException', remember);
});
afterAll(async () => {
  process.off('unhandledRejection', remember);
  process.off('uncaughtException', remember);
  await killer.end();
  await database.drop();
});
beforeEach(() => {
  unhandled.length = 0;
  sql = openPostgres({ url: database.url, maxConnections: 4, applicationName: 'victim' });
});
afterEach(async () => {
  await sql.end();
  expect(unhandled).toEqual([]);
});

const killAll = () => killer`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'victim'`;

describe('a pool whose connections are killed', () => {
  it('works with all its connections afterwards, however often connections were killed', async () => {
    let stop = false;
    const failures: unknown[] = [];
    const busy = Array.from({ length: 12 }, async () => {
      while (!stop) await sql`SELECT ${'x'}::text AS x`.catch((error: unknown) => failures.push(error));
    });
    for (let i = 0; i < 20; i++) {
      await killAll();
      await sql`SELECT 1`.catch(() => {});
    }
    stop = true;
    await Promise.all(busy);
    expect(failures.filter((error) => !isPostgresUnavailable(error))).toEqual([]);
    // Postgres serves four at once, each on a connection of its own.
    const pids = await Promise.all([1, 2, 3, 4].map(() => sql`SELECT pg_backend_pid() AS pid, pg_sleep(0.1)`));
    expect(new Set(pids.map((rows) => rows[0]?.pid)).size).toBe(4);
  });

  it('fails the transaction, stores nothing of it, and keeps the process alive', async () => {
    await sql`CREATE TABLE IF NOT EXISTS marks (n int)`;
    const cut = sql.begin(async (tx) => {
      await tx`INSERT INTO marks VALUES (1)`;
      await killAll();
      // Whatever the transaction tries now must not run outside of it.
      await tx`INSERT INTO marks VALUES (2)`.catch(() => {});
      await tx`INSERT INTO marks VALUES (3)`;
    });
    await expect(cut).rejects.toSatisfy(isPostgresUnavailable);
    expect(await sql`SELECT n FROM marks`).toHaveLength(0);
  });
});

it('the pool answers at once while Postgres is away, and with the first query after Postgres is back', async () => {
  const store = await startTestPostgres();
  const away = openPostgres({ url: store.url, maxConnections: 2, applicationName: 'victim' });
  try {
    await away`SELECT 1`;
    await store.stop();
    await until(() => away`SELECT 1`.then(() => false).catch(() => true));
    const tookMs = await timed(() => expect(away`SELECT 1`).rejects.toSatisfy(isPostgresUnavailable));
    expect(tookMs).toBeLessThan(1_000);
    await store.restart();
    expect(await away`SELECT 1 AS one`).toEqual([{ one: 1 }]);
  } finally {
    await away.end();
    await store.stop();
  }
});

describe('transactions', () => {
  it('accept fragments made by the pool, by the transaction, and in lists', async () => {
    const fromPool = sql`${1}::int`;
    const rows = await sql.begin(async (tx) => {
      const both = tx`${fromPool} + ${tx`${2}::int`}`;
      return tx`SELECT ${both} AS sum ${[tx`, ${'a'}::text AS a`, tx`, ${'b'}::text AS b`]}`;
    }, 'READ ONLY');
    expect(rows).toEqual([{ sum: 3, a: 'a', b: 'b' }]);
  });

  it('reject when a statement failed, even if nobody handled the error', async () => {
    const careless = sql.begin(async (tx) => {
      await tx`SELECT 1 / 0`.catch(() => {});
    });
    await expect(careless).rejects.toThrow('rolled back');
  });

  it('refuse queries that come after the transaction ended', async () => {
    let late: PromiseLike<unknown> = Promise.resolve();
    await sql.begin(async (tx) => {
      late = tx`SELECT 1`;
    });
    await expect(Promise.resolve(late)).rejects.toThrow('has ended');
  });
});

it('arrays of text, numbers, times and nulls arrive as they were sent', async () => {
  const text = ['plain', 'a"b', 'back\\slash', 'comma, {brace}', '', 'NULL', '字', 'line\nbreak'];
  const times = [new Date('2026-01-02T03:04:05.678Z')];
  const rows = await sql`
    SELECT ${text}::text[] AS text, ${[1, -2]}::int[] AS ints, ${[Number.MAX_SAFE_INTEGER]}::bigint[] AS bigs,
           ${[]}::text[] AS none, ARRAY[true, NULL, false] AS bools, ARRAY[${times[0] as Date}::timestamptz] AS times`;
  expect(rows[0]).toEqual({
    text,
    ints: [1, -2],
    bigs: [Number.MAX_SAFE_INTEGER],
    none: [],
    bools: [true, null, false],
    times,
  });
});

it('a bigint beyond 2^53 throws instead of being rounded', async () => {
  await expect(sql`SELECT 9007199254740993::bigint AS n`).rejects.toThrow('safe range');
});

it('users beyond the bound wait for a connection, and get one', async () => {
  const results = await Promise.all(Array.from({ length: 40 }, (_, i) => sql`SELECT ${i}::int AS i`));
  expect(results.map((rows) => rows[0]?.i)).toEqual(Array.from({ length: 40 }, (_, i) => i));
  const open = await killer`SELECT count(*)::int AS n FROM pg_stat_activity WHERE application_name = 'victim'`;
  expect(open[0]?.n).toBeLessThanOrEqual(4);
});

describe('users that wait for a connection', () => {
  const options = { maxConnections: 1, applicationName: 'victim' };

  it('fail after a bounded time as if Postgres were away; the next ones get the connection when it is free', async () => {
    const pool = new PostgresPool({ ...options, url: database.url }, { maxWaiting: 10, maxWaitMs: 100 });
    const only = await pool.acquire();
    const startedAt = performance.now();
    const waiting = await Promise.allSettled([pool.acquire(), pool.acquire()]);
    expect(performance.now() - startedAt).toBeLessThan(2_000);
    for (const result of waiting) {
      expect(result.status === 'rejected' && isPostgresUnavailable(result.reason)).toBe(true);
    }
    const next = pool.acquire();
    pool.release(only);
    expect(await next).toBe(only);
    pool.release(only);
    await pool.end();
  });

  it('are bounded in number: one more fails at once', async () => {
    const pool = new PostgresPool({ ...options, url: database.url }, { maxWaiting: 2, maxWaitMs: 60_000 });
    const only = await pool.acquire();
    const waiting = [pool.acquire(), pool.acquire()];
    await expect(pool.acquire()).rejects.toSatisfy(isPostgresUnavailable);
    for (const session of waiting) {
      pool.release(only);
      expect(await session).toBe(only);
    }
    pool.release(only);
    await pool.end();
  });

  it('fail at once when the pool ends', async () => {
    const pool = new PostgresPool({ ...options, url: database.url }, { maxWaiting: 2, maxWaitMs: 60_000 });
    const only = await pool.acquire();
    const waiting = [pool.acquire(), pool.acquire()];
    const ended = pool.end();
    pool.release(only);
    await ended;
    for (const session of waiting) await expect(session).rejects.toThrow('has ended');
  });
});

describe("the commit of a transaction is on disk, whatever the server's default for synchronous_commit is", () => {
  it.each([
    ['off', 'on'],
    ['local', 'on'],
    ['remote_write', 'remote_write'],
    ['remote_apply', 'remote_apply'],
  ])('%s becomes %s, in transactions only', async (configured, inTransactions) => {
    await killer.unsafe(
      `ALTER DATABASE ${new URL(database.url).pathname.slice(1)} SET synchronous_commit = ${configured}`,
    );
    try {
      const setting = async (on: Sql | Tx): Promise<unknown> =>
        (await on`SHOW synchronous_commit`)[0]?.synchronous_commit;
      // Taking turns on one connection: a transaction leaves nothing behind, and the session sets nothing, as a pooler wants it.
      const one = openPostgres({ url: database.url, maxConnections: 1, applicationName: 'victim' });
      expect(await setting(one)).toBe(configured);
      expect(await one.begin(setting)).toBe(inTransactions);
      expect(await one.begin(setting, 'READ ONLY')).toBe(inTransactions);
      expect(await setting(one)).toBe(configured);
      await one.end();
    } finally {
      await killer.unsafe(`ALTER DATABASE ${new URL(database.url).pathname.slice(1)} RESET synchronous_commit`);
    }
  });
});

it('a lock on the installation fails the query that first meets it, and no later query', async () => {
  const id = '11111111-1111-4111-8111-111111111111';
  await killer.unsafe(`CREATE TABLE installation (id uuid); INSERT INTO installation VALUES ('${id}')`);
  const settings = { lock_timeout: 50 };
  const ours = openPostgres({
    url: database.url,
    maxConnections: 1,
    applicationName: 'victim',
    installation: id,
    settings,
  });
  try {
    await killer.begin(async (tx) => {
      await tx`LOCK TABLE installation IN ACCESS EXCLUSIVE MODE`;
      await expect(ours`SELECT 1 AS one`).rejects.toThrow('lock timeout');
    });
    expect([...(await ours`SELECT 1 AS one`)]).toEqual([{ one: 1 }]);
  } finally {
    await ours.end();
    await killer`DROP TABLE installation`;
  }
});

it('the pool connects to a database of another installation once a second, however many callers wait', async () => {
  const [ours, theirs] = ['11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222'];
  await killer.unsafe(`CREATE TABLE installation (id uuid); INSERT INTO installation VALUES ('${theirs}')`);
  const proxy = await TcpProxy.open(Number(new URL(database.url).port));
  const lost = openPostgres({
    url: proxy.through(database.url),
    maxConnections: 2,
    applicationName: 'victim',
    installation: ours,
  });
  try {
    const ask = (): Promise<unknown> => lost`SELECT 1`.then(() => 'answered', String);
    const startedAt = performance.now();
    for (let i = 0; i < 20; i++) {
      for (const reply of await Promise.all([ask(), ask(), ask()])) expect(reply).toContain('another installation');
    }
    // Two at once are two connections.
    expect(proxy.accepted).toBeLessThanOrEqual(2 * (1 + Math.floor((performance.now() - startedAt) / 1_000)));
    await killer`UPDATE installation SET id = ${ours}`;
    await until(async () => (await ask()) === 'answered');
  } finally {
    await lost.end();
    await proxy.close();
    await killer`DROP TABLE installation`;
  }
});

it('a session that got no answer in time ends, and notifies everyone who waits', async () => {
  const session = new PostgresSession({ url: database.url, applicationName: 'victim' }, 2_000);
  await session.query('SELECT 1');
  await expect(session.query('SELECT pg_sleep(60)')).rejects.toSatisfy(isPostgresUnavailable);
  expect(session.open).toBe(false);
  await expect(session.query('SELECT 1')).rejects.toThrow('is gone');
});

it('a server that accepts and hangs up fails the query at once, instead of after endless attempts', async () => {
  let attempts = 0;
  const server = createServer((socket) => {
    attempts++;
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const lost = openPostgres({ url: `postgres://x@127.0.0.1:${port}/x`, maxConnections: 1, applicationName: 'test' });
  const tookMs = await timed(() => expect(lost`SELECT 1`).rejects.toSatisfy(isPostgresUnavailable));
  expect(tookMs).toBeLessThan(1_000);
  expect(attempts).toBe(1);
  await lost.end();
  await new Promise((resolve) => server.close(resolve));
});

it('with several hosts in a URL, each is tried once; the first that serves is used, and if none does the query fails at once', async () => {
  let attempts = 0;
  const server = createServer((socket) => {
    attempts++;
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const { host } = new URL(database.url);
  // The first hangs up, nobody listens at the second.
  const away = `127.0.0.1:${port},127.0.0.1:1`;
  const open = (hosts: string): Sql =>
    openPostgres({ url: database.url.replace(host, hosts), maxConnections: 1, applicationName: 'victim' });
  const [found, lost] = [open(`${away},${host}`), open(away)];
  expect([...(await found`SELECT 1 AS one`)]).toEqual([{ one: 1 }]);
  const tookMs = await timed(() => expect(lost`SELECT 1`).rejects.toSatisfy(isPostgresUnavailable));
  expect(tookMs).toBeLessThan(1_000);
  expect(attempts).toBe(2);
  await Promise.all([found.end(), lost.end()]);
  await new Promise((resolve) => server.close(resolve));
});

describe('COPY', () => {
  let session: PostgresSession;
  beforeEach(async () => {
    session = new PostgresSession({ url: database.url, applicationName: 'victim' });
    await session.query('CREATE TEMP TABLE copied (id int PRIMARY KEY DEFERRABLE, text text)');
  });
  afterEach(() => session.close());
  const rows = (...lines: string[]) => lines.map((line) => Buffer.from(`${line}\n`));
  const copy = (chunks: Iterable<Buffer>) => session.copyIn('COPY copied FROM STDIN', chunks);
  const copied = async () => (await session.query('SELECT text FROM copied ORDER BY id')).map(({ text }) => text);

  it('stores all rows, including none', async () => {
    await copy(rows('1\ta', '2\tb\n3\tc'));
    await copy([]);
    await copy(rows('4\td'));
    expect(await copied()).toEqual(['a', 'b', 'c', 'd']);
  });

  it.each([
    ['at once', 'COPY missing FROM STDIN', rows('1'), '42P01'],
    // The server's error may come before or after the last row is sent.
    ['in the middle of the data', 'COPY copied FROM STDIN', rows('x\ta', ...Array(20_000).fill('1\ta')), '22P02|25P02'],
    // Found when the statement ends: nobody writes or reads any more.
    ['behind the last row', 'COPY copied FROM STDIN', rows('1\ta', '1\tb'), '25P02'],
  ])(
    'fails in a transaction when the server refuses it %s, and the session continues',
    async (_, text, chunks, code) => {
      const refused = session.transaction(() => session.copyIn(text, chunks));
      await expect(refused).rejects.toMatchObject({ code: expect.stringMatching(code) });
      await session.transaction(() => copy(rows('1\ta')));
      expect(await copied()).toEqual(['a']);
    },
  );

  it('fails outside a transaction, too', async () => {
    await expect(copy(rows('1\ta', '1\tb'))).rejects.toThrow('behind its last row');
    expect(session.open).toBe(false);
  });

  it('fails when its data source fails, and ends the session, which stores nothing', async () => {
    const chunks = function* () {
      yield* rows('1\ta');
      throw new Error('no more data');
    };
    await expect(copy(chunks())).rejects.toThrow('no more data');
    expect(session.open).toBe(false);
  });

  it('fails when its connection is killed, and the process survives', async () => {
    const chunks = function* () {
      yield* rows('1\ta');
      killAll().catch(remember);
      for (let id = 2; ; id++) yield Buffer.from(`${id}\t${'x'.repeat(100_000)}\n`);
    };
    await expect(copy(chunks())).rejects.toThrow();
    await until(() => !session.open);
  });
});
