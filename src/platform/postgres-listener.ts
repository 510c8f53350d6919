import { PostgresSession, type SessionOptions } from './postgres-session.ts';
import { Sleeper } from './timing.ts';

const MIN_BACKOFF_MS = 50;
const MAX_BACKOFF_MS = 1_000;
/** How often a query tests the connection. Whoever only listens does not notice that the network has gone silent. */
const PROBE_MS = 30_000;
/** Bounds that query, and the LISTEN. Then the connection is made again. */
const TIMEOUT_MS = 10_000;

export type Subscription = {
  readonly channel: string;
  readonly onMessage: (payload: string) => void;
  /** Called each time the subscription is made: messages may have been missed before. */
  readonly onListening?: () => void;
};

/** Listens to one channel until `stop`: whenever the connection ends, the listener makes a new one. */
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

  /** Resolves when it listens. Rejects when the first attempt failed, but goes on trying until `stop`. */
  async start(): Promise<void> {
    try {
      await this.#listen();
    } finally {
      void this.#keepListening();
    }
  }

  stop(): void {
    this.#stopped = true;
    this.#session?.close();
    this.#sleeper.wake();
  }

  async #listen(): Promise<void> {
    const { channel, onMessage, onListening } = this.#subscription;
    const hooks = { onNotify: onMessage, onClose: () => this.#sleeper.wake() };
    const session = new PostgresSession(this.#options, TIMEOUT_MS, hooks);
    this.#session = session;
    try {
      await session.query(`LISTEN "${channel.replaceAll('"', '""')}"`);
    } catch (error) {
      session.close();
      throw error;
    }
    if (!this.#stopped) onListening?.();
  }

  async #keepListening(): Promise<void> {
    let failures = 0;
    while (!this.#stopped) {
      try {
        if (this.#session?.open !== true) await this.#listen();
        failures = 0;
        if (!this.#stopped && this.#session?.open) await this.#sleeper.sleep(PROBE_MS);
        if (!this.#stopped && this.#session?.open) await this.#session.query('SELECT 1');
      } catch {
        // Not reported here: while Postgres is away, queries of the pool fail as well, and their users report it.
        failures++;
        await this.#sleeper.sleep(Math.min(MIN_BACKOFF_MS * 2 ** failures, MAX_BACKOFF_MS));
      }
    }
    this.#session?.close();
  }
}
