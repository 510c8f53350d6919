import { connect, type Socket } from 'node:net';
import postgres from 'postgres';

/** The only importer of postgres.js; everybody else imports `postgres.ts`. */

/** postgres.js's tagged-template client, as far as `openPostgres` has it: queries, `unsafe`, `begin`, `reserve`, `listen`, `end`. */
export type Sql = postgres.Sql<{ bigint: number }>;
/** The same inside a transaction: queries and `unsafe`. */
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
  /** Whose database it must be (`installation.id`): asked before the first query. Without it nothing is asked. */
  readonly installation?: string;
};

export const DEFAULT_STATEMENT_TIMEOUT_MS = 15_000;

export type ClientHooks = {
  /** The connection ended, or could not be made. */
  readonly onClose: () => void;
  readonly onNotify?: (payload: string) => void;
};

const CONNECT_TIMEOUT_MS = 5_000;

/**
 * A client of one connection, made with its first query. After `onClose` it must not be used again: see
 * `PostgresSession`.
 *
 * @returns the client, and what drops its connection without ceremony
 */
export function openClient(
  options: Omit<PostgresOptions, 'maxConnections'>,
  hooks: ClientHooks,
): { readonly sql: Sql; readonly drop: () => void } {
  let socket: Socket | null = null;
  const settings = {
    max: 1,
    max_lifetime: null,
    idle_timeout: 0,
    connect_timeout: CONNECT_TIMEOUT_MS / 1000,
    // Asking the server for its array types at every connect is a query of postgres.js's own, and its failure an
    // unhandled rejection. The types we use are below.
    fetch_types: false,
    onnotice: () => {},
    onclose: hooks.onClose,
    onnotify: (_channel: string, payload: string) => hooks.onNotify?.(payload),
    // Dialled here, because a server (or the proxy before it) that accepts and hangs up at once would make postgres.js
    // try again without end, without a pause, and without a word to whoever waits.
    socket: async ({ host, port, path }: Address) => {
      if (socket !== null) throw connectionError('CONNECTION_CLOSED', 'postgres hung up before it was ready');
      socket = await dial({ host, port, path });
      return socket;
    },
    connection: {
      application_name: options.applicationName,
      statement_timeout: options.statementTimeoutMs ?? DEFAULT_STATEMENT_TIMEOUT_MS,
      ...options.settings,
    },
    types: {
      bigint: { to: 20, from: [20], serialize: String, parse: parseBigint },
      ...ARRAY_TYPES,
    },
  };
  // `onnotify` and `socket` are missing from its types.
  const sql = postgres(options.url, settings as object) as unknown as Sql;
  return { sql, drop: () => socket?.destroy() };
}

/** What postgres.js made of the URL: hosts with their ports, or the path of a Unix socket. */
type Address = { readonly host: readonly string[]; readonly port: readonly number[]; readonly path: string | false };

/** Connects to the first of the hosts that answers. */
async function dial({ host, port, path }: Address): Promise<Socket> {
  if (path) return dialOne({ path });
  let failure: unknown;
  for (const [i, name] of host.entries()) {
    try {
      const socket = await dialOne({ host: name, port: port[i] as number });
      // Where postgres.js looks for the name to check a certificate against.
      return Object.assign(socket, { host: name, port: port[i] });
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

function dialOne(address: { path: string } | { host: string; port: number }): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ ...address, noDelay: true });
    const timer = setTimeout(() => {
      socket.destroy(connectionError('CONNECT_TIMEOUT', 'no connection to postgres in time'));
    }, CONNECT_TIMEOUT_MS);
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.off('error', reject);
      resolve(socket);
    });
    socket.once('connect', () => clearTimeout(timer));
    socket.once('close', () => clearTimeout(timer));
  });
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

/** OID of the array type → parser of its elements. */
const ARRAYS: readonly (readonly [oid: number, parse: (text: string) => unknown])[] = [
  [1009, (text) => text], // text
  [1015, (text) => text], // varchar
  [2951, (text) => text], // uuid
  [1182, (text) => new Date(text)], // date
  [1185, (text) => new Date(text)], // timestamptz
  [1000, (text) => text === 't'], // boolean
  [1005, Number], // smallint
  [1007, Number], // int
  [1016, parseBigint], // bigint
];

const ARRAY_TYPES = Object.fromEntries(
  ARRAYS.map(([oid, parse]) => [
    `array_${oid}`,
    {
      to: oid,
      from: [oid],
      serialize: arrayLiteral,
      parse: (text: string) => parseArray(text).map((x) => x && parse(x)),
    },
  ]),
) as Record<string, postgres.PostgresType>;

/** A one-dimensional array as Postgres reads it. Text is passed through: it is such a literal already. */
function arrayLiteral(value: unknown): string {
  if (!Array.isArray(value)) return String(value);
  const element = (item: unknown): string => {
    if (item === null) return 'null';
    const text = item instanceof Date ? item.toISOString() : String(item);
    return `"${text.replace(/["\\]/g, '\\$&')}"`;
  };
  return `{${value.map(element).join(',')}}`;
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

const CONNECTION_CODES = new Set([
  FOREIGN_DATABASE,
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
