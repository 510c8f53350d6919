import { connectionError, isWrongDatabase } from './postgres-errors.js';
import { PostgresListener } from './postgres-listener.js';
import { templateTag } from './postgres-query.js';
import { PostgresSession } from './postgres-session.js';
import { Sleeper } from './timing.js';
/** Default time that `end` waits for work under way. After that it closes the connections. */
const END_SECONDS = 5;
/**
 * How long the pool makes no new connection after it found that the database belongs to another installation, or is a standby. During
 * that time, users that need a new connection fail with the same error.
 */
const REFUSED_MS = 1_000;
const WAIT_BOUNDS = { maxWaiting: 1_000, maxWaitMs: 5_000 };
const noneFree = (message) => connectionError('CONNECT_TIMEOUT', message);
const poolEnded = () => connectionError('CONNECTION_ENDED', 'the postgres pool has ended');
/**
 * Lends each of its sessions to one user at a time: a query, a transaction or a reservation. A session that ended is replaced
 * when the next user needs one. When all `maxConnections` are lent, users wait in turn, within bounds.
 *
 * Tested by test/platform/postgres.test.ts.
 */
export class PostgresPool {
    #options;
    #idle = [];
    #lent = new Set();
    #bounds;
    /** The users that wait, in order. A set keeps the order of insertion, and removes a user that gives up in constant time. */
    #waiting = new Set();
    #listeners = new Set();
    #refused = null;
    #ended = false;
    /** Waits until the last session is returned, after `end`. */
    #returns = new Sleeper();
    constructor(options, bounds = WAIT_BOUNDS) {
        this.#options = options;
        this.#bounds = bounds;
    }
    /** Runs one query on any connection. */
    query = (text, parameters, options) => this.#lend((session) => session.query(text, parameters, options));
    /** Runs `work` in a transaction on one connection. @param mode such as 'READ ONLY' */
    begin = (work, mode = '') => this.#lend((session, tx) => session.transaction(() => work(tx), mode));
    /**
     * Lends one connection to `work`, for session locks. `work` must release them: the connection goes back to the pool as it is.
     */
    reserve = (work) => this.#lend((_, connection) => work(connection));
    async #lend(work) {
        const session = await this.acquire();
        let isOver = false;
        const run = async (text, parameters, options) => {
            // A query that a user did not await must not run among the queries of the next user.
            if (isOver)
                throw new Error('the transaction or reservation of this query is over');
            return session.query(text, parameters, options);
        };
        try {
            return await work(session, templateTag(run));
        }
        catch (error) {
            if (isWrongDatabase(error))
                this.#refuse(error);
            throw error;
        }
        finally {
            isOver = true;
            this.release(session);
        }
    }
    async acquire() {
        if (this.#ended)
            throw poolEnded();
        let session = this.#idle.pop();
        // A session may have ended while it was idle.
        while (session?.open === false)
            session = this.#idle.pop();
        if (session === undefined) {
            if (this.#lent.size >= this.#options.maxConnections)
                return this.#wait();
            if (this.#refused !== null && performance.now() < this.#refused.untilMs)
                throw this.#refused.error;
            session = new PostgresSession(this.#options);
        }
        this.#lent.add(session);
        return session;
    }
    #wait() {
        const { maxWaiting, maxWaitMs } = this.#bounds;
        if (this.#waiting.size >= maxWaiting)
            throw noneFree(`${maxWaiting} users already wait for a postgres connection`);
        return new Promise((resolve) => {
            const end = (session) => {
                clearTimeout(timer);
                this.#waiting.delete(end);
                resolve(session);
            };
            const tooLate = () => end(Promise.reject(noneFree(`no postgres connection was free within ${maxWaitMs} ms`)));
            const timer = setTimeout(tooLate, maxWaitMs);
            this.#waiting.add(end);
        });
    }
    release(session) {
        this.#lent.delete(session);
        if (this.#ended) {
            session.close();
            if (this.#lent.size === 0)
                this.#returns.wake();
            return;
        }
        if (session.open)
            this.#idle.push(session);
        const [next] = this.#waiting;
        next?.(this.acquire());
    }
    #refuse(error) {
        this.#refused = { error, untilMs: performance.now() + REFUSED_MS };
        for (const end of this.#waiting)
            end(Promise.reject(error));
    }
    /**
     * Listens to a channel on a connection of its own. Resolves when `PostgresListener.start` does, to a function that stops it.
     */
    listen = async (subscription) => {
        if (this.#ended)
            throw poolEnded();
        const listener = new PostgresListener(this.#options, subscription);
        this.#listeners.add(listener);
        await listener.start();
        return () => {
            this.#listeners.delete(listener);
            listener.stop();
        };
    };
    /** Refuses new work from now on. Work under way has `timeout` seconds to finish; then its connections are closed. */
    end = async ({ timeout = END_SECONDS } = {}) => {
        this.#ended = true;
        for (const listener of this.#listeners)
            listener.stop();
        for (const session of this.#idle.splice(0))
            session.close();
        for (const end of this.#waiting)
            end(Promise.reject(poolEnded()));
        if (this.#lent.size > 0)
            await this.#returns.sleep(timeout * 1000);
        for (const session of this.#lent)
            session.close();
    };
}
//# sourceMappingURL=postgres-pool.js.map