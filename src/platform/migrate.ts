import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Sql, Tx } from './postgres.ts';
import { madeBefore, StartRefused } from './start-refused.ts';

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
 * a migration twice.
 *
 * @returns the versions that this process applied
 * @throws StartRefused as `refuseOtherSchema`
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
  const current = await refuseOtherSchema(connection, migrations);
  await connection`
    CREATE TABLE IF NOT EXISTS schema_migrations (
      version int PRIMARY KEY, name text NOT NULL, digest text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())`;
  const missing = migrations.slice(current);
  for (const migration of missing) {
    await connection`BEGIN`;
    try {
      await connection.unsafe(migration.sql);
      await connection`
        INSERT INTO schema_migrations (version, name, digest)
        VALUES (${migration.version}, ${migration.name}, ${digestOf(migration)})`;
      await connection`COMMIT`;
    } catch (error) {
      await connection`ROLLBACK`;
      throw new Error(`migration ${migration.name} failed`, { cause: error });
    }
  }
  return missing.map(({ version }) => version);
}

const digestOf = ({ sql }: Migration): string => createHash('sha256').update(sql).digest('hex');

/**
 * Reads only.
 *
 * @returns the version of the database's schema; 0: none
 * @throws StartRefused when the schema is newer than this build knows, or came from other migrations than this build's
 */
export async function refuseOtherSchema(sql: Tx, migrations: readonly Migration[]): Promise<number> {
  const applied = await readApplied(sql);
  const isOther = migrations
    .slice(0, applied.length)
    .some((migration, i) => applied[i]?.name !== migration.name || applied[i]?.digest !== digestOf(migration));
  if (isOther) throw new StartRefused(madeBefore('the database'));
  if (applied.length > migrations.length) {
    throw new StartRefused(`${versions(applied.length, migrations)}: use a newer build`);
  }
  return applied.length;
}

type Applied = { readonly name: string; readonly digest: string | null };

/** In their order. Databases from before 0.1.0 have no digests, so the column has another name. */
async function readApplied(sql: Tx): Promise<readonly Applied[]> {
  const tables = await sql<{ exists: boolean }[]>`SELECT to_regclass('schema_migrations') IS NOT NULL AS exists`;
  if (tables[0]?.exists !== true) return [];
  return sql<Applied[]>`
    SELECT m.name, to_jsonb(m) ->> 'digest' AS digest FROM schema_migrations AS m ORDER BY m.version`;
}

const versions = (current: number, migrations: readonly Migration[]): string =>
  `the database has schema version ${current}, this build knows ${migrations.length}`;

/**
 * @throws StartRefused if the schema of the database is not exactly the one that this build knows, so that it must not write to it
 */
export async function checkSchema(sql: Sql, migrations: readonly Migration[]): Promise<void> {
  const current = await refuseOtherSchema(sql, migrations);
  if (current < migrations.length) {
    throw new StartRefused(
      `${versions(current, migrations)}: migrate it first, with \`main.js migrate\` or by starting the gateway`,
    );
  }
}
