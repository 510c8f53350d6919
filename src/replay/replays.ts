import { dayOfId, isUuid } from '../platform/ids.ts';
import type { JobOptions } from '../platform/job.ts';
import { LateCounts } from '../platform/late-counts.ts';
import type { Sql } from '../platform/postgres.ts';

/**
 * Counts how often the answer to a call was repeated, for the record of that call. A repeat has no hold and no event, so it is
 * counted here and added to `call_replays` every few seconds. Calls that are not repeated cost nothing.
 *
 * Tested by test/routes/usage.test.ts and test/integration/replay.test.ts.
 */
export class Replays extends LateCounts<number> {
  readonly #sql: Sql;

  constructor({ sql, log }: { readonly sql: Sql; readonly log: JobOptions['log'] }) {
    super('repeats of calls', log);
    this.#sql = sql;
  }

  /**
   * @param usageId the first call. An invalid id (from a damaged claim) is not counted: because of it Postgres would refuse all
   * others
   */
  count(usageId: string): void {
    if (isUuid(usageId)) this.add(usageId, 1);
  }

  protected override merged(earlier: number, later: number): number {
    return earlier + later;
  }

  protected override async store(counts: ReadonlyMap<string, number>): Promise<void> {
    const ids = Array.from(counts.keys());
    // In the order of ids, so that two gateways do not wait for each other.
    await this.#sql`
      INSERT INTO call_replays AS c (day, usage_id, replays)
      SELECT * FROM unnest(${ids.map(dayOfId)}::date[], ${ids}::uuid[], ${Array.from(counts.values())}::bigint[])
        AS r (day, usage_id, replays)
      ORDER BY usage_id
      ON CONFLICT (day, usage_id) DO UPDATE SET replays = c.replays + excluded.replays`;
  }
}
