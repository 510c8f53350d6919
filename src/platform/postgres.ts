import postgres from 'postgres';

/** The only importer of postgres.js. `Sql` is its tagged-template client; `Tx` the same inside a transaction. */
export type Sql = postgres.Sql<{ bigint: number }>;
export type Tx = postgres.TransactionSql<{ bigint: number }>;
/** A reserved connection: session-level locks live and die with it. */
export type ReservedSql = postgres.ReservedSql<{ bigint: number }>;

export type PostgresOptions = {
  readonly url: string;
  readonly maxConnections: number;
  readonly applicationName: string;
  /** Server-side bound on any statement. */
  readonly statementTimeoutMs?: number;
};

/**
 * Opens a pool. BIGINT columns arrive as numbers: every amount and count we store is below 2^53, and a value that is
 * not throws rather than rounds. Dates arrive as `Date`.
 */
export function openPostgres(options: PostgresOptions): Sql {
  return postgres(options.url, {
    max: options.maxConnections,
    connect_timeout: 5,
    idle_timeout: 0,
    // Exponential by default up to 20 s: an outage must end within seconds of Postgres coming back.
    backoff: (retries: number) => Math.min(0.1 * 2 ** retries, 1),
    onnotice: () => {},
    connection: {
      application_name: options.applicationName,
      statement_timeout: options.statementTimeoutMs ?? 15_000,
    },
    types: {
      bigint: {
        to: 20,
        from: [20],
        serialize: (value: number) => String(value),
        parse: (text: string) => {
          const value = Number(text);
          if (!Number.isSafeInteger(value)) throw new RangeError(`bigint out of safe range: ${text}`);
          return value;
        },
      },
    },
  });
}

/** SQLSTATE of an error from the server (`23505` unique violation, …), or undefined for anything else. */
export function sqlState(error: unknown): string | undefined {
  return error instanceof postgres.PostgresError ? error.code : undefined;
}

const CONNECTION_CODES = new Set([
  'CONNECT_TIMEOUT',
  'CONNECTION_CLOSED',
  'CONNECTION_DESTROYED',
  'CONNECTION_ENDED',
  'CONNECTION_CONNECT_TIMEOUT',
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
]);

/** Whether the error says 'Postgres is away' (shutting down and starting up included) rather than 'the statement is wrong'. */
export function isPostgresUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = (error as Error & { code?: unknown }).code;
  if (typeof code !== 'string') return false;
  // 57P01–57P03: shutdown, crash, cannot connect now; 08xxx: connection exceptions; 53300: too many connections.
  return CONNECTION_CODES.has(code) || /^(57P0|08|53300|57014)/.test(code);
}
