import { PostgresSession, type SessionOptions } from './postgres-session.ts';
import { Sleeper } from './timing.ts';

const MIN_BACKOFF_MS = 50;
const MAX_BACKOFF_MS = 1_000;
/** Interval at which a query tests the connection: a connection that only listens does not notice that the network is dead. */
const PROBE_MS = 30_000;
/** Bounds the test query and the LISTEN. At the bound, the connection is dropped and a new one is made. */
const TIMEOUT_MS = 10_000;

export type Subscription = {
  readonly channel: string;
  readonly onMessage: (payload: string) => void;
  /** Called after each successful LISTEN, also on a new connection: messages may have been missed before it. */
  readonly onListening?: () => void;
};

/**
 * Listens to one channel until `stop`: whenever the connection ends, the listener makes a new one.
 *
 * Tested by test/keys/key-feed.test.ts and test/catalog/catalog.test.ts.
 */
export class PostgresListener {
  readonly #options: SessionOptions;
  readonly #subscription: Subscription;
  #session: PostgresSession | null = null;
  #stopped = false;
  readonly #sleeper = new Sleeper();

  constructor(options: SessionOptions, subscription: Subscription) {
    this.#options = options;
    this.#subscription = subscription;
  }

  /** Resolves when the first attempt to listen succeeds, and rejects when it fails. The listener keeps trying until `stop`. */
  start(): Promise<void> {
    return new Promise((listening, failed) => void this.#keepListening(listening, failed));
  }

  stop(): void {
    this.#stopped = true;
    this.#session?.close();
    this.#sleeper.wake();
  }

  async #keepListening(listening: () => void, failed: (error: unknown) => void): Promise<void> {
    const { channel, onMessage, onListening } = this.#subscription;
    const options = { ...this.#options, onNotify: onMessage, onClose: () => this.#sleeper.wake() };
    let failures = 0;
    while (!this.#stopped) {
      const session = new PostgresSession(options, TIMEOUT_MS);
      this.#session = session;
      try {
        await session.query(`LISTEN "${channel.replaceAll('"', '""')}"`);
        if (!this.#stopped) onListening?.();
        listening();
        failures = 0;
        while (session.open) {
          await this.#sleeper.sleep(PROBE_MS);
          if (session.open) await session.query('SELECT 1');
        }
      } catch (error) {
        // Not logged here: while Postgres is away, the queries of the pool fail as well, and the code that made them logs it.
        failed(error);
        session.close();
        failures++;
        await this.#sleeper.sleep(Math.min(MIN_BACKOFF_MS * 2 ** failures, MAX_BACKOFF_MS));
      }
    }
  }
}
