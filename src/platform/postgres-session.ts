import { connect, type Socket } from 'node:net';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { COMMIT_IN_DOUBT, connectionError, FOREIGN_DATABASE, sqlState, standby } from './postgres-errors.ts';
import type { Row, Rows, RunOptions, Value } from './postgres-query.ts';
import { VALUE_TYPES } from './postgres-values.ts';
import { within } from './timing.ts';

export type SessionOptions = {
  readonly url: string;
  readonly applicationName: string;
  /** Further server settings for the session, such as `lock_timeout`. */
  readonly settings?: Readonly<Record<string, string | number>>;
  /** The `installation.id` that the database must have. The session compares it before its first query; without an id, never. */
  readonly installation?: string;
  readonly onNotify?: (payload: string, channel: string) => void;
  readonly onClose?: () => void;
};

const noAnswer = (): Error => connectionError('CONNECTION_CLOSED', 'no answer from postgres in time');
const noConnection = (): Error => connectionError('CONNECT_TIMEOUT', 'no connection to postgres in time');

/** Maximum time of a statement; then the server ends it. */
const STATEMENT_TIMEOUT_MS = 15_000;
/** How much longer than STATEMENT_TIMEOUT_MS a session waits, for a slow network. Then it closes the connection. */
const NETWORK_MS = 5_000;
/** A host of the URL that sends nothing for this long counts as away: the next host is tried, or the first query fails. */
const SILENT_MS = 5_000;
/**
 * Maximum time for connection, TLS and login of one host until it is ready for queries. Beyond it the first query fails. It is
 * longer than SILENT_MS, because at this bound postgres.js does not try the next host.
 */
const LOGIN_MS = 10_000;
/** How long a closed session's socket may take to send Terminate. Then the socket is destroyed. */
const GOODBYE_MS = 1_000;
/** SQLSTATE of an undefined table or column. Such a database has no installation id: it is not one of ours. */
const NO_INSTALLATION = /^(42P01|42703)$/;

/**
 * The writer deletes events from Redis, and credits are confirmed, when Postgres says that a transaction is committed. A server
 * with `synchronous_commit = off` says so before it has written anything: after an immediate stop, only 1 of 51 charged calls had
 * its row. So each transaction turns the setting on. The session does not, because connection poolers refuse or drop settings of a
 * session. Only `off` and `local` are raised; `remote_write` and `remote_apply` are kept. The SELECT is sent together with the
 * BEGIN and costs no additional round trip; a commit that wrote nothing does not wait for the disk.
 *
 * It also asks whether the server is a standby: a pooler may have moved the session since it was made.
 */
const AFTER_BEGIN = `;SELECT pg_is_in_recovery() AS "isStandby",
  CASE WHEN current_setting('synchronous_commit') IN ('off', 'local') THEN set_config('synchronous_commit', 'on', true) END`;
type AfterBegin = readonly [begin: unknown, rows: readonly [{ readonly isStandby: boolean }]];

/**
 * One connection to Postgres. A session never reconnects: once its connection is gone, every further query on it fails.
 *
 * postgres.js 3.4.9 left to itself reconnects under the same handle. Then the rest of a transaction runs outside the transaction,
 * unsent data are sent before the greeting, or the process ends (docs/decisions/0046-what-stands-over-postgres-js.md). So a session
 * writes nothing after its close, and never uses its postgres.js client for a second connection.
 *
 * Tested by test/platform/postgres.test.ts, test/platform/standby.test.ts and test/ledger/writing/writer-outage.test.ts.
 */
export class PostgresSession {
  #client: postgres.Sql;
  readonly #options: SessionOptions;
  readonly #timeoutMs: number;
  #socket: Socket | null = null;
  /** Number of hosts in the URL; known when the first is dialled. */
  #hosts = 1;
  #hostsTried = 0;
  #comparison: Promise<void> | null = null;
  /** The server's last warning. */
  #warning: string | null = null;
  #open = true;

  /** The first query connects. @param timeoutMs bounds every query, even if the network no longer delivers anything */
  constructor(options: SessionOptions, timeoutMs = STATEMENT_TIMEOUT_MS + NETWORK_MS) {
    this.#options = options;
    this.#timeoutMs = timeoutMs;
    this.#client = this.#newClient();
  }

  #newClient(): postgres.Sql {
    const { url, applicationName, settings, onNotify } = this.#options;
    const clientOptions = {
      max: 1,
      max_lifetime: null,
      idle_timeout: 0,
      connect_timeout: LOGIN_MS / 1000,
      fetch_types: false,
      types: VALUE_TYPES,
      onnotice: ({ severity, message }: postgres.Notice) => {
        if (severity === 'WARNING') this.#warning = message ?? '';
      },
      onclose: () => {
        if (this.#client === client) this.close();
      },
      onnotify: (channel: string, payload: string) => onNotify?.(payload, channel),
      socket: (address: Address) => this.#dial(address),
      connection: { application_name: applicationName, statement_timeout: STATEMENT_TIMEOUT_MS, ...settings },
    };
    // A cast, because the types of postgres.js leave out its options `socket` and `onnotify`.
    const client: postgres.Sql = postgres(url, clientOptions as object);
    return client;
  }

  get open(): boolean {
    return this.#open;
  }

  /**
   * Makes the socket for postgres.js, which asks for another one whenever a connection ends before the server is ready: each host of
   * the URL once. When a server (or a proxy in front of it) accepts a connection and hangs up at once, postgres.js would otherwise
   * connect again for ever, without a pause, and the waiting query would never fail.
   */
  #dial({ host, port, path }: Address): Socket {
    const next = this.#hostsTried++;
    this.#hosts = host.length;
    if (next === host.length) this.close();
    if (!this.#open) throw connectionError('CONNECTION_CLOSED', 'postgres closed the connection before it was ready');
    const to = path ? { path } : { host: host[next], port: port[next] as number };
    const socket = connect({ ...to, noDelay: true });
    setTimeout(() => socket.bytesRead === 0 && socket.destroy(noConnection()), SILENT_MS).unref();
    this.#socket = socket;
    // postgres.js expects the host in `socket.host`: it is the name that the server's certificate must have.
    return Object.assign(socket, to);
  }

  /**
   * Runs `work` after the host has passed the checks.
   *
   * @throws PostgresError when the server refuses a statement: the session stays open. Any other error closes the session.
   */
  async #run<T>(work: () => PromiseLike<T>): Promise<T> {
    if (!this.#open) throw connectionError('CONNECTION_CLOSED', 'the connection to postgres is gone');
    try {
      this.#comparison ??= this.#findHost();
      return await within(this.#comparison.then(work), this.#timeoutMs, noAnswer);
    } catch (error) {
      if (sqlState(error) === undefined) this.close();
      throw error;
    }
  }

  /** Tries the hosts of the URL until one is a primary and has our installation. Throws the last one's fault if none has. */
  async #findHost(): Promise<void> {
    for (;;) {
      const fault = await this.#compare();
      if (fault === null) return;
      if (this.#hostsTried >= this.#hosts) throw fault;
      this.#hangUp();
      this.#client = this.#newClient();
    }
  }

  /**
   * Asks whether this is a primary, and compares the installation's id. By now the URL may lead to another database: a restored
   * one, another server, somebody else's. A failure closes the session, even if its cause (a lock, a cancelled query) is temporary,
   * because `#comparison` stays rejected.
   *
   * @returns why the host must not be used
   */
  async #compare(): Promise<Error | null> {
    const { installation } = this.#options;
    const ours = installation === undefined ? '' : ', (SELECT id FROM installation) AS id';
    const asking = this.#client.unsafe(`SELECT pg_is_in_recovery() AS "isStandby"${ours}`);
    const rows = await asking.catch((error: unknown) => {
      if (NO_INSTALLATION.test(sqlState(error) ?? '')) return [];
      this.close();
      throw error;
    });
    if (rows[0]?.isStandby === true) return standby();
    const found = rows[0]?.id ?? 'none';
    if (installation === undefined || found === installation) return null;
    const message = `this Postgres database belongs to another installation: its id is ${found}, ours is ${installation}`;
    return connectionError(FOREIGN_DATABASE, message);
  }

  /**
   * Runs one statement. With parameters, it is prepared once per session unless it is planned anew; without, the text may hold several
   * statements.
   */
  query<T extends object = Row>(
    text: string,
    parameters: readonly Value[] = [],
    { isPlannedAnew = false }: RunOptions = {},
  ): Promise<Rows<T[]>> {
    const options = { prepare: parameters.length > 0 && !isPlannedAnew };
    return this.#run(() => this.#client.unsafe<T[]>(text, parameters as string[], options));
  }

  /**
   * Runs `COPY … FROM STDIN` with these chunks of data.
   *
   * @throws PostgresError when the server does not store every row: its own error if that comes before the last chunk is sent. postgres.js
   *   drops a later one (docs/decisions/0046-what-stands-over-postgres-js.md): then 25P02 in a transaction; otherwise another error, which
   *   closes the session.
   */
  copyIn(text: string, chunks: Iterable<Buffer>): Promise<void> {
    return this.#run(async () => {
      const stream = await this.#client.unsafe(text).writable();
      // Without a listener an error would end the process. It is found in `errored`.
      stream.on('error', () => {});
      const write = promisify<Buffer, void>((chunk, sent) => stream.write(chunk, (error) => sent(error ?? null)));
      try {
        // Each chunk is awaited, so that end() ends the COPY at once: until then postgres.js takes no other query.
        for (const chunk of chunks) await write(chunk);
      } catch (error) {
        throw stream.errored ?? error;
      }
      stream.end();
      // An empty query is answered after the COPY, even in a transaction that has failed. By then the stream has finished, or never will.
      await this.#client.unsafe('');
      if (stream.writableFinished) return;
      await this.#client.unsafe('SELECT 1');
      throw stream.errored ?? new Error('COPY failed behind its last row');
    });
  }

  /**
   * Runs `work` between BEGIN and a COMMIT that is on the disk, and on the synchronous standby if there is one; or a ROLLBACK if it throws.
   *
   * @param mode such as 'READ ONLY'
   */
  async transaction<T>(work: () => PromiseLike<T>, mode = ''): Promise<T> {
    try {
      const [, [state]] = (await this.query(`BEGIN ${mode}${AFTER_BEGIN}`)) as unknown as AfterBegin;
      if (state.isStandby) {
        this.close();
        throw standby();
      }
      const result = await work();
      await this.#commit();
      return result;
    } catch (error) {
      // If the ROLLBACK fails, the session is closed; then the server rolls back by itself.
      if (this.#open) await this.query('ROLLBACK').catch(() => this.close());
      throw error;
    }
  }

  async #commit(): Promise<void> {
    this.#warning = null;
    const { command } = await this.query('COMMIT');
    // If a statement has failed, Postgres carries out COMMIT as ROLLBACK and says so, even if `work` caught the error.
    if (command !== 'COMMIT') throw new Error('the transaction was rolled back: a statement in it failed');
    if (this.#warning === null) return;
    // Somebody cancelled the wait for a synchronous standby. The text may be in any language, but no other warning comes with a
    // COMMIT.
    this.close();
    throw connectionError(COMMIT_IN_DOUBT, `postgres has committed with a warning: ${this.#warning}`);
  }

  /** Ends the connection at once. The server then rolls back an open transaction and releases the session's locks. */
  close(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#hangUp();
    this.#options.onClose?.();
  }

  #hangUp(): void {
    const socket = this.#socket;
    this.#client.end({ timeout: 0 }).catch(() => {});
    // `end` has written Terminate. The socket must not stay open if the network does not deliver it.
    setTimeout(() => socket?.destroy(), GOODBYE_MS).unref();
  }
}

/** The URL as parsed by postgres.js: hosts with their ports, or the path of a Unix socket. */
type Address = { readonly host: readonly string[]; readonly port: readonly number[]; readonly path: string | false };
