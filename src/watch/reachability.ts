import type { Sql } from '../platform/postgres.ts';
import type { UpstreamClient } from '../upstream/index.ts';
import { ask } from './ask.ts';
import { askHealth, INTERVAL_MS } from './health.ts';
import { writeFirstHealth, writeReachable } from './watch-sql.ts';

/**
 * Maximum questions under way in this process, at most one for each account: so nobody can make the gateway scan networks faster
 * than with calls.
 */
const MAX_ASKING = 8;
/** Maximum services that wait to be asked. Beyond it, a new endpoint is not asked: its `reachable` stays absent. */
const MAX_WAITING = 1_000;

/** A listing, or the parts of it that a question needs. */
type Listed = {
  readonly id: string;
  readonly providerId: string;
  readonly endpoint: string;
  readonly healthPath: string | null;
};
type Waiting = Listed & { readonly asksEndpoint: boolean };

type Log = { warn(fields: object, message: string): void };

/**
 * Asks each new endpoint once whether it answers, and also asks each new health path at once, and stores the result for the
 * provider. Nothing waits for it, and no listing is refused because of it: a service may be started after it is listed. These
 * answers do not count for uptimes.
 *
 * Tested by test/integration/watched-services.test.ts.
 */
export class Reachability {
  readonly #client: UpstreamClient;
  readonly #sql: Sql;
  readonly #log: Log;
  readonly #stopping = new AbortController();
  readonly #intervalMs: number;
  readonly #asking = new Set<string>();
  /** By service: only its latest endpoint matters. */
  readonly #waiting = new Map<string, Waiting>();

  /** @param intervalMs  as of `HealthJob` */
  constructor(options: {
    readonly client: UpstreamClient;
    readonly sql: Sql;
    readonly log: Log;
    readonly intervalMs?: number | undefined;
  }) {
    this.#client = options.client;
    this.#sql = options.sql;
    this.#log = options.log;
    this.#intervalMs = options.intervalMs ?? INTERVAL_MS;
  }

  /** Returns at once. @param what  'health': by the health path only */
  check({ id, providerId, endpoint, healthPath }: Listed, what: 'all' | 'health'): void {
    if (this.#waiting.size >= MAX_WAITING || this.#stopping.signal.aborted) return;
    const asksEndpoint = what === 'all' || (this.#waiting.get(id)?.asksEndpoint ?? false);
    this.#waiting.set(id, { id, providerId, endpoint, healthPath, asksEndpoint });
    this.#askNext();
  }

  /** Aborts all questions, waiting or under way: those endpoints stay without a result. */
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

  async #ask({ id, endpoint, healthPath, asksEndpoint }: Waiting): Promise<void> {
    try {
      if (asksEndpoint) await this.#askEndpoint(id, endpoint);
      if (healthPath === null || this.#stopping.signal.aborted) return;
      const watched = { id, endpoint, healthPath };
      const answer = await askHealth(this.#client, watched, this.#stopping.signal);
      if (answer !== null) await writeFirstHealth(this.#sql, { ...watched, ...answer }, this.#intervalMs);
    } catch (error) {
      this.#log.warn({ err: error, service_id: id }, 'watch: cannot store whether an endpoint is reachable');
    }
  }

  async #askEndpoint(id: string, endpoint: string): Promise<void> {
    const question = { serviceId: id, endpoint, method: 'HEAD', path: '' } as const;
    const answer = await ask(this.#client, question, this.#stopping.signal);
    if (answer !== null) await writeReachable(this.#sql, id, endpoint, answer);
  }
}
