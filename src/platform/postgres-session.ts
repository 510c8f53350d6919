import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import {
  type Client,
  type ClientHooks,
  connectionError,
  FOREIGN_DATABASE,
  openClient,
  type PostgresOptions,
  type Row,
  type Rows,
  STATEMENT_TIMEOUT_MS,
  sqlState,
} from './postgres-client.ts';
import type { Value } from './postgres-query.ts';

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
  readonly #client: Client;
  readonly #drop: () => void;
  readonly #timeoutMs: number;
  readonly #onClose: (() => void) | undefined;
  readonly #installation: string | undefined;
  #comparison: Promise<void> | null = null;
  #isCompared = false;
  #open = true;

  /** Connects with the first query. `timeoutMs` bounds every query as seen from here, a silent network included. */
  constructor(
    options: Omit<PostgresOptions, 'maxConnections'>,
    timeoutMs: number = STATEMENT_TIMEOUT_MS + NETWORK_MS,
    hooks: Partial<ClientHooks> = {},
  ) {
    this.#timeoutMs = timeoutMs;
    this.#onClose = hooks.onClose;
    this.#installation = options.installation;
    ({ client: this.#client, drop: this.#drop } = openClient(options, { ...hooks, onClose: () => this.close() }));
  }

  get open(): boolean {
    return this.#open;
  }

  /** @throws PostgresError from the server (the session goes on, once it was compared), anything else when the session is lost */
  async #run<T>(work: () => PromiseLike<T>): Promise<T> {
    if (!this.#open) throw connectionError('CONNECTION_CLOSED', 'the connection to postgres is gone');
    const timer = setTimeout(() => this.close(), this.#timeoutMs);
    try {
      this.#comparison ??= this.#compare();
      await this.#comparison;
      return await work();
    } catch (error) {
      // What kept the database from being compared (a lock, a cancelled query) passes; this session would keep the failure.
      if (!this.#isCompared || sqlState(error) === undefined) this.close();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** The name in the URL may lead to another database than it did: a restored one, another server, a stranger's. */
  async #compare(): Promise<void> {
    if (this.#installation !== undefined) {
      const found = await this.#readInstallation();
      if (found !== this.#installation) {
        const message = `this Postgres database belongs to another installation: its id is ${found}, that of ours ${this.#installation}`;
        throw connectionError(FOREIGN_DATABASE, message);
      }
    }
    this.#isCompared = true;
  }

  async #readInstallation(): Promise<string> {
    try {
      const [row] = await this.#client.unsafe('SELECT id FROM installation');
      return row?.id ?? 'none';
    } catch (error) {
      if (NO_INSTALLATION.test(sqlState(error) ?? '')) return 'none';
      throw error;
    }
  }

  /** Runs one statement, or several without parameters. With parameters it is prepared once. */
  query<T extends object = Row>(text: string, parameters: readonly Value[] = []): Promise<Rows<T[]>> {
    const options = { prepare: parameters.length > 0 };
    return this.#run(() => this.#client.unsafe<T[]>(text, parameters as string[], options));
  }

  /** Runs `COPY … FROM STDIN` with these chunks of data. @returns the number of rows that were stored */
  copyIn(text: string, chunks: Iterable<Buffer>): Promise<number> {
    return this.#run(async () => {
      const query = this.#client.unsafe(text);
      const stream = await query.writable();
      // postgres.js 3.4.9 says that the query is over by settling it a second time, which nobody can see; the stream would
      // wait for ever after an error that the server finds behind the last row (a key that is there already). This is the
      // only place that relies on how postgres.js works inside.
      const ended = new Promise<{ count: number }>((resolve, reject) => Object.assign(query, { resolve, reject }));
      // A failure on either side ends the query, and is told there.
      pipeline(Readable.from(chunks), stream).catch(() => {});
      return (await ended).count;
    });
  }

  /** Runs `work` between BEGIN and a COMMIT that is on the disk; ROLLBACK when it throws. @param mode such as 'READ ONLY' */
  async transaction<T>(work: () => PromiseLike<T>, mode = ''): Promise<T> {
    try {
      await this.query(`BEGIN ${mode}${DURABLE}`);
      const result = await work();
      const { command } = await this.query('COMMIT');
      // What Postgres does with a transaction one of whose statements failed, even if `work` did not mind.
      if (command !== 'COMMIT') throw new Error('the transaction was rolled back: a statement in it failed');
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
