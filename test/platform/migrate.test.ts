import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { checkSchema, type Migration, migrate, readMigrations, refuseOtherSchema } from '../../src/platform/migrate.ts';
import { openPostgres, type Sql } from '../../src/platform/postgres.ts';
import { StartRefused } from '../../src/platform/start-refused.ts';
import { createDatabase } from '../support/stores.ts';

describe('reading migrations', () => {
  let folder: string;
  const folderOf = (...names: string[]): string => {
    folder = mkdtempSync(path.join(tmpdir(), 'tollgate-migrations-'));
    for (const name of names) writeFileSync(path.join(folder, name), 'SELECT 1');
    return folder;
  };
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('takes them in the order of their numbers', () => {
    const migrations = readMigrations(folderOf('0002_b.sql', '0001_a.sql', 'readme.md'));
    expect(migrations.map(({ version, name }) => [version, name])).toEqual([
      [1, '0001_a.sql'],
      [2, '0002_b.sql'],
    ]);
  });

  it.each([
    ['a gap', ['0001_a.sql', '0003_c.sql'], 'not numbered'],
    ['a number used twice', ['0001_a.sql', '0001_b.sql'], 'not numbered'],
    ['another form of name', ['1_a.sql'], 'is not NNNN_name.sql'],
  ])('refuses %s', (_, names, message) => {
    expect(() => readMigrations(folderOf(...names))).toThrow(message);
  });
});

describe('migrating a database', () => {
  let database: Awaited<ReturnType<typeof createDatabase>>;
  let pools: Sql[];
  beforeAll(async () => {
    database = await createDatabase();
    pools = [0, 1, 2].map(() => openPostgres({ url: database.url, maxConnections: 1, applicationName: 'test' }));
  });
  afterAll(async () => {
    await Promise.all(pools.map((sql) => sql.end({ timeout: 1 })));
    await database.drop();
  });

  const migration = (version: number, sql: string): Migration => ({ version, name: `000${version}_x.sql`, sql });
  const first = migration(1, 'CREATE TABLE things (n int); INSERT INTO things VALUES (1)');
  const second = migration(2, 'INSERT INTO things VALUES (2)');
  const things = async () =>
    (await (pools[0] as Sql)<{ n: number }[]>`SELECT n FROM things ORDER BY n`).map(({ n }) => n);

  it('applies each migration once, although several processes start together', async () => {
    const applied = await Promise.all(pools.map((sql) => migrate(sql, [first])));
    expect(applied.flat()).toEqual([1]);
    expect(await migrate(pools[0] as Sql, [first, second])).toEqual([2]);
    expect(await things()).toEqual([1, 2]);
  });

  it('keeps nothing of a failed migration, and applies the migration when it is repaired', async () => {
    const broken = migration(3, 'INSERT INTO things VALUES (3); SELECT 1 / 0');
    await expect(migrate(pools[0] as Sql, [first, second, broken])).rejects.toThrow('0003_x.sql failed');
    expect(await things()).toEqual([1, 2]);
    expect(await migrate(pools[1] as Sql, [first, second, migration(3, 'SELECT 1')])).toEqual([3]);
  });

  const refusal = (work: Promise<unknown>): Promise<string> =>
    work.then(
      () => 'none',
      (error: unknown) => (error instanceof StartRefused ? error.message : `no refusal: ${error}`),
    );

  it('refuses a database whose schema is newer than this build knows', async () => {
    const sql = pools[0] as Sql;
    for (const act of [migrate, refuseOtherSchema, checkSchema]) {
      expect(await refusal(act(sql, [first]))).toContain('schema version 3, this build knows 1: use a newer build');
    }
  });

  const third = migration(3, 'SELECT 1');
  const fourth = migration(4, 'INSERT INTO things VALUES (4)');
  it.each<[string, Migration[]]>([
    ['the text of a migration', [first, { ...second, sql: `${second.sql};` }, third, fourth]],
    ['the name of a migration', [{ ...first, name: '0001_y.sql' }, second, third, fourth]],
    ['a migration, in a build that knows fewer', [{ ...first, sql: 'SELECT 1' }]],
  ])('refuses a database when %s differs, and writes nothing', async (_, migrations) => {
    const sql = pools[0] as Sql;
    for (const act of [migrate, refuseOtherSchema, checkSchema]) {
      expect(await refusal(act(sql, migrations))).toBe(
        'the database was made before 0.1.0: start with an empty store (`npm start`: delete .data)',
      );
    }
    expect(await things()).toEqual([1, 2]);
    expect(await refuseOtherSchema(sql, [first, second, third, fourth])).toBe(3);
  });

  it('refuses a database whose migrations have no digests, and leaves the database unchanged', async () => {
    const sql = pools[0] as Sql;
    await sql`CREATE SCHEMA before`;
    await sql`SET search_path = before`;
    await sql`CREATE TABLE schema_migrations (version int PRIMARY KEY, name text NOT NULL, applied_at timestamptz)`;
    await sql`INSERT INTO schema_migrations (version, name) SELECT n, ${first.name} FROM generate_series(1, 17) AS n`;
    for (const act of [migrate, refuseOtherSchema, checkSchema]) {
      expect(await refusal(act(sql, [first]))).toContain('made before 0.1.0');
    }
    const tables = await sql`
      SELECT table_name, count(*)::int AS columns FROM information_schema.columns WHERE table_schema = 'before' GROUP BY 1`;
    expect(tables).toEqual([{ table_name: 'schema_migrations', columns: 3 }]);
  });

  it('lets a program that does not migrate use only its own schema', async () => {
    const sql = pools[1] as Sql;
    expect(await refusal(checkSchema(sql, [first, second, third]))).toBe('none');
    expect(await refusal(checkSchema(sql, [first, second, third, fourth]))).toContain('migrate it first');
  });
});
