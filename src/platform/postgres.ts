import { type PostgresOptions, PostgresPool } from './postgres-pool.ts';
import { type Tx, templateTag } from './postgres-query.ts';

export {
  connectionError,
  isOlderPostgres,
  isPostgresUnavailable,
  isUncomparedPostgres,
  olderPostgres,
  sqlState,
  standby,
  uncomparedPostgres,
  violatedConstraint,
  WRONG_LAYOUT,
} from './postgres-errors.ts';
export type { Subscription } from './postgres-listener.ts';
export type { Tx } from './postgres-query.ts';
export { PostgresSession } from './postgres-session.ts';

/** A pool as a template tag: `sql\`SELECT …\`` runs on any of its connections. */
export type Sql = Tx & Pick<PostgresPool, 'begin' | 'reserve' | 'listen' | 'end'> & { readonly maxConnections: number };

/**
 * Opens a pool. BIGINT columns are read as numbers: every stored amount and count is below 2^53, and a larger value throws instead
 * of being rounded. Dates are read as `Date`.
 *
 * Connections are made when they are needed. While Postgres refuses connections, queries fail at once, and the first query after
 * its return succeeds.
 */
export function openPostgres(options: PostgresOptions): Sql {
  const { query, begin, reserve, listen, end } = new PostgresPool(options);
  return Object.assign(templateTag(query), { begin, reserve, listen, end, maxConnections: options.maxConnections });
}

const DURABILITY: Readonly<Record<string, string>> = {
  fsync: 'a crash of its machine can lose or corrupt committed entries. Set it on.',
  full_page_writes: 'a crash of its machine can corrupt committed entries. Set it on.',
};

/** Warnings for the log at start: server settings with which a crash can lose or corrupt committed data. */
export async function durabilityWarnings(sql: Sql): Promise<string[]> {
  const rows = await sql<{ name: string; setting: string }[]>`
    SELECT name, setting FROM pg_settings WHERE name = ANY(${Object.keys(DURABILITY)}::text[]) AND setting <> 'on'`;
  return rows.map(({ name, setting }) => `postgres runs with ${name}=${setting}: ${DURABILITY[name]}`);
}
