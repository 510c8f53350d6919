// Two installations, each with its own database, that come to share a Redis: by configuration, by a flush, or because the same
// name leads to another Redis.

import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import { freePort } from '../../scripts/local/ports.mjs';
import { loadConfig } from '../../src/config/config.ts';
import { checkOwnership } from '../../src/ledger/ownership.ts';
import { ForeignRedis } from '../../src/platform/installation.ts';
import { migrate, readMigrations } from '../../src/platform/migrate.ts';
import { openPostgres } from '../../src/platform/postgres.ts';
import { RedisClient } from '../../src/platform/redis.ts';
import { RedisKeys } from '../../src/platform/redis-keys.ts';
import { StartRefused } from '../../src/platform/start-refused.ts';
import { openStores } from '../../src/roles/stores.ts';
import { buildSources } from '../support/build.ts';
import { oneRedis } from '../support/redis-kind.ts';
import { QUIET } from '../support/store.ts';
import { createDatabase, startTestRedis } from '../support/stores.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/wait.ts';
import { echo, type Key, Marketplace, startService, type TestService } from './marketplace.ts';
import { SupervisorProcess } from './worker-stack.ts';

const PRICE_USD = 0.01;
const CREDIT_USD = 5;

/** Functions that stop what a test started, called in reverse order. */
const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

let service: TestService;
beforeAll(async () => {
  service = await startService(echo);
  return () => service.close();
});

/** An installation with a buyer and a service to call. */
class Installation {
  readonly market: Marketplace;
  readonly path: string;
  readonly buyer: Key;

  private constructor(market: Marketplace, path: string, buyer: Key) {
    this.market = market;
    this.path = path;
    this.buyer = buyer;
  }

  static async start(settings: Readonly<Record<string, string>> = {}): Promise<Installation> {
    const market = await Marketplace.start(settings);
    ends.push(() => market.stop());
    const path = await market.service({ endpoint: service.url, price: PRICE_USD });
    return new Installation(market, path, await market.buyer(CREDIT_USD));
  }

  get id(): string {
    return this.market.stores.installation;
  }

  async call(): Promise<number> {
    const response = await this.market.request(this.path, { key: this.buyer });
    await response.arrayBuffer();
    return response.status;
  }

  /** @returns how many calls were answered with 200 */
  async calls(count: number): Promise<number> {
    let served = 0;
    for (let i = 0; i < count; i++) if ((await this.call()) === 200) served++;
    return served;
  }

  /** Counts in the installation's database. `strangers`: calls of accounts that it does not have. */
  async rows(): Promise<{ calls: number; strangers: number; charged: number }> {
    const [row] = await this.market.stores.sql<{ calls: number; strangers: number; charged: number }[]>`
      SELECT count(*)::int AS calls, coalesce(sum(amount), 0)::bigint AS charged,
             (count(*) FILTER (WHERE account_id NOT IN (SELECT id FROM accounts)))::int AS strangers FROM calls`;
    return row as { calls: number; strangers: number; charged: number };
  }

  async ready(): Promise<boolean> {
    return (await this.market.request('/readyz')).ok;
  }

  get reasons(): string[] {
    return this.market.log.lines.filter((line) => /another installation|data of installation/.test(line));
  }
}

/** Sends a command to Redis as an operator with redis-cli would. */
async function withRedis<Result>(url: string, work: (redis: Redis) => Promise<Result>): Promise<Result> {
  const redis = new Redis(url);
  try {
    return await work(redis);
  } finally {
    redis.disconnect();
  }
}

/** An installation that reaches its Redis through a proxy, so that the test can put another Redis behind it. */
async function startBehindProxy(): Promise<{ installation: Installation; proxy: TcpProxy; port: number }> {
  const redis = await startTestRedis();
  const proxy = await TcpProxy.open(redis.port);
  ends.push(
    () => redis.stop(),
    () => proxy.close(),
  );
  return { installation: await Installation.start({ REDIS_URL: proxy.through(redis.url) }), proxy, port: redis.port };
}

/** The instances of all gateways that have ever written to this Redis. */
async function leasesIn(url: string): Promise<string[]> {
  return withRedis(url, async (redis) => {
    const hashes = await Promise.all((await redis.keys('lease:*')).map((key) => redis.hkeys(key)));
    return Array.from(new Set(hashes.flat())).sort();
  });
}

/** A service that answers when the test tells it to. */
async function startSlowService(): Promise<TestService & { waiting(): number; answer(): void }> {
  const waiting: (() => void)[] = [];
  const slow = await startService((_, response) => waiting.push(() => response.end('done')));
  ends.push(() => slow.close());
  return {
    ...slow,
    waiting: () => waiting.length,
    answer: () => {
      for (const answer of waiting.splice(0)) answer();
    },
  };
}

describe.skipIf(oneRedis('puts another Redis behind its address; for nodes see redis-cluster.test.ts'))(
  'a Redis of another installation',
  () => {
    it('is refused at start with exit code 1 and a message that names both installations and the cause', async () => {
      const build = buildSources();
      const owner = await Installation.start();
      const database = await createDatabase();
      ends.push(() => database.drop());
      const ports = { PORT: String(await freePort()), METRICS_PORT: String(await freePort()) };
      const env = { DATABASE_URL: database.url, REDIS_URL: owner.market.redis.url, HOST: '127.0.0.1', ...ports };
      for (const workers of ['1', '2']) {
        const second = new SupervisorProcess(build, { ...env, WORKERS: workers });
        ends.push(async () => {
          if (!second.child.hasExited()) await second.stop('SIGKILL');
        });
        await until(() => second.child.hasExited() || second.output.includes('"msg":"ready"'));
        expect(second.child.hasExited(), `it started: ${second.output}`).toBe(true);
        expect((await second.child.exited).code).toBe(1);
        expect(second.output).toContain(
          `this Redis holds the data of installation ${owner.id}, but our database is new`,
        );
        expect(second.output).toContain('a Redis or a database number of its own');
      }
      // The first installation is not affected.
      expect(await owner.calls(5)).toBe(5);
      expect(await owner.market.books()).toMatchObject({ drifting: [], total: '0' });
    });

    it('may be shared if each installation has its own database number', async () => {
      const owner = await Installation.start();
      const other = await Installation.start({ REDIS_URL: `${owner.market.redis.url.replace(/\/$/, '')}/1` });
      expect(await Promise.all([owner.calls(20), other.calls(20)])).toEqual([20, 20]);
      for (const each of [owner, other]) {
        await each.market.settled();
        expect(await each.rows()).toEqual({ calls: 20, strangers: 0, charged: 200_000 });
      }
    });

    it('that is empty is claimed by exactly one of two installations that start at once', async () => {
      const redis = await startTestRedis();
      const databases = await Promise.all([createDatabase(), createDatabase()]);
      ends.push(() => redis.stop(), ...databases.map(({ drop }) => drop));
      const migrations = readMigrations('migrations');
      for (let round = 0; round < 5; round++) {
        await withRedis(redis.url, (client) => client.flushall());
        const started = await Promise.allSettled(
          databases.map(({ url }) => {
            const config = loadConfig({ DATABASE_URL: url, REDIS_URL: redis.url });
            return openStores(config, { name: 'test', maxConnections: 1, migrations, log: QUIET });
          }),
        );
        const won = started.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
        const lost = started.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
        expect([won.length, lost.length]).toEqual([1, 1]);
        expect(lost[0]).toBeInstanceOf(ForeignRedis);
        expect((lost[0] as Error).message).toContain(won[0]?.installation);
        await won[0]?.close();
      }
    });

    it('behind the same name counts as away: no call, charge or write reaches it; all is well once our own Redis is back', async () => {
      const owner = await Installation.start();
      const { installation: strayed, proxy, port } = await startBehindProxy();
      const slow = await startSlowService();
      const slowPath = await strayed.market.service({ endpoint: slow.url, price: PRICE_USD });
      expect(await strayed.calls(5)).toBe(5);
      const underWay = strayed.market.request(slowPath, { key: strayed.buyer });
      await until(() => slow.waiting() === 1);
      const before = await leasesIn(owner.market.redis.url);

      proxy.leadTo(owner.market.redis.port);
      proxy.cut();
      await until(async () => !(await strayed.ready()));
      // Both connections have met the other Redis, each in its own time.
      const refusals = () => strayed.reasons.filter((line) => line.includes('redis connection lost or refused'));
      await until(() => refusals().length >= 2);
      // The call ends now. Its settlement has to wait for the Redis that has its hold.
      slow.answer();
      expect((await underWay).status).toBe(200);
      expect(await strayed.calls(10)).toBe(0);
      expect(await strayed.call()).toBe(503);
      expect(await owner.calls(10)).toBe(10);
      await owner.market.settled();
      expect(await owner.rows()).toEqual({ calls: 10, strangers: 0, charged: 100_000 });
      expect(await leasesIn(owner.market.redis.url)).toEqual(before);
      const keys = await withRedis(owner.market.redis.url, (redis) => redis.keys('*'));
      expect(
        keys.filter((key) => key.includes(strayed.buyer.account_id) || key.includes(strayed.buyer.key_id)),
      ).toEqual([]);
      // Each connection logs it once, however often it tried.
      expect(refusals()).toHaveLength(2);

      proxy.leadTo(port);
      proxy.cut();
      await until(async () => (await strayed.call()) === 200);
      await until(() => strayed.market.stores.redis.ready);
      await strayed.market.settled();
      expect(await strayed.rows()).toEqual({ calls: 7, strangers: 0, charged: 70_000 });
      expect(await strayed.market.books()).toMatchObject({ drifting: [], total: '0' });
    });

    it('that another installation claims after a flush, while we are connected: neither takes the events of the other', async () => {
      const loser = await Installation.start();
      const { installation: winner, proxy } = await startBehindProxy();
      expect(await Promise.all([loser.calls(10), winner.calls(10)])).toEqual([10, 10]);
      await Promise.all([loser.market.settled(), winner.market.settled()]);
      // Flushed and claimed in one step, or the first installation would claim it again in between.
      await withRedis(loser.market.redis.url, (redis) =>
        redis.multi().flushall().set('tollgate:installation', winner.id).exec(),
      );
      proxy.leadTo(loser.market.redis.port);
      proxy.cut();
      // Even the first call is refused: its key and wallet cannot be loaded, and nothing is charged before that.
      expect(await loser.call()).toBe(503);
      await until(async () => (await winner.call()) === 200);
      const [lost, served] = await Promise.all([loser.calls(40), winner.calls(100)]);
      expect([lost, served]).toEqual([0, 100]);
      await until(async () => !(await loser.ready()));
      await winner.market.settled();
      expect(await winner.rows()).toEqual({ calls: 111, strangers: 0, charged: 1_110_000 });
      expect(await loser.rows()).toEqual({ calls: 10, strangers: 0, charged: 100_000 });
      expect(await winner.market.balance(winner.buyer)).toMatchObject({ balance: 3.89, held: 0 });
      expect(await winner.market.books()).toMatchObject({ drifting: [], total: '0' });
      expect(loser.reasons.length).toBeGreaterThanOrEqual(1);
    });

    it('that was flushed stays ours while we run, even without a call', async () => {
      const owner = await Installation.start();
      await withRedis(owner.market.redis.url, async (redis) => {
        await redis.flushall();
        await until(async () => (await redis.get('tollgate:installation')) === owner.id);
      });
      expect(await owner.calls(5)).toBe(5);
      await expect(Marketplace.start({ REDIS_URL: owner.market.redis.url })).rejects.toThrow(ForeignRedis);
    });
  },
);

describe.skipIf(oneRedis('cuts single connections to it'))(
  'a gateway whose Redis was flushed and claimed by another',
  () => {
    it('is not ready when only one of its connections is back, and the other connection makes the check again too', async () => {
      const loser = await Installation.start();
      expect(await loser.ready()).toBe(true);
      await withRedis(loser.market.redis.url, async (redis) => {
        await redis.multi().flushall().set('tollgate:installation', randomUUID()).exec();
        const clients = String(await redis.call('CLIENT', 'LIST', 'TYPE', 'normal')).split('\n');
        const ids = clients
          .filter((line) => / name=tollgate-(?!batches)/.test(line))
          .map((line) => /id=(\d+)/.exec(line)?.[1]);
        expect(ids.length).toBeGreaterThan(0);
        for (const id of ids) await redis.call('CLIENT', 'KILL', 'ID', id as string);
      });
      await until(() => loser.reasons.some((line) => line.includes('tollgate-batches')));
      await until(async () => !(await loser.ready()));
    });
  },
);

describe('the start of a process', () => {
  const MIGRATIONS = readMigrations('migrations');
  const start = async (databaseUrl: string, redisUrl: string, migrations = MIGRATIONS, shards?: string) => {
    const config = loadConfig({ DATABASE_URL: databaseUrl, REDIS_URL: redisUrl, REDIS_SHARDS: shards });
    const stores = await openStores(config, { name: 'test', maxConnections: 1, migrations, log: QUIET });
    await stores.close();
  };
  const refusal = (...given: Parameters<typeof start>): Promise<string> =>
    start(...given).then(
      () => 'it started',
      (error: unknown) =>
        error instanceof ForeignRedis || error instanceof StartRefused ? error.message : String(error),
    );

  it('leaves the database unchanged if Redis belongs to another installation, and names both stores without passwords', async () => {
    const redis = await startTestRedis();
    ends.push(() => redis.stop());
    const owner = randomUUID();
    await withRedis(redis.url, (client) => client.set('tollgate:installation', owner));
    const { url, drop } = await createDatabase();
    const sql = openPostgres({ url, maxConnections: 1, applicationName: 'test' });
    ends.push(drop, () => sql.end());
    await migrate(sql, MIGRATIONS);
    const next = { version: MIGRATIONS.length + 1, name: '0000_next.sql', sql: 'CREATE TABLE next (n int)' };
    const message = await refusal(url, redis.url, [...MIGRATIONS, next]);
    const place = ({ host, pathname }: URL): string => host + pathname;
    for (const part of [owner, place(new URL(redis.url)), place(new URL(url))]) expect(message).toContain(part);
    expect(new URL(url).password).not.toBe('');
    expect(message).not.toContain(new URL(url).password);
    expect(await sql`SELECT to_regclass('next') AS next`).toEqual([{ next: null }]);
  });

  /** The tables of a database with the numbers of their columns, and the keys of a Redis. */
  const contents = async (databaseUrl: string, redisUrl: string) => {
    const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} });
    const tables =
      await sql`SELECT relname, relnatts FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1`;
    await sql.end();
    return { tables: [...tables], keys: await withRedis(redisUrl, async (client) => (await client.keys('*')).sort()) };
  };

  it('refuses a database made before 0.1.0, and a Redis that has no id, and writes nothing to either', async () => {
    const redis = await startTestRedis();
    const [before, fresh] = [await createDatabase(), await createDatabase()];
    ends.push(() => redis.stop(), before.drop, fresh.drop);
    const sql = postgres(before.url, { max: 1 });
    await sql`CREATE TABLE schema_migrations (version int PRIMARY KEY, name text NOT NULL, applied_at timestamptz)`;
    await sql`INSERT INTO schema_migrations (version, name) SELECT n, n || '.sql' FROM generate_series(1, 17) AS n`;
    await sql`CREATE TABLE installation (pseudonym_secret text)`;
    await sql.end();
    const told = 'was made before 0.1.0: start with an empty store (`npm start`: delete .data)';
    let unchanged = await contents(before.url, redis.url);
    expect(await refusal(before.url, redis.url)).toBe(`the database ${told}`);
    expect(await contents(before.url, redis.url)).toEqual(unchanged);

    await withRedis(redis.url, async (client) => {
      await client.set('tollgate:shards', '16');
      await client.hset(`wallet:{3}:${randomUUID()}`, { balance: '5' });
    });
    unchanged = await contents(fresh.url, redis.url);
    expect(await refusal(fresh.url, redis.url)).toBe(
      `Redis ${new URL(redis.url).host}${new URL(redis.url).pathname} ${told}`,
    );
    expect(await contents(fresh.url, redis.url)).toEqual(unchanged);
  });

  it('refuses a different number of shards in either store before it changes anything', async () => {
    const redis = await startTestRedis();
    const database = await createDatabase();
    const sql = openPostgres({ url: database.url, maxConnections: 1, applicationName: 'test' });
    ends.push(
      () => redis.stop(),
      database.drop,
      () => sql.end(),
    );
    const next = { version: MIGRATIONS.length + 1, name: '0000_next.sql', sql: 'CREATE TABLE next (n int)' };
    const ask = (shards: string): Promise<string> => refusal(database.url, redis.url, [...MIGRATIONS, next], shards);
    await start(database.url, redis.url, MIGRATIONS, '16');
    const unchanged = await contents(database.url, redis.url);
    await withRedis(redis.url, (client) => client.del('tollgate:shards'));
    expect(await ask('32')).toContain('16 shards in a single Redis');
    // A backup from between `reshard` and the next start has no layout, and the Redis of today has one.
    await withRedis(redis.url, (client) => client.set('tollgate:shards', '16'));
    await sql`UPDATE installation SET redis_shards = NULL, redis_layout = NULL`;
    expect(await ask('32')).toBe('this Redis was set up with 16 shards, but REDIS_SHARDS is 32');
    expect(await contents(database.url, redis.url)).toEqual(unchanged);
    expect(await ask('16')).toBe('it started');
  });

  it('is not refused if another process makes its first start while this one looks at Redis', async () => {
    const [redis, database] = [await startTestRedis(), await createDatabase()];
    const sql = openPostgres({ url: database.url, maxConnections: 1, applicationName: 'test' });
    const client = new RedisClient({ url: redis.url, name: 'test', commandTimeoutMs: 5_000 }, QUIET);
    ends.push(
      () => redis.stop(),
      database.drop,
      () => sql.end(),
      () => client.close(),
    );
    await client.connect();
    const other = randomUUID();
    const overtaken: RedisClient = Object.create(client, {
      command: {
        value: async (...asked: Parameters<RedisClient['command']>) => {
          const reply = await client.command(...asked);
          await client.command('mset', ['tollgate:installation', other, 'tollgate:shards', '16']);
          return reply;
        },
      },
      isCluster: { value: false },
    });
    const places = { redisUrl: redis.url, databaseUrl: database.url };
    const check = (store: RedisClient) => checkOwnership({ redis: store, keys: new RedisKeys(16), sql }, places);
    await check(overtaken);
    await expect(check(client)).rejects.toThrow(ForeignRedis);
  });
});

describe('a Postgres database of another installation', () => {
  it('behind the same URL counts as away: events and credits wait, and none is stored there', async () => {
    const owner = await Installation.start();
    const { sql } = owner.market.stores;
    const [here] = await sql<{ name: string }[]>`SELECT current_database() AS name`;
    const name = here?.name as string;
    const other = await createDatabase();
    const otherName = new URL(other.url).pathname.slice(1);
    await migrateOnly(other.url);
    // Later, the first comparison could take the wallet out of Redis, which is not loaded while Postgres is away.
    await owner.market.compared();
    expect(await owner.calls(5)).toBe(5);
    await owner.market.settled();

    await swapDatabases(name, otherName);
    ends.push(() => other.drop());
    // Known keys are still served, as when Postgres is away, and the writer logs why it does not store their calls.
    expect(await owner.calls(20)).toBe(20);
    await until(() => owner.reasons.some((line) => line.includes('writer cannot work')));
    const credit = { account_id: owner.buyer.account_id, amount: 1, reference: 'astray' };
    const answer = await owner.market.request('/api/v1/admin/credits', {
      key: owner.market.admin,
      method: 'POST',
      body: credit,
    });
    expect(answer.status).toBe(503);
    const stranger = postgres(urlOf(other.url, name), { max: 1 });
    expect(await stranger`SELECT (SELECT count(*)::int FROM calls) + (SELECT count(*)::int FROM credits) AS n`).toEqual(
      [{ n: 0 }],
    );
    await stranger.end();

    await swapDatabases(name, otherName);
    await until(async () => (await owner.rows().catch(() => null))?.calls === 25);
    expect(await owner.rows()).toEqual({ calls: 25, strangers: 0, charged: 250_000 });
    expect(await owner.market.books()).toMatchObject({ drifting: [], total: '0' });
  });
});

const urlOf = (url: string, name: string): string => Object.assign(new URL(url), { pathname: `/${name}` }).href;

async function migrateOnly(url: string): Promise<void> {
  const sql = openPostgres({ url, maxConnections: 1, applicationName: 'test' });
  await migrate(sql, readMigrations('migrations'));
  await sql.end();
}

/** Swaps the names of two databases and cuts all their connections, as a restore or a failover would. */
async function swapDatabases(one: string, two: string): Promise<void> {
  const between = `${one}_swapped`;
  const admin = postgres(inject('postgresAdminUrl'), { max: 1, onnotice: () => {} });
  const names = [one, two];
  try {
    for (const name of names) await admin.unsafe(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`);
    await until(async () => {
      const rows = await admin`
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = ANY(${names}::text[])`;
      return rows.length === 0;
    });
    for (const [from, to] of [
      [one, between],
      [two, one],
      [between, two],
    ]) {
      await admin.unsafe(`ALTER DATABASE ${from} RENAME TO ${to}`);
    }
    for (const name of names) await admin.unsafe(`ALTER DATABASE ${name} ALLOW_CONNECTIONS true`);
  } finally {
    await admin.end();
  }
}
