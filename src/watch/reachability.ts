import type { Sql } from '../platform/postgres.ts';
import type { UpstreamClient } from '../upstream/index.ts';
import { ask } from './ask.ts';
import { writeReachable } from './watch-sql.ts';

/** Maximum questions under way in this process, one for each account: nobody makes the gateway scan networks faster than by calls. */
const MAX_ASKING = 8;
/** Maximum endpoints that wait to be asked. Beyond it, a new endpoint is not asked: its `reachable` stays absent. */
const MAX_WAITING = 1_000;

type NewEndpoint = { readonly id: string; readonly providerId: string; readonly endpoint: string };

type Log = { warn(fields: object, message: string): void };

/**
 * Asks each new endpoint once whether it answers, and writes that down for its provider. Nothing waits for it, and no listing is
 * refused by it: a service may be started after it is listed.
 *
 * Tested by test/integration/watched-services.test.ts.
 */
export class Reachability {
  readonly #client: UpstreamClient;
  readonly #sql: Sql;
  readonly #log: Log;
  readonly #stopping = new AbortController();
  readonly #asking = new Set<string>();
  /** By service: only its last endpoint is of interest. */
  readonly #waiting = new Map<string, NewEndpoint>();

  constructor(options: { readonly client: UpstreamClient; readonly sql: Sql; readonly log: Log }) {
    this.#client = options.client;
    this.#sql = options.sql;
    this.#log = options.log;
  }

  /** Returns at once. */
  check({ id, providerId, endpoint }: NewEndpoint): void {
    if (this.#waiting.size >= MAX_WAITING || this.#stopping.signal.aborted) return;
    this.#waiting.set(id, { id, providerId, endpoint });
    this.#askNext();
  }

  /** What waits and what is under way is given up: those endpoints stay without a result. */
  stop(): void {
    this.#waiting.clear();
    this.#stopping.abort();
  }

  #askNext(): void {
    for (const next of this.#waiting.values()) {
      if (this.#asking.size >= MAX_ASKING) return;
      if (this.#asking.has(next.providerId)) continue;
      this.#waiting.delete(next.id);
      this.#asking.add(next.providerId);
      void this.#ask(next).finally(() => {
        this.#asking.delete(next.providerId);
        this.#askNext();
      });
    }
  }

  async #ask({ id, endpoint }: NewEndpoint): Promise<void> {
    try {
      const { signal } = this.#stopping;
      const status = await ask(this.#client, { serviceId: id, endpoint, method: 'HEAD', path: '' }, signal);
      if (signal.aborted) return;
      await writeReachable(this.#sql, id, endpoint, status !== null);
    } catch (error) {
      this.#log.warn({ err: error, service_id: id }, 'watch: cannot write down whether an endpoint is reachable');
    }
  }
}
