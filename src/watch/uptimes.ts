import type { Sql } from '../platform/postgres.ts';
import { selectUptimes, type Uptime } from './watch-sql.ts';

/** How often they are read again. A check is a minute old at most before it is written, so this need not be sooner. */
const READ_MS = 30_000;

type Log = { warn(fields: object, message: string): void };

/** The uptimes of all services with a health path, in memory: anybody may look at a listing, as often as the rate limit allows. */
export class Uptimes {
  readonly #sql: Sql;
  readonly #log: Log;
  readonly #readMs: number;
  #byService: ReadonlyMap<string, Uptime> = new Map();
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(options: { readonly sql: Sql; readonly log: Log; readonly readMs?: number | undefined }) {
    this.#sql = options.sql;
    this.#log = options.log;
    this.#readMs = options.readMs ?? READ_MS;
  }

  /** Undefined for a service without a health path, or before its first check. */
  of(serviceId: string): Uptime | undefined {
    return this.#byService.get(serviceId);
  }

  start(): void {
    void this.#read();
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  async #read(): Promise<void> {
    try {
      this.#byService = await selectUptimes(this.#sql);
    } catch (error) {
      this.#log.warn({ err: error }, 'watch: uptimes cannot be read; the last ones stay in use');
    }
    if (!this.#isStopped) this.#timer = setTimeout(() => void this.#read(), this.#readMs).unref();
  }
}
