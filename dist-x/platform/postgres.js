import { PostgresPool } from './postgres-pool.js';
import { templateTag } from './postgres-query.js';
export { connectionError, isPostgresUnavailable, sqlState, standby, violatedConstraint, WRONG_LAYOUT, } from './postgres-errors.js';
export { PostgresSession } from './postgres-session.js';
/**
 * Opens a pool. BIGINT columns arrive as numbers: every amount and count we store is below 2^53, and a larger value throws rather
 * than being rounded. Dates arrive as `Date`.
 *
 * Connections are made when they are needed. While Postgres refuses connections queries fail at once, and the first query after
 * Postgres is back succeeds.
 */
export function openPostgres(options) {
    const { query, begin, reserve, listen, end } = new PostgresPool(options);
    return Object.assign(templateTag(query), { begin, reserve, listen, end, maxConnections: options.maxConnections });
}
const DURABILITY = {
    fsync: 'a crash of its machine can lose or corrupt committed entries. Set it on.',
    full_page_writes: 'a crash of its machine can corrupt committed entries. Set it on.',
};
/** Warnings for the log at start: server settings with which a crash can lose or corrupt committed data. */
export async function durabilityWarnings(sql) {
    const rows = await sql `
    SELECT name, setting FROM pg_settings WHERE name = ANY(${Object.keys(DURABILITY)}::text[]) AND setting <> 'on'`;
    return rows.map(({ name, setting }) => `postgres runs with ${name}=${setting}: ${DURABILITY[name]}`);
}
//# sourceMappingURL=postgres.js.map