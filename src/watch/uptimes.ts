import { Job, type JobOptions } from '../platform/job.ts';
import type { Sql } from '../platform/postgres.ts';
import { selectUptimes, type Uptime } from './watch-sql.ts';

/** How often they are read again. A check is a minute old at most before it is written, so this need not be sooner. */
const READ_MS = 30_000;

/** The uptimes of all services with a health path, in memory: anybody may look at a listing, as often as the rate limit allows. */
export class Uptimes extends Job {
  readonly #sql: Sql;
  #byService: ReadonlyMap<string, Uptime> = new Map();

  constructor(options: { readonly sql: Sql; readonly log: JobOptions['log']; readonly readMs?: number | undefined }) {
    super({
      everyMs: options.readMs ?? READ_MS,
      messages: {
        failing: 'watch: uptimes cannot be read; the last ones stay in use',
        again: 'watch: uptimes are read again',
      },
      log: options.log,
    });
    this.#sql = options.sql;
  }

  /** Undefined for a service without a health path, or before its first check. */
  of(serviceId: string): Uptime | undefined {
    return this.#byService.get(serviceId);
  }

  protected override async round(): Promise<void> {
    this.#byService = await selectUptimes(this.#sql);
  }
}
