import postgres from 'postgres';

/** Makes an error with a code that `isPostgresUnavailable` recognizes. */
export function connectionError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}

/** SQLSTATE of an error from the server (`23505` unique violation, …), or undefined for other errors. */
export function sqlState(error: unknown): string | undefined {
  return error instanceof postgres.PostgresError ? error.code : undefined;
}

/** The name of the constraint that a statement violated, or undefined for any other error. */
export function violatedConstraint(error: unknown): string | undefined {
  return error instanceof postgres.PostgresError ? error.constraint_name : undefined;
}

/** Code of the error for a database that belongs to another installation. It counts as away. */
export const FOREIGN_DATABASE = 'FOREIGN_DATABASE';

/** Code of the error for a server that is a standby, which may lag behind the primary. It counts as away. */
const STANDBY = 'STANDBY_DATABASE';
export const standby = (): Error => connectionError(STANDBY, 'this Postgres is a standby, not the primary');

/** Whether the URL led to a database that must not be used: the next connection would most likely reach the same one. */
export function isWrongDatabase(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  return code === FOREIGN_DATABASE || code === STANDBY;
}

/**
 * Code of the error for a commit that returned with a warning. The transaction is committed on this server, but may be missing on
 * the synchronous standby that would be promoted. So it counts as failed, although its data may be stored.
 */
export const COMMIT_IN_DOUBT = 'COMMIT_IN_DOUBT';

/**
 * Code of the error for a Postgres that lacks flushes that it had stored (ledger/history/). It counts as away until the right one
 * is back.
 */
const POSTGRES_OLDER = 'POSTGRES_OLDER';
export const olderPostgres = (shards: readonly number[]): Error =>
  connectionError(
    POSTGRES_OLDER,
    `this Postgres is older than Redis: it lacks calls that were stored (shards ${shards.join(', ')})`,
  );
export const isOlderPostgres = (error: unknown): boolean => (error as { code?: unknown }).code === POSTGRES_OLDER;

/**
 * Code of the error for a Redis that does not say which flushes Postgres must have. For code that moves money, Postgres then counts
 * as away.
 */
const NOT_COMPARED = 'POSTGRES_NOT_COMPARED';
export const uncomparedPostgres = (cause: unknown): Error =>
  Object.assign(connectionError(NOT_COMPARED, 'Redis does not say whether this Postgres is the right one'), { cause });

export const isUncomparedPostgres = (error: unknown): boolean => (error as { code?: unknown }).code === NOT_COMPARED;

/**
 * Code of the error when the data in Redis do not have the layout that this process was started with (ledger/layout.ts). The
 * database then counts as away.
 */
export const WRONG_LAYOUT = 'WRONG_LAYOUT';

const UNAVAILABLE = [
  FOREIGN_DATABASE,
  STANDBY,
  COMMIT_IN_DOUBT,
  POSTGRES_OLDER,
  WRONG_LAYOUT,
  NOT_COMPARED,
  // Codes of postgres.js and of this folder, then those of sockets and of name resolution.
  'CONNECT_TIMEOUT|CONNECTION_(CLOSED|DESTROYED|ENDED|CONNECT_TIMEOUT)',
  'ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN',
  // SQLSTATEs of the server: shutdown, crash, cannot connect now; connection exceptions; too many connections; a cancelled
  // statement; a server that only reads.
  '57P0.|08...|53300|57014|25006',
];
const UNAVAILABLE_CODE = new RegExp(`^(${UNAVAILABLE.join('|')})$`);

/** Whether the error means that Postgres is away (or shutting down, or starting up), and not that the statement is wrong. */
export function isPostgresUnavailable(error: unknown): boolean {
  return error instanceof Error && UNAVAILABLE_CODE.test(String((error as Error & { code?: unknown }).code));
}
