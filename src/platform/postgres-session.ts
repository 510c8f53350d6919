import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import postgres from 'postgres';
import { connectionError, FOREIGN_DATABASE, sqlState } from './postgres-errors.ts';
import type { Row, Rows, Value } from './postgres-query.ts';
import { VALUE_TYPES } from './postgres-values.ts';

export type SessionOptions = {
  readonly url: string;
  readonly applicationName: string;
  /** More server settings of the session, e.g. `lock_timeout`. */
  readonly settings?: Readonly<Record<string, string | number>>;
  /** `installation.id` of the database that this must be. The session compares before its first query; without an id, never. */
  readonly installation?: string;
};

type Hooks = { readonly onClose?: () => void; readonly onNotify?: (payload: string) => void };

/** The server ends a statement that takes longer. */
const STATEMENT_TIMEOUT_MS = 15_000;
/** How much longer than that the session waits, for a network that is slow. Then it gives the connection up. */
const NETWORK_MS = 5_000;
/** Bounds the connection to each host of the URL, and then the server's greeting. Beyond it the first query fails. */
const CONNECT_TIMEOUT_MS = 5_000;
/** How long the socket of a closed session may take to send its goodbye. Then it is destroyed. */
const GOODBYE_MS = 1_000;
/** SQLSTATE of an undefined table or column: the database is not one of ours. */
const NO_INSTALLATION = /^(42P01|42703)$/;

/**
 * The writer deletes events from Redis, and credits are confirmed, when Postgres says that a transaction is committed. A server
 * with `synchronous_commit = off` says so before it has written anything: an immediate stop turned 51 charged calls into 1 row.
 * The transaction sets it and not the session, because connection poolers refuse or drop settings of a session; and only a
 * weaker setting is raised, so `remote_apply` stays. It travels with the BEGIN, and a commit that wrote nothing does not wait.
 */
const DURABLE = `;SELECT set_config('synchronous_commit', 'on', true)
  WHERE current_setting('synchronous_commit') IN ('off', 'local')`;

/**
 * One connection with one life: once the connection is gone, everything on the session fails, for good.
 *
 * postgres.js 3.4.9 by itself reconnects under the same handle. Then the rest of a transaction runs outside of the
 * transaction. Its own ROLLBACK, written to a connection that closed, throws from a timer and ends the process
 * (porsager/postgres issues 1208, 1154). And what was unsent when a connection broke is sent before the greeting of the next
 * connection, which therefore never gets ready: in a test, 25 times `pg_terminate_backend` left a pool of 10 without one that
 * worked. A session writes nothing after its close, and never uses its client for a second connection.
 */
export class PostgresSession {
  readonly #client: postgres.Sql;
  readonly #options: SessionOptions;
  readonly #timeoutMs: number;
  readonly #hooks: Hooks;
  #socket: Socket | null = null;
  #comparison: Promise<void> | null = null;
  #isCompared = false;
  #open = true;

  /** Connects with the first query. @param timeoutMs bounds every query, also on a network that has gone silent */
  constructor(options: SessionOptions, timeoutMs = STATEMENT_TIMEOUT_MS + NETWORK_MS, hooks: Hooks = {}) {
    this.#options = options;
    this.#timeoutMs = timeoutMs;
    this.#hooks = hooks;
    const { applicationName, settings } = options;
    const clientOptions = {
      max: 1,
      max_lifetime: null,
      idle_timeout: 0,
      connect_timeout: CONNECT_TIMEOUT_MS / 1000,
      fetch_types: false,
      types: VALUE_TYPES,
      onnotice: () => {},
      onclose: () => this.close(),
      onnotify: (_channel: string, payload: string) => hooks.onNotify?.(payload),
      socket: (address: Address) => this.#dial(address),
      connection: { application_name: applicationName, statement_timeout: STATEMENT_TIMEOUT_MS, ...settings },
    };
    // A cast, because the types of postgres.js leave out its options `socket` and `onnotify`.
    this.#client = postgres(options.url, clientOptions as object);
  }

  get open(): boolean {
    return this.#open;
  }

  /**
   * When a server (or the proxy before it) accepts a connection and hangs up at once, postgres.js by itself connects again
   * without end and without a pause, and never tells whoever waits for the query.
   */
  async #dial(address: Address): Promise<Socket> {
    if (this.#socket !== null) throw connectionError('CONNECTION_CLOSED', 'postgres hung up before it was ready');
    this.#socket = await dial(address);
    // Nobody else would end a connection that is made after the session was closed.
    if (!this.#open) this.#socket.destroy();
    return this.#socket;
  }

  /** @throws PostgresError from the server, after which a compared session goes on; or another error, and the session is over */
  async #run<T>(work: () => PromiseLike<T>): Promise<T> {
    if (!this.#open) throw connectionError('CONNECTION_CLOSED', 'the connection to postgres is gone');
    const timer = setTimeout(() => this.close(), this.#timeoutMs);
    try {
      this.#comparison ??= this.#compare();
      await this.#comparison;
      return await work();
    } catch (error) {
      // What prevented the comparison (a lock, a cancelled query) passes, but this session would remember the failure.
      if (!this.#isCompared || sqlState(error) === undefined) this.close();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** The name in the URL may lead to another database than before: a restored one, another server, a stranger's. */
  async #compare(): Promise<void> {
    const { installation } = this.#options;
    if (installation !== undefined) {
      const found = await this.#readInstallation();
      if (found !== installation) {
        const message = `this Postgres database belongs to another installation: its id is ${found}, that of ours ${installation}`;
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

  /** Runs one statement, which is prepared once if it has parameters. Without parameters the text may be several statements. */
  query<T extends object = Row>(text: string, parameters: readonly Value[] = []): Promise<Rows<T[]>> {
    const options = { prepare: parameters.length > 0 };
    return this.#run(() => this.#client.unsafe<T[]>(text, parameters as string[], options));
  }

  /** Runs `COPY … FROM STDIN` with these chunks of data. @returns the number of rows that were stored */
  copyIn(text: string, chunks: Iterable<Buffer>): Promise<number> {
    return this.#run(async () => {
      const query = this.#client.unsafe(text);
      const stream = await query.writable();
      // The only place that relies on the inside of postgres.js 3.4.9. It reports the end of a COPY by resolving or rejecting
      // the query a second time, which a promise ignores. The stream is no substitute: when the server refuses a row after
      // the last one was sent (a key that is there already), the stream never ends and the error is lost.
      const ended = new Promise<{ count: number }>((resolve, reject) => Object.assign(query, { resolve, reject }));
      // A failure of the data or of the connection rejects the query, too.
      pipeline(Readable.from(chunks), stream).catch(() => {});
      return (await ended).count;
    });
  }

  /** Runs `work` between BEGIN and a COMMIT that is on the disk, or a ROLLBACK if it throws. @param mode such as 'READ ONLY' */
  async transaction<T>(work: () => PromiseLike<T>, mode = ''): Promise<T> {
    try {
      await this.query(`BEGIN ${mode}${DURABLE}`);
      const result = await work();
      const { command } = await this.query('COMMIT');
      // Postgres answers COMMIT with ROLLBACK when a statement failed, even if `work` caught the error.
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
    // The client said goodbye. A network that swallows the goodbye must not keep the socket.
    setTimeout(() => this.#socket?.destroy(), GOODBYE_MS).unref();
    this.#hooks.onClose?.();
  }
}

/** What postgres.js made of the URL: hosts with their ports, or the path of a Unix socket. */
type Address = { readonly host: readonly string[]; readonly port: readonly number[]; readonly path: string | false };

/** Connects to the first of the hosts that accepts a connection within its `CONNECT_TIMEOUT_MS`. */
async function dial({ host, port, path }: Address): Promise<Socket> {
  let failure: unknown;
  for (const to of path ? [{ path }] : host.map((name, i) => ({ host: name, port: port[i] as number }))) {
    const socket = connect({ ...to, noDelay: true });
    const giveUp = () => socket.destroy(connectionError('CONNECT_TIMEOUT', 'no connection to postgres in time'));
    const timer = setTimeout(giveUp, CONNECT_TIMEOUT_MS);
    try {
      await once(socket, 'connect');
      // postgres.js takes the name that a certificate must have from `socket.host`.
      return Object.assign(socket, to);
    } catch (error) {
      failure = error;
    } finally {
      clearTimeout(timer);
    }
  }
  throw failure;
}
