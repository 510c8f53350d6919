import { makePartitions } from '../../src/ledger/writing/partitions.ts';
import { migrate, readMigrations } from '../../src/platform/migrate.ts';
import { openPostgres, PostgresSession } from '../../src/platform/postgres.ts';

/** The database of a test run that others are copied from. Nobody may stay connected to it. */
export const MIGRATED = 'migrated';
/** The same as the first writer leaves it: with partitions of this week's days. Making them takes more CPU than copying a database. */
export const WITH_DAYS = 'migrated_with_days';

/** @param adminUrl of any database of the server */
export async function makeMigrated(adminUrl: string): Promise<void> {
  const admin = openPostgres({ url: adminUrl, maxConnections: 1, applicationName: 'test' });
  const urlOf = (database: string): string => Object.assign(new URL(adminUrl), { pathname: `/${database}` }).href;
  await admin.unsafe(`CREATE DATABASE ${MIGRATED}`);
  const sql = openPostgres({ url: urlOf(MIGRATED), maxConnections: 1, applicationName: 'test' });
  await migrate(sql, readMigrations('migrations'));
  await sql.end();
  await admin.unsafe(`CREATE DATABASE ${WITH_DAYS} TEMPLATE ${MIGRATED}`);
  await admin.end();
  const session = new PostgresSession({ url: urlOf(WITH_DAYS), applicationName: 'test' });
  const warn = (_: object, message: string): void => {
    throw new Error(message);
  };
  await makePartitions(session, Date.now(), { warn });
  session.close();
}
