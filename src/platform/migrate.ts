import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Sql, Tx } from './postgres.ts';

/** Key of the advisory lock that every process takes before it migrates. The number is arbitrary. */
const MIGRATION_LOCK = 7_014_655_001;
const FILE = /^(\d{4})_[a-z0-9_]+\.sql$/;

export type Migration = { readonly version: number; readonly name: string; readonly sql: string };

/** Reads `NNNN_name.sql` files. Throws when a number is missing or used twice, because their order would then be in doubt. */
export function readMigrations(folder: string): Migration[] {
  const migrations = readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .sort()
    .map((name) => {
      const match = FILE.exec(name);
      if (match === null) throw new Error(`migration file name is not NNNN_name.sql: ${name}`);
      return { version: Number(match[1]), name, sql: readFileSync(join(folder, name), 'utf8') };
    });
  migrations.forEach((migration, index) => {
    if (migration.version !== index + 1) throw new Error(`migrations are not numbered 1..n: ${migration.name}`);
  });
  return migrations;
}

/**
 * Applies the missing migrations, each in its own transaction. An advisory lock keeps processes that start together from applying
 * a migration twice. Refuses a database whose schema is newer than this code knows.
 *
 * @returns the versions that this process applied
 */
export function migrate(sql: Sql, migrations: readonly Migration[]): Promise<number[]> {
  return sql.reserve(async (connection) => {
    await connection`SELECT pg_advisory_lock(${MIGRATION_LOCK})`;
    try {
      return await applyMissing(connection, migrations);
    } finally {
      // Unlocking fails only when the connection is lost, and then Postgres has dropped the lock with it.
      await connection`SELECT pg_advisory_unlock(${MIGRATION_LOCK})`.catch(() => {});
    }
  });
}

async function applyMissing(connection: Tx, migrations: readonly Migration[]): Promise<number[]> {
  await connection`
    CREATE TABLE IF NOT EXISTS schema_migrations (
      version int PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())`;
  const rows = await connection<{ version: number }[]>`SELECT max(version) AS version FROM schema_migrations`;
  const current = rows[0]?.version ?? 0;
  if (current > migrations.length) {
    throw new Error(
      `the database has schema version ${current}, this build knows ${migrations.length}: run a newer build`,
    );
  }
  const missing = migrations.slice(current);
  for (const migration of missing) {
    await connection`BEGIN`;
    try {
      await connection.unsafe(migration.sql);
      await connection`INSERT INTO schema_migrations (version, name) VALUES (${migration.version}, ${migration.name})`;
      await connection`COMMIT`;
    } catch (error) {
      await connection`ROLLBACK`;
      throw new Error(`migration ${migration.name} failed`, { cause: error });
    }
  }
  return missing.map(({ version }) => version);
}

/** @returns why this build must not write to the database as it is; null if its schema is the one that this build knows */
export async function checkSchema(sql: Sql, migrations: readonly Migration[]): Promise<string | null> {
  const tables = await sql<{ exists: boolean }[]>`SELECT to_regclass('schema_migrations') IS NOT NULL AS exists`;
  const rows = tables[0]?.exists
    ? await sql<{ version: number | null }[]>`SELECT max(version) AS version FROM schema_migrations`
    : [];
  const current = rows[0]?.version ?? 0;
  if (current === migrations.length) return null;
  const versions = `the database has schema version ${current}, this build knows ${migrations.length}`;
  return current > migrations.length
    ? `${versions}: use a newer build`
    : `${versions}: migrate it first, with \`main.js migrate\` or by starting the gateway`;
}
