import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import postgres from 'postgres';

/** The only importer of postgres.js; everybody else imports `postgres.ts`. */

export type Client = postgres.Sql;
export type Row = postgres.Row;
/** The rows of a result, with `count` and `command` of their statement. */
export type Rows<T extends readonly object[]> = postgres.RowList<T>;

export type PostgresOptions = {
  readonly url: string;
  readonly maxConnections: number;
  readonly applicationName: string;
  /** More server settings of the session, e.g. `lock_timeout`. */
  readonly settings?: Readonly<Record<string, string | number>>;
  /** Whose database it must be (`installation.id`): asked before the first query. Without it nothing is asked. */
  readonly installation?: string;
};

/** The server ends a statement that takes longer. */
export const STATEMENT_TIMEOUT_MS = 15_000;
const CONNECT_TIMEOUT_MS = 5_000;

export type ClientHooks = {
  /** The connection ended, or could not be made. */
  readonly onClose: () => void;
  readonly onNotify?: (payload: string) => void;
};

/** What Postgres sends as something else than text. postgres.js itself asks the server for the types of arrays (below). */
const TYPES = {
  bigint: { to: 20, from: [20], serialize: String, parse: parseBigint },
  texts: arrayOf(String, 1009, 1015, 2951), // text, varchar, uuid
  times: arrayOf((text) => new Date(text), 1182, 1185), // date, timestamptz
  booleans: arrayOf((text) => text === 't', 1000),
  numbers: arrayOf(Number, 1005, 1007), // smallint, int
  bigints: arrayOf(parseBigint, 1016),
};

/**
 * A client of one connection, which is made with the first query. After `onClose` the client must not be used again: see
 * `PostgresSession`.
 *
 * @returns the client, and a function that drops its connection without a goodbye
 */
export function openClient(
  options: Omit<PostgresOptions, 'maxConnections'>,
  hooks: ClientHooks,
): { readonly client: Client; readonly drop: () => void } {
  let socket: Socket | null = null;
  const settings = {
    max: 1,
    max_lifetime: null,
    idle_timeout: 0,
    connect_timeout: CONNECT_TIMEOUT_MS / 1000,
    // Otherwise postgres.js asks the server for its array types with a query of its own at every connect, and the failure
    // of that query is an unhandled rejection.
    fetch_types: false,
    types: TYPES,
    onnotice: () => {},
    onclose: hooks.onClose,
    onnotify: (_channel: string, payload: string) => hooks.onNotify?.(payload),
    // When a server (or the proxy before it) accepts a connection and hangs up at once, postgres.js by itself connects
    // again without end and without a pause, and never tells whoever waits for the query.
    socket: async (address: Address) => {
      if (socket !== null) throw connectionError('CONNECTION_CLOSED', 'postgres hung up before it was ready');
      socket = await dial(address);
      return socket;
    },
    connection: {
      application_name: options.applicationName,
      statement_timeout: STATEMENT_TIMEOUT_MS,
      ...options.settings,
    },
  };
  // A cast, because the types of postgres.js leave out its options `socket` and `onnotify`.
  return { client: postgres(options.url, settings as object), drop: () => socket?.destroy() };
}

/** What postgres.js made of the URL: hosts with their ports, or the path of a Unix socket. */
type Address = { readonly host: readonly string[]; readonly port: readonly number[]; readonly path: string | false };

/** Connects to the first of the hosts that accepts a connection within its `CONNECT_TIMEOUT_MS`. */
async function dial({ host, port, path }: Address): Promise<Socket> {
  let failure: unknown;
  for (const to of path ? [{ path }] : host.map((name, i) => ({ host: name, port: port[i] as number }))) {
    const socket = connect({ ...to, noDelay: true });
    const tooLate = connectionError('CONNECT_TIMEOUT', 'no connection to postgres in time');
    const timer = setTimeout(() => socket.destroy(tooLate), CONNECT_TIMEOUT_MS);
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

/** An error that `isPostgresUnavailable` knows. */
export function connectionError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}

function parseBigint(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError(`bigint out of safe range: ${text}`);
  return value;
}

/** The type of arrays with these OIDs, whose elements `parseElement` reads. */
function arrayOf(parseElement: (text: string) => unknown, ...oids: [number, ...number[]]): postgres.PostgresType {
  const parse = (text: string): unknown[] => parseArray(text).map((x) => x && parseElement(x));
  return { to: oids[0], from: oids, serialize: arrayLiteral, parse };
}

/** A one-dimensional array as Postgres reads it. Text is passed through: it is such a literal already. */
function arrayLiteral(value: unknown): string {
  if (!Array.isArray(value)) return String(value);
  const elements = value.map((item) => {
    if (item === null) return 'null';
    const text = item instanceof Date ? item.toISOString() : String(item);
    return `"${text.replace(/["\\]/g, '\\$&')}"`;
  });
  return `{${elements.join(',')}}`;
}

/** Elements of a one-dimensional array literal: quoted with backslash escapes, bare, or null. */
function parseArray(literal: string): (string | null)[] {
  const elements = literal.slice(1, -1).match(/"(?:[^"\\]|\\.)*"|[^,]+/gs) ?? [];
  return elements.map((element) => {
    if (element === 'NULL') return null;
    return element.startsWith('"') ? element.slice(1, -1).replace(/\\(.)/gs, '$1') : element;
  });
}

/** SQLSTATE of an error from the server (`23505` unique violation, …), or undefined for anything else. */
export function sqlState(error: unknown): string | undefined {
  return error instanceof postgres.PostgresError ? error.code : undefined;
}

/** Of the error that says that the database is another installation's: as good as away. */
export const FOREIGN_DATABASE = 'FOREIGN_DATABASE';

const UNAVAILABLE = [
  FOREIGN_DATABASE,
  // Of postgres.js, of this folder, of sockets, of name resolution.
  'CONNECT_TIMEOUT|CONNECTION_(CLOSED|DESTROYED|ENDED|CONNECT_TIMEOUT)',
  'ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN',
  // Of the server: shutdown, crash, cannot connect now; connection exceptions; too many connections; a cancelled statement.
  '57P0.|08...|53300|57014',
];
const UNAVAILABLE_CODE = new RegExp(`^(${UNAVAILABLE.join('|')})$`);

/** Whether the error says 'Postgres is away' (shutting down and starting up included) rather than 'the statement is wrong'. */
export function isPostgresUnavailable(error: unknown): boolean {
  return error instanceof Error && UNAVAILABLE_CODE.test(String((error as Error & { code?: unknown }).code));
}
