import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type Migration, migrate, readMigrations } from '../../src/platform/migrate.ts';
import { openPostgres, type Sql } from '../../src/platform/postgres.ts';
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

  it('keeps nothing of a migration that fails, and applies it when it is mended', async () => {
    const broken = migration(3, 'INSERT INTO things VALUES (3); SELECT 1 / 0');
    await expect(migrate(pools[0] as Sql, [first, second, broken])).rejects.toThrow('0003_x.sql failed');
    expect(await things()).toEqual([1, 2]);
    expect(await migrate(pools[1] as Sql, [first, second, migration(3, 'SELECT 1')])).toEqual([3]);
  });

  it('refuses a database whose schema is newer than this build knows', async () => {
    await expect(migrate(pools[0] as Sql, [first])).rejects.toThrow('schema version 3, this build knows 1');
  });
});
