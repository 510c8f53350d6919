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
  /** More server settings of the session, e.g. `lock_timeout`. */
  readonly settings?: Readonly<Record<string, string | number>>;
};

/** What every connection has in common, pooled or not. */
function clientOptions(options: PostgresOptions) {
  return {
    max: options.maxConnections,
    connect_timeout: 5,
    idle_timeout: 0,
    // Exponential by default up to 20 s: an outage must end within seconds of Postgres coming back.
    backoff: (retries: number) => Math.min(0.1 * 2 ** retries, 1),
    onnotice: () => {},
    connection: {
      application_name: options.applicationName,
      statement_timeout: options.statementTimeoutMs ?? 15_000,
      ...options.settings,
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
  };
}

/**
 * Opens a pool. BIGINT columns arrive as numbers: every amount and count we store is below 2^53, and a value that is
 * not throws rather than rounds. Dates arrive as `Date`.
 */
export function openPostgres(options: PostgresOptions): Sql {
  return postgres(options.url, clientOptions(options));
}

/**
 * One connection with one life, for whoever does other work in the middle of a transaction or holds session locks: once
 * the connection is gone, everything on it fails, for good. `postgres` 3.4.9 itself would reconnect under the same handle
 * (the rest of a transaction then runs outside of it), or die: its own ROLLBACK on a connection that closed throws from a
 * timer, which ends the process (porsager/postgres issues 1208, 1154). Here nothing is ever written after the close.
 */
export class PostgresSession {
  readonly #client: Sql;
  readonly #timeoutMs: number;
  #open = true;

  /** Connects with the first query. `timeoutMs` bounds every query as seen from here, a silent network included. */
  constructor(options: Omit<PostgresOptions, 'maxConnections'>, timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
    this.#client = postgres(options.url, {
      ...clientOptions({ ...options, maxConnections: 1 }),
      max_lifetime: null,
      onclose: () => this.close(),
    });
  }

  get open(): boolean {
    return this.#open;
  }

  /**
   * Runs one statement; it is prepared once. Array parameters are given as Postgres array literals.
   *
   * @throws PostgresError from the server (the session goes on), anything else when the session is lost
   */
  async query<Row extends object>(text: string, parameters: readonly (string | number)[] = []): Promise<Row[]> {
    if (!this.#open) throw new ConnectionLost();
    const timer = setTimeout(() => this.close(), this.#timeoutMs);
    try {
      return (await this.#client.unsafe(text, parameters as string[], { prepare: parameters.length > 0 })) as Row[];
    } catch (error) {
      if (sqlState(error) === undefined) this.close();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Runs `work` between BEGIN and COMMIT; ROLLBACK when it throws. Statements of `work` go through `query`. */
  async transaction<T>(work: () => Promise<T>): Promise<T> {
    await this.query('BEGIN');
    try {
      const result = await work();
      await this.query('COMMIT');
      return result;
    } catch (error) {
      // A failed rollback closes the session, and the server rolls back.
      if (this.#open) await this.query('ROLLBACK').catch(() => this.close());
      throw error;
    }
  }

  /** Ends the connection at once; the server rolls back what was open and releases the session's locks. */
  close(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#client.end({ timeout: 0 }).catch(() => {});
  }
}

/** The session ended before this statement was sent. */
class ConnectionLost extends Error {
  readonly code = 'CONNECTION_CLOSED';

  constructor() {
    super('the connection to postgres is gone');
    this.name = 'ConnectionLost';
  }
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
