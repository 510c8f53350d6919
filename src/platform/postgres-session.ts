import { Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import {
  type ClientHooks,
  connectionError,
  DEFAULT_STATEMENT_TIMEOUT_MS,
  FOREIGN_DATABASE,
  openClient,
  type PostgresOptions,
  type Sql,
  sqlState,
} from './postgres-client.ts';

/** How much longer than the server we wait for the end of a statement. */
const NETWORK_MS = 5_000;
const GOODBYE_MS = 1_000;
/** Undefined table or column: the database has no such schema. */
const NO_INSTALLATION = /^(42P01|42703)$/;

/**
 * Events are deleted from Redis, and credits confirmed, on the word of a commit. A server that is configured with `off` gives
 * it before it has written anything: 51 charged calls became 1 row after an immediate stop. Asked of the transaction, because
 * poolers refuse or drop parameters of the session, and only where it is less: `remote_apply` stays what it is. In the trip
 * of the BEGIN it costs no other one, and a commit that wrote nothing does not wait.
 */
const DURABLE = `;SELECT set_config('synchronous_commit', 'on', true)
  WHERE current_setting('synchronous_commit') IN ('off', 'local')`;

/** The part of a query of postgres.js 3.4.9 that its types leave out. */
type CopyQuery = {
  writable(): Promise<Writable>;
  resolve(result: { count: number }): void;
  reject(error: unknown): void;
};

/**
 * One connection with one life: once it is gone, everything on it fails, for good.
 *
 * postgres.js 3.4.9 by itself reconnects under the same handle. Then the rest of a transaction runs outside of it; its
 * own ROLLBACK, written to a connection that closed, throws from a timer and ends the process (porsager/postgres issues
 * 1208, 1154); and what was left unsent when a connection broke is sent before the greeting of the next, which then never
 * comes about: in a test, 25 times `pg_terminate_backend` left a pool of 10 with none that worked. Here nothing is
 * written after the close, and no client is used for a second connection.
 */
export class PostgresSession {
  readonly #client: Sql;
  readonly #drop: () => void;
  readonly #timeoutMs: number;
  readonly #onClose: (() => void) | undefined;
  readonly #installation: string | undefined;
  /** Whether the database is ours: asked once, before anything else. */
  #comparison: Promise<void> | null = null;
  #open = true;
  #foreign: Error | null = null;

  /** Connects with the first query. `timeoutMs` bounds every query as seen from here, a silent network included. */
  constructor(
    options: Omit<PostgresOptions, 'maxConnections'>,
    timeoutMs: number = (options.statementTimeoutMs ?? DEFAULT_STATEMENT_TIMEOUT_MS) + NETWORK_MS,
    hooks: Partial<ClientHooks> = {},
  ) {
    this.#timeoutMs = timeoutMs;
    this.#onClose = hooks.onClose;
    this.#installation = options.installation;
    ({ sql: this.#client, drop: this.#drop } = openClient(options, { ...hooks, onClose: () => this.close() }));
  }

  get open(): boolean {
    return this.#open;
  }

  /** What says that the database is another installation's, if it is. */
  get foreign(): Error | null {
    return this.#foreign;
  }

  /**
   * Runs what `build` makes of the client.
   *
   * @throws PostgresError from the server (the session goes on, once it was compared), anything else when the session is lost
   */
  async run<T>(build: (client: Sql) => PromiseLike<T>): Promise<T> {
    if (!this.#open) throw connectionError('CONNECTION_CLOSED', 'the connection to postgres is gone');
    const timer = setTimeout(() => this.close(), this.#timeoutMs);
    try {
      if (this.#installation !== undefined) {
        this.#comparison ??= this.#compareOrClose(this.#installation);
        await this.#comparison;
      }
      return await build(this.#client);
    } catch (error) {
      if (sqlState(error) === undefined) this.close();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** What keeps it from being compared (a lock, a cancelled query) passes; this session would keep the failure for good. */
  async #compareOrClose(installation: string): Promise<void> {
    try {
      await this.#compare(installation);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** The name in the URL may lead to another database than it did: a restored one, another server, a stranger's. */
  async #compare(installation: string): Promise<void> {
    let found = 'none';
    try {
      const rows = (await this.#client.unsafe('SELECT id FROM installation')) as unknown as { id: string }[];
      found = rows[0]?.id ?? found;
    } catch (error) {
      if (!NO_INSTALLATION.test(sqlState(error) ?? '')) throw error;
    }
    if (found === installation) return;
    const message = `this Postgres database belongs to another installation: its id is ${found}, that of ours ${installation}`;
    this.#foreign = connectionError(FOREIGN_DATABASE, message);
    throw this.#foreign;
  }

  /** Runs one statement; with parameters it is prepared once. Array parameters may be given as array literals. */
  async query<Row extends object>(text: string, parameters: readonly (string | number)[] = []): Promise<Row[]> {
    const options = { prepare: parameters.length > 0 };
    return (await this.run((client) => client.unsafe(text, parameters as string[], options))) as unknown as Row[];
  }

  /** Runs `COPY … FROM STDIN` with these chunks of data. @returns the number of rows that were stored */
  async copyIn(text: string, chunks: Iterable<Buffer>): Promise<number> {
    return this.run(async (client) => {
      const query = client.unsafe(text) as unknown as CopyQuery;
      const stream = await query.writable();
      // postgres.js says that the query is over by settling it a second time, which nobody can see; the stream would
      // wait for ever after an error that the server finds behind the last row (a key that is there already).
      const ended = new Promise<{ count: number }>((resolve, reject) => {
        query.resolve = resolve;
        query.reject = reject;
      });
      // A failure on either side ends the query, and is told there.
      pipeline(Readable.from(chunks), stream).catch(() => {});
      return (await ended).count;
    });
  }

  /** Runs `work` between BEGIN and a COMMIT that is on the disk; ROLLBACK when it throws. @param mode such as 'READ ONLY' */
  async transaction<T>(work: () => Promise<T>, mode = ''): Promise<T> {
    try {
      await this.query(`BEGIN ${mode}${DURABLE}`);
      const result = await work();
      const committed = (await this.query('COMMIT')) as unknown as { command: string };
      // What Postgres does with a transaction one of whose statements failed, even if `work` did not mind.
      if (committed.command !== 'COMMIT') throw new Error('the transaction was rolled back: a statement in it failed');
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
    // It said goodbye; a network that swallows that must not keep the socket.
    setTimeout(this.#drop, GOODBYE_MS).unref();
    this.#onClose?.();
  }
}
