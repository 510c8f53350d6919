import { connectionError, isWrongDatabase } from './postgres-errors.ts';
import { PostgresListener, type Subscription } from './postgres-listener.ts';
import { type Run, type Tx, templateTag } from './postgres-query.ts';
import { PostgresSession, type SessionOptions } from './postgres-session.ts';
import { Sleeper } from './timing.ts';

export type PostgresOptions = SessionOptions & { readonly maxConnections: number };

/** Default time that `end` waits for work under way. After that it closes the connections. */
const END_SECONDS = 5;

/**
 * How long the pool makes no new connection after it found that the database belongs to another installation, or is a standby. During
 * that time, users that need a new connection fail with the same error.
 */
const REFUSED_MS = 1_000;

/** How many users may wait for a connection, and how long. Beyond either bound a user fails as if Postgres were away (503). */
type WaitBounds = { readonly maxWaiting: number; readonly maxWaitMs: number };
const WAIT_BOUNDS: WaitBounds = { maxWaiting: 1_000, maxWaitMs: 5_000 };

const noneFree = (message: string): Error => connectionError('CONNECT_TIMEOUT', message);
const poolEnded = (): Error => connectionError('CONNECTION_ENDED', 'the postgres pool has ended');

/**
 * Lends each of its sessions to one user at a time: a query, a transaction or a reservation. A session that ended is replaced
 * when the next user needs one. When all `maxConnections` are lent, users wait in turn, within bounds.
 *
 * Tested by test/platform/postgres.test.ts.
 */
export class PostgresPool {
  readonly #options: PostgresOptions;
  readonly #idle: PostgresSession[] = [];
  readonly #lent = new Set<PostgresSession>();
  readonly #bounds: WaitBounds;
  /** The users that wait, in order. A set keeps the order of insertion, and removes in constant time a user that gives up. */
  readonly #waiting = new Set<(session: Promise<PostgresSession>) => void>();
  readonly #listeners = new Set<PostgresListener>();
  #refused: { readonly error: unknown; readonly untilMs: number } | null = null;
  #ended = false;
  /** Waits until the last session is returned, after `end`. */
  readonly #returns = new Sleeper();

  constructor(options: PostgresOptions, bounds = WAIT_BOUNDS) {
    this.#options = options;
    this.#bounds = bounds;
  }

  /** Runs one query on any connection. */
  readonly query: Run = (text, parameters, options) =>
    this.#lend((session) => session.query(text, parameters, options));

  /** Runs `work` in a transaction on one connection. @param mode such as 'READ ONLY' */
  readonly begin = <T>(work: (tx: Tx) => PromiseLike<T>, mode = ''): Promise<T> =>
    this.#lend((session, tx) => session.transaction(() => work(tx), mode));

  /**
   * Lends one connection to `work`, for session locks. `work` must release them, because the connection goes back to the pool
   * unchanged.
   */
  readonly reserve = <T>(work: (connection: Tx) => PromiseLike<T>): Promise<T> =>
    this.#lend((_, connection) => work(connection));

  async #lend<T>(work: (session: PostgresSession, connection: Tx) => PromiseLike<T>): Promise<T> {
    const session = await this.acquire();
    let isOver = false;
    const run: Run = async (text, parameters, options) => {
      // A query that a user did not await must not run among the queries of the next user.
      if (isOver) throw new Error('the transaction or reservation of this query has ended');
      return session.query(text, parameters, options);
    };
    try {
      return await work(session, templateTag(run));
    } catch (error) {
      if (isWrongDatabase(error)) this.#refuse(error);
      throw error;
    } finally {
      isOver = true;
      this.release(session);
    }
  }

  async acquire(): Promise<PostgresSession> {
    if (this.#ended) throw poolEnded();
    let session = this.#idle.pop();
    // A session may have ended while it was idle.
    while (session?.open === false) session = this.#idle.pop();
    if (session === undefined) {
      if (this.#lent.size >= this.#options.maxConnections) return this.#wait();
      if (this.#refused !== null && performance.now() < this.#refused.untilMs) throw this.#refused.error;
      session = new PostgresSession(this.#options);
    }
    this.#lent.add(session);
    return session;
  }

  #wait(): Promise<PostgresSession> {
    const { maxWaiting, maxWaitMs } = this.#bounds;
    if (this.#waiting.size >= maxWaiting)
      throw noneFree(`${maxWaiting} transactions or queries already wait for a postgres connection`);
    return new Promise((resolve) => {
      const end = (session: Promise<PostgresSession>): void => {
        clearTimeout(timer);
        this.#waiting.delete(end);
        resolve(session);
      };
      const tooLate = () => end(Promise.reject(noneFree(`no postgres connection was free within ${maxWaitMs} ms`)));
      const timer = setTimeout(tooLate, maxWaitMs);
      this.#waiting.add(end);
    });
  }

  release(session: PostgresSession): void {
    this.#lent.delete(session);
    if (this.#ended) {
      session.close();
      if (this.#lent.size === 0) this.#returns.wake();
      return;
    }
    if (session.open) this.#idle.push(session);
    const [next] = this.#waiting;
    next?.(this.acquire());
  }

  #refuse(error: unknown): void {
    this.#refused = { error, untilMs: performance.now() + REFUSED_MS };
    for (const end of this.#waiting) end(Promise.reject(error));
  }

  /** Listens to a channel on a separate connection. Resolves when `PostgresListener.start` does, to a function that stops it. */
  readonly listen = async (subscription: Subscription): Promise<() => void> => {
    if (this.#ended) throw poolEnded();
    const listener = new PostgresListener(this.#options, subscription);
    this.#listeners.add(listener);
    await listener.start();
    return () => {
      this.#listeners.delete(listener);
      listener.stop();
    };
  };

  /** Refuses new work from now on. Work under way has `timeout` seconds to finish; then its connections are closed. */
  readonly end = async ({ timeout = END_SECONDS }: { readonly timeout?: number } = {}): Promise<void> => {
    this.#ended = true;
    for (const listener of this.#listeners) listener.stop();
    for (const session of this.#idle.splice(0)) session.close();
    for (const end of this.#waiting) end(Promise.reject(poolEnded()));
    if (this.#lent.size > 0) await this.#returns.sleep(timeout * 1000);
    for (const session of this.#lent) session.close();
  };
}
