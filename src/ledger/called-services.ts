import { unavailableError } from '../errors.ts';
import type { Sql } from '../platform/postgres.ts';
import type { RedisStore } from '../platform/redis.ts';
import type { RedisKeys } from '../platform/redis-keys.ts';
import { findCallScript } from './scripts.ts';

/** Entries per page: 0.3 ms of Redis's time, during which calls wait. */
const PAGE = 250;
/** Maximum pages of a shard's holds, and of its stream. Anything beyond them is taken for a call of the service. */
const MAX_PAGES = 40;

type Stores = { readonly sql: Sql; readonly redis: RedisStore; readonly keys: RedisKeys };
type Service = { readonly id: string; readonly providerId: string };

/**
 * Whether any account except its provider's has ever called a service. A call is in Redis until the writer has stored it, and from
 * then on in the sums by hour, which are kept for ever. Free messages to MCP servers do not count as calls once they are stored.
 *
 * Tested by test/ledger/called-services.test.ts.
 */
export class CalledServices {
  readonly #stores: Stores;

  constructor(stores: Stores) {
    this.#stores = stores;
  }

  /** Whether a call is stored. This is good enough for a page; decisions use `has`. */
  async hasStored(id: string): Promise<boolean> {
    const rows = await this.#stores.sql<{ called: boolean }[]>`
      SELECT EXISTS (SELECT FROM service_hours WHERE service_id = ${id}) AS called`;
    return rows[0]?.called === true;
  }

  /**
   * Finds every call that was admitted before this began, and may find later ones.
   *
   * @throws ApiError `unavailable` when Redis is away
   */
  async has(service: Service): Promise<boolean> {
    // A call moves from the holds to the stream, and from there to Postgres. Searched in this order, none can be missed.
    return (
      (await this.hasStored(service.id)) ||
      (await this.#isIn('open', service)) ||
      (await this.#isIn('usage', service)) ||
      (await this.hasStored(service.id))
    );
  }

  async #isIn(kind: 'open' | 'usage', service: Service): Promise<boolean> {
    try {
      const found = await Promise.all(this.#stores.keys[kind].map((key) => this.#isInKey(key, kind, service)));
      return found.includes(true);
    } catch (cause) {
      throw unavailableError(cause);
    }
  }

  async #isInKey(key: string, kind: 'open' | 'usage', { id, providerId }: Service): Promise<boolean> {
    let from = '0';
    for (let page = 0; page < MAX_PAGES; page++) {
      const args = [key, id, providerId, kind, from, String(PAGE)];
      const [found, next] = (await this.#stores.redis.script(findCallScript, 1, args)) as [number, string];
      if (found === 1) return true;
      if (next === '0') return false;
      from = next;
    }
    return true;
  }
}
