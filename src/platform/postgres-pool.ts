import { connectionError, openClient, type PostgresOptions, type Sql } from './postgres-client.ts';
import { PostgresListener } from './postgres-listener.ts';
import { type Runner, tag, unsafe } from './postgres-query.ts';
import { PostgresSession } from './postgres-session.ts';

/** How long `end` waits for queries under way unless told otherwise. */
const END_MS = 5_000;

/** So long a database that is another installation's is not dialled again: whoever asks meanwhile is told the same. */
const FOREIGN_MS = 1_000;

/** Users that may wait for a connection, and for how long. Beyond either they fail as if Postgres were away: 503. */
export type WaitBounds = { readonly maxWaiting: number; readonly maxWaitMs: number };
const WAIT_BOUNDS: WaitBounds = { maxWaiting: 1_000, maxWaitMs: 5_000 };

/**
 * Connections with one life each, lent to one user at a time: a query, a transaction or a reservation. One that ended is
 * replaced by a new one when somebody asks. Users beyond `maxConnections` wait in turn, within bounds.
 */
export class PostgresPool {
  readonly #options: PostgresOptions;
  readonly #idle: PostgresSession[] = [];
  readonly #lent = new Set<PostgresSession>();
  readonly #bounds: WaitBounds;
  /** In turn: a set keeps the order, and one that gives up leaves it at no cost. */
  readonly #waiting = new Set<(session: PostgresSession | Error) => void>();
  readonly #listeners = new Set<PostgresListener>();
  #foreign: Error | null = null;
  #foreignUntil = 0;
  #ended = false;
  #whenReturned: () => void = () => {};

  constructor(options: PostgresOptions, bounds = WAIT_BOUNDS) {
    this.#options = options;
    this.#bounds = bounds;
  }

  /** Runs one query on any connection. */
  readonly run: Runner = async (build) => {
    const session = await this.acquire();
    try {
      return await session.run(build);
    } finally {
      this.release(session);
    }
  };

  async acquire(): Promise<PostgresSession> {
    if (this.#ended) throw poolEnded();
    let session = this.#idle.pop();
    // It may have ended while it was idle.
    while (session !== undefined && !session.open) session = this.#idle.pop();
    if (session === undefined && this.#lent.size < this.#options.maxConnections) {
      if (this.#foreign !== null && performance.now() < this.#foreignUntil) throw this.#foreign;
      session = new PostgresSession(this.#options);
    }
    if (session === undefined) return this.#wait();
    this.#lent.add(session);
    return session;
  }

  #wait(): Promise<PostgresSession> {
    const { maxWaiting, maxWaitMs } = this.#bounds;
    if (this.#waiting.size >= maxWaiting) throw noneFree(`${maxWaiting} wait for a postgres connection already`);
    return new Promise((resolve, reject) => {
      const end = (given: PostgresSession | Error): void => {
        clearTimeout(timer);
        this.#waiting.delete(end);
        if (given instanceof Error) reject(given);
        else resolve(given);
      };
      const timer = setTimeout(
        () => end(noneFree(`no postgres connection was free within ${maxWaitMs} ms`)),
        maxWaitMs,
      );
      this.#waiting.add(end);
    });
  }

  release(session: PostgresSession): void {
    this.#lent.delete(session);
    if (this.#ended) {
      session.close();
      if (this.#lent.size === 0) this.#whenReturned();
      return;
    }
    if (session.foreign !== null) this.#refuse(session.foreign);
    const [next] = this.#waiting;
    if (next === undefined) {
      if (session.open) this.#idle.push(session);
      return;
    }
    const given = session.open ? session : new PostgresSession(this.#options);
    this.#lent.add(given);
    next(given);
  }

  #refuse(foreign: Error): void {
    this.#foreign = foreign;
    this.#foreignUntil = performance.now() + FOREIGN_MS;
    for (const end of this.#waiting) end(foreign);
  }

  async listen(
    channel: string,
    onMessage: (payload: string) => void,
    onListening: () => void = () => {},
  ): Promise<{ unlisten: () => Promise<void> }> {
    if (this.#ended) throw poolEnded();
    const listener = new PostgresListener(this.#options, channel, onMessage, onListening);
    this.#listeners.add(listener);
    await listener.start();
    return {
      unlisten: async () => {
        this.#listeners.delete(listener);
        listener.stop();
      },
    };
  }

  /** Nothing new from now on; what is under way may finish within `timeout` seconds. */
  async end({ timeout = END_MS / 1000 }: { timeout?: number | null } = {}): Promise<void> {
    this.#ended = true;
    for (const listener of this.#listeners) listener.stop();
    for (const session of this.#idle.splice(0)) session.close();
    for (const end of this.#waiting) end(poolEnded());
    if (this.#lent.size === 0) return;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#whenReturned = resolve;
      timer = setTimeout(resolve, (timeout ?? END_MS / 1000) * 1000);
    });
    clearTimeout(timer);
    for (const session of this.#lent) session.close();
  }
}

const noneFree = (message: string): Error => connectionError('CONNECT_TIMEOUT', message);
const poolEnded = (): Error => connectionError('CONNECTION_ENDED', 'the postgres pool has ended');

/** The pool behind the interface of postgres.js. What of that is not here throws instead of misbehaving. */
export function asSql(pool: PostgresPool, options: PostgresOptions): Sql {
  // Never connected: for helpers such as `sql(name)` and `sql(columns)`, which are the same for every connection.
  const { sql: helpers } = openClient(options, { onClose: () => {} });
  const template = (runner: Runner) => Object.assign(tag(runner, helpers), { unsafe: unsafe(runner) });

  const begin = async (first: unknown, second?: unknown): Promise<unknown> => {
    const [mode, work] = (typeof first === 'string' ? [first, second] : ['', first]) as [string, Work];
    const session = await pool.acquire();
    const { run, end } = runnerOf(session);
    try {
      return await session.transaction(async () => {
        const result = work(strict(template(run), 'transaction'));
        return await (Array.isArray(result) ? Promise.all(result) : result);
      }, mode);
    } finally {
      end();
      pool.release(session);
    }
  };
  const reserve = async (): Promise<unknown> => {
    const session = await pool.acquire();
    const { run, end } = runnerOf(session);
    const release = () => {
      end();
      pool.release(session);
    };
    return strict(Object.assign(template(run), { release }), 'reserved connection');
  };
  const methods = {
    begin,
    reserve,
    listen: pool.listen.bind(pool),
    end: pool.end.bind(pool),
    options: helpers.options,
  };
  return strict(Object.assign(template(pool.run), methods), 'pool') as Sql;
}

/** Runs queries on one session until `end`: what a user forgot to wait for must not run among the next user's. */
function runnerOf(session: PostgresSession): { run: Runner; end: () => void } {
  let over = false;
  const run: Runner = async (build) => {
    if (over) throw new Error('the transaction or reservation of this query is over');
    return session.run(build);
  };
  return {
    run,
    end: () => {
      over = true;
    },
  };
}

type Work = (tx: unknown) => unknown;

/** Refuses members that postgres.js has and we have not: an undefined one would be found by a caller at the worst time. */
function strict(target: object, what: string): unknown {
  return new Proxy(target, {
    get: (object, name, receiver) => {
      if (name in object || typeof name === 'symbol' || name === 'then') return Reflect.get(object, name, receiver);
      throw new TypeError(`postgres ${what} has no ${name}`);
    },
  });
}
