import { PostgresSession, type SessionOptions } from './postgres-session.ts';
import { Sleeper } from './timing.ts';

const MIN_BACKOFF_MS = 50;
const MAX_BACKOFF_MS = 1_000;
/** How often a query tests the connection: a connection that only listens does not notice that the network is dead. */
const PROBE_MS = 30_000;
/** Time limit of the test query and the LISTEN. Beyond it, the connection is dropped and a new one is made. */
const TIMEOUT_MS = 10_000;

export type Subscription = {
  readonly channel: string;
  readonly onMessage: (payload: string) => void;
  /** Called after each successful LISTEN, also on a new connection, because messages may have been missed before it. */
  readonly onListening?: () => void;
  /** Another channel on the same connection, because a separate connection would cost Postgres megabytes. */
  readonly also?: Pick<Subscription, 'channel' | 'onMessage'>;
};

/**
 * Listens to a channel, or to two, until `stop`: whenever the connection ends, the listener makes a new one.
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
    const { channel, onMessage, onListening, also } = this.#subscription;
    const onNotify = (payload: string, from: string): void =>
      from === also?.channel ? also.onMessage(payload) : onMessage(payload);
    const options = { ...this.#options, onNotify, onClose: () => this.#sleeper.wake() };
    const channels = [channel, ...(also === undefined ? [] : [also.channel])];
    let failures = 0;
    while (!this.#stopped) {
      const session = new PostgresSession(options, TIMEOUT_MS);
      this.#session = session;
      try {
        await session.query(channels.map((name) => `LISTEN "${name.replaceAll('"', '""')}"`).join(';'));
        if (!this.#stopped) onListening?.();
        listening();
        failures = 0;
        while (session.open) {
          await this.#sleeper.sleep(PROBE_MS);
          if (session.open) await session.query('SELECT 1');
        }
      } catch (error) {
        // Not logged here: while Postgres is away, queries of the pool fail as well, and the code that made them logs it.
        failed(error);
        session.close();
        failures++;
        await this.#sleeper.sleep(Math.min(MIN_BACKOFF_MS * 2 ** failures, MAX_BACKOFF_MS));
      }
    }
  }
}
