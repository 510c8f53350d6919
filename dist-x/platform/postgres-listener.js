import { PostgresSession } from './postgres-session.js';
import { Sleeper } from './timing.js';
const MIN_BACKOFF_MS = 50;
const MAX_BACKOFF_MS = 1_000;
/** Interval at which a query tests the connection: a connection that only listens does not notice that the network is dead. */
const PROBE_MS = 30_000;
/** Bounds the test query and the LISTEN. At the bound, the connection is dropped and a new one is made. */
const TIMEOUT_MS = 10_000;
/**
 * Listens to a channel, or to two, until `stop`: whenever the connection ends, the listener makes a new one.
 *
 * Tested by test/keys/key-feed.test.ts and test/catalog/catalog.test.ts.
 */
export class PostgresListener {
    #options;
    #subscription;
    #session = null;
    #stopped = false;
    #sleeper = new Sleeper();
    constructor(options, subscription) {
        this.#options = options;
        this.#subscription = subscription;
    }
    /** Resolves when the first attempt to listen succeeds, and rejects when it fails. The listener keeps trying until `stop`. */
    start() {
        return new Promise((listening, failed) => void this.#keepListening(listening, failed));
    }
    stop() {
        this.#stopped = true;
        this.#session?.close();
        this.#sleeper.wake();
    }
    async #keepListening(listening, failed) {
        const { channel, onMessage, onListening, also } = this.#subscription;
        const onNotify = (payload, from) => from === also?.channel ? also.onMessage(payload) : onMessage(payload);
        const options = { ...this.#options, onNotify, onClose: () => this.#sleeper.wake() };
        const channels = [channel, ...(also === undefined ? [] : [also.channel])];
        let failures = 0;
        while (!this.#stopped) {
            const session = new PostgresSession(options, TIMEOUT_MS);
            this.#session = session;
            try {
                await session.query(channels.map((name) => `LISTEN "${name.replaceAll('"', '""')}"`).join(';'));
                if (!this.#stopped)
                    onListening?.();
                listening();
                failures = 0;
                while (session.open) {
                    await this.#sleeper.sleep(PROBE_MS);
                    if (session.open)
                        await session.query('SELECT 1');
                }
            }
            catch (error) {
                // Not logged here: while Postgres is away, the queries of the pool fail as well, and the code that made them logs it.
                failed(error);
                session.close();
                failures++;
                await this.#sleeper.sleep(Math.min(MIN_BACKOFF_MS * 2 ** failures, MAX_BACKOFF_MS));
            }
        }
    }
}
//# sourceMappingURL=postgres-listener.js.map