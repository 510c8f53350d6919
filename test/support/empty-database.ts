import type { Sql } from '../../src/platform/postgres.ts';

/** What a start has written: the schema's version, and whose database it is. */
const OF_A_START = ['schema_migrations', 'installation'];

/** The tables of the schema: those of any test's database. */
let tables: readonly string[] | undefined;

/**
 * Deletes every row of the tables of a migrated database, but not what a start has written. It waits for transactions that write.
 *
 * TRUNCATE takes twenty times the CPU: it makes new files for every index, and each session forgets what it knows of the tables.
 *
 * @param kept  tables that keep their rows besides
 */
export async function emptyDatabase(sql: Sql, kept: readonly string[] = []): Promise<void> {
  tables ??= await tablesOf(sql);
  const names = tables.filter((name) => !kept.includes(name));
  // Foreign keys are triggers, and a replica leaves triggers to its primary.
  await sql.unsafe(`
    SET LOCAL session_replication_role = replica;
    LOCK TABLE ${names.join(', ')} IN EXCLUSIVE MODE;
    ${names.map((name) => `DELETE FROM ${name}`).join(';')}`);
}

async function tablesOf(sql: Sql): Promise<readonly string[]> {
  const rows = await sql<{ name: string }[]>`
    SELECT relname AS name FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
      AND relname <> ALL (${OF_A_START}::text[])`;
  return rows.map(({ name }) => name);
}
