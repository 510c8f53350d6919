import { migrate, readMigrations } from '../../src/platform/migrate.ts';
import { openPostgres } from '../../src/platform/postgres.ts';

/** The database of a test run that others are copied from. Nobody may stay connected to it. */
export const MIGRATED = 'migrated';

/** @param adminUrl of any database of the server */
export async function makeMigrated(adminUrl: string): Promise<void> {
  const admin = openPostgres({ url: adminUrl, maxConnections: 1, applicationName: 'test' });
  await admin.unsafe(`CREATE DATABASE ${MIGRATED}`);
  await admin.end();
  const url = Object.assign(new URL(adminUrl), { pathname: `/${MIGRATED}` }).href;
  const sql = openPostgres({ url, maxConnections: 1, applicationName: 'test' });
  await migrate(sql, readMigrations('migrations'));
  await sql.end();
}
