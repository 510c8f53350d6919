// Starts real stores for tests. They end with the test run, even if a test forgets to stop them or dies.

import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { inject } from 'vitest';
import { type PostgresOptions, type RunningPostgres, startPostgres } from '../../scripts/local/postgres.mjs';
import { type RedisOptions, type RunningRedis, startRedis } from '../../scripts/local/redis.mjs';
import { runDirOf } from '../../scripts/local/scratch.mjs';
import { giveBack, stateOf, takeIdle } from './idle-redis.ts';
import { MIGRATED, WITH_DAYS } from './migrated.ts';

/** The folder of this test run. It is removed at the end of the run. */
export const scratchDir = (): string => inject('scratchDir');

/** The folder for records of processes that must end with the run: `spawnOwned({ runDir: scratchRunDir(), … })`. */
export const scratchRunDir = (): string => runDirOf(scratchDir());

const uniqueName = (prefix: string): string => `${prefix}_${randomBytes(6).toString('hex')}`;

export interface TestDatabase {
  url: string;
  drop(): Promise<void>;
}

/** Makes an empty database in the Postgres that all tests of the run share (and that does not fsync). */
export const createDatabase = (): Promise<TestDatabase> => copyOf('template1');

/** Makes one with the schema of today. A migration takes three times as long. Its installation is that of all copies: see `OWN`. */
export const createMigratedDatabase = (): Promise<TestDatabase> => copyOf(MIGRATED);

/** Gives a copy an installation of its own. */
export const OWN = 'UPDATE installation SET id = DEFAULT, pseudonym_secret = DEFAULT, created_at = DEFAULT';

/** Makes one that a writer has used before, so that it need not make the partitions of this week's days. */
export async function createUsedDatabase(): Promise<TestDatabase> {
  const database = await copyOf(WITH_DAYS);
  await withSql(database.url, (sql) => sql.unsafe(OWN));
  return database;
}

async function copyOf(template: string): Promise<TestDatabase> {
  const name = uniqueName('test');
  await asAdmin((sql) => sql`CREATE DATABASE ${sql(name)} TEMPLATE ${sql(template)} STRATEGY file_copy`);
  const url = new URL(inject('postgresAdminUrl'));
  url.pathname = `/${name}`;
  return {
    url: url.href,
    drop: () => asAdmin((sql) => sql`DROP DATABASE IF EXISTS ${sql(name)} WITH (FORCE)`),
  };
}

/**
 * Copies a database of that Postgres, as a backup does. This cuts its sessions, as each swap does.
 *
 * @returns `swap`: the copy takes the database's place, and the other way round when it is called again
 */
export async function copyDatabase(name: string): Promise<{ swap(): Promise<void>; drop(): Promise<void> }> {
  const [copy, aside] = [`${name}_copy`, `${name}_aside`];
  const alone = (names: readonly string[], work: (sql: postgres.Sql) => Promise<unknown>): Promise<void> =>
    asAdmin(async (sql) => {
      for (const each of names) {
        await sql`ALTER DATABASE ${sql(each)} ALLOW_CONNECTIONS false`;
        await sql`SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = ${each}`;
      }
      await work(sql);
      for (const each of names) await sql`ALTER DATABASE ${sql(each)} ALLOW_CONNECTIONS true`;
    });
  const rename = (sql: postgres.Sql, from: string, to: string) => sql`ALTER DATABASE ${sql(from)} RENAME TO ${sql(to)}`;
  await alone([name], (sql) => sql`CREATE DATABASE ${sql(copy)} TEMPLATE ${sql(name)}`);
  return {
    swap: () =>
      alone([name, copy], async (sql) => {
        await rename(sql, name, aside);
        await rename(sql, copy, name);
        await rename(sql, aside, copy);
      }),
    drop: () => asAdmin((sql) => sql`DROP DATABASE IF EXISTS ${sql(copy)} WITH (FORCE)`),
  };
}

let admin: postgres.Sql | undefined;

/** On a connection that stays open for the next file of this worker, unless that is half a minute away. */
async function asAdmin(work: (sql: postgres.Sql) => Promise<unknown>): Promise<void> {
  admin ??= postgres(inject('postgresAdminUrl'), { max: 2, idle_timeout: 30, fetch_types: false, onnotice: () => {} });
  await work(admin);
}

async function withSql(url: string, work: (sql: postgres.Sql) => Promise<unknown>): Promise<void> {
  const sql = postgres(url, { max: 1, fetch_types: false, onnotice: () => {} });
  try {
    await work(sql);
  } finally {
    await sql.end();
  }
}

export interface TestStore {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** Orderly end. */
  stop(): Promise<void>;
  /** SIGKILL, as a crash. */
  kill(): Promise<void>;
  /** Starts it again on the same port with the same data, after stop(), kill(), or while it runs. */
  restart(): Promise<void>;
}

export interface TestPostgres extends TestStore {
  /** Its data folder. */
  readonly dir: string;
}

export interface TestRedis extends TestStore {
  /** Its data folder. */
  readonly dir: string;
  /** SIGSTOP: connections stay open and nobody answers. */
  pause(): void;
  resume(): void;
  /** For the end of a test file: the server may serve another one, as if it were new. */
  release(): Promise<void>;
}

type TestRedisOptions = Pick<RedisOptions, 'appendonly' | 'appendfsync' | 'args' | 'env' | 'password'>;

/** A Redis for one test. It keeps its data in memory only, unless `appendonly` is true. */
export async function startTestRedis(options: TestRedisOptions = {}): Promise<TestRedis> {
  const isPlain = Object.keys(options).length === 0;
  return (isPlain ? takeIdle() : undefined) ?? startNewRedis(options, isPlain);
}

async function startNewRedis(options: TestRedisOptions, isPlain: boolean): Promise<TestRedis> {
  const name = uniqueName('redis');
  const dir = path.join(scratchDir(), name);
  mkdirSync(dir);
  const start = (port?: number): Promise<RunningRedis> =>
    startRedis({
      appendonly: false,
      ...options,
      dir,
      name,
      runDir: scratchRunDir(),
      ...(port === undefined ? {} : { port }),
    });
  const server = Object.assign(
    restartable(await start(), (port) => start(port)),
    { dir },
  );
  const state = isPlain ? await stateOf(server) : null;
  const redis: TestRedis = Object.assign(server, { release: () => giveBack(redis, state) });
  return redis;
}

/**
 * Starts a Postgres for one test that stops or kills it. With `durable` it fsyncs, as in production.
 *
 * @param options.settings server settings, as in postgresql.conf
 */
export async function startTestPostgres(
  options: Pick<PostgresOptions, 'durable' | 'settings' | 'env'> = {},
): Promise<TestPostgres> {
  const dataDir = path.join(scratchDir(), uniqueName('postgres'));
  if (options.durable === true) return startPostgresIn(dataDir, options);
  const { dir, password } = inject('postgresTemplate');
  await copyFolder(dir, dataDir);
  return startPostgresIn(dataDir, { ...options, durable: false, password });
}

async function startPostgresIn(dataDir: string, options: Partial<PostgresOptions>): Promise<TestPostgres> {
  const given = { ...options, dataDir, runDir: scratchRunDir(), name: path.basename(dataDir) };
  const first = await startPostgres(given);
  const { password } = first;
  return Object.assign(
    restartable(first, (port) => startPostgres({ ...given, port, password })),
    { dir: dataDir },
  );
}

/** Server settings of a primary whose commits wait for the standby of `startTestStandby`. */
export const SYNCHRONOUS = { synchronous_standby_names: 'standby' };

/** Copies the data folder of a Postgres that is stopped. Fault proxies of this process go on meanwhile. @returns the copy */
export async function copyData({ dir }: TestPostgres): Promise<string> {
  const copy = path.join(scratchDir(), uniqueName('postgres_copy'));
  await copyFolder(dir, copy);
  return copy;
}

/** The copy belongs to the user who runs the server, who may not be us. */
async function copyFolder(from: string, to: string): Promise<void> {
  await promisify(execFile)('cp', ['-a', from, to]);
}

/**
 * Starts a hot standby of a Postgres, which is stopped and started again meanwhile, because its data folder is copied. It calls itself
 * 'standby' to the primary.
 *
 * @param options.port where it reaches the primary, if not at its own port
 */
export async function startTestStandby(
  primary: TestPostgres,
  { port = primary.port, ...options }: Pick<PostgresOptions, 'port' | 'env'> = {},
): Promise<TestPostgres> {
  await primary.stop();
  const dir = await copyData(primary);
  writeFileSync(path.join(dir, 'standby.signal'), '');
  await primary.restart();
  const { hostname: host, username: user, password } = new URL(primary.url);
  const line = { host, port, user, password, application_name: 'standby' };
  const primary_conninfo = Object.entries(line)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ');
  return startPostgresIn(dir, { ...options, durable: false, password, settings: { primary_conninfo } });
}

function restartable<Running extends RunningPostgres | RunningRedis>(
  first: Running,
  startAgain: (port: number) => Promise<Running>,
): Omit<TestRedis, 'dir' | 'release'> {
  let running = first;
  const { url, port } = first;
  const asRedis = (): RunningRedis => {
    if (!('pause' in running)) throw new Error('only a test Redis can be paused');
    return running;
  };
  return {
    url,
    port,
    get pid() {
      return running.pid;
    },
    stop: () => running.stop(),
    kill: () => running.kill(),
    restart: async () => {
      await running.stop();
      running = await startAgain(port);
      if (running.port !== port) throw new Error(`port ${port} was taken by another program meanwhile`);
    },
    pause: () => asRedis().pause(),
    resume: () => asRedis().resume(),
  };
}
