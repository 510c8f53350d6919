import type { JobOptions } from '../platform/job.ts';
import { LateCounts } from '../platform/late-counts.ts';
import type { Sql } from '../platform/postgres.ts';

const DAY_MS = 86_400_000;

/** A call that the balance of its account did not cover. */
export type RefusedCall = {
  readonly keyId: string;
  readonly accountId: string;
  readonly serviceId: string;
  /** The amount that would have been held. */
  readonly requiredMicros: number;
};
type Count = Omit<RefusedCall, 'keyId'> & {
  /** The time of the last one; the others are of the same day (UTC). */
  readonly atMs: number;
  readonly calls: number;
};

/** In UTC. */
const dayOf = ({ atMs }: Count): number => Math.floor(atMs / DAY_MS);

/**
 * Counts the calls that a balance did not cover, for the owners of accounts. A refused call has no hold and no event, so it is counted
 * here and added to `balance_refusals` every few seconds.
 *
 * Tested by test/routes/account-usage.test.ts.
 */
export class BalanceRefusals extends LateCounts<Count> {
  readonly #sql: Sql;
  readonly #now: () => number;

  constructor({ sql, log, now = Date.now }: { sql: Sql; log: JobOptions['log']; now?: () => number }) {
    super('calls that balances refused', log);
    this.#sql = sql;
    this.#now = now;
  }

  count({ keyId, ...call }: RefusedCall): void {
    this.add(keyId, { ...call, atMs: this.#now(), calls: 1 });
  }

  protected override merged(earlier: Count, later: Count): Count {
    const isSameDay = dayOf(earlier) === dayOf(later);
    return { ...later, calls: later.calls + (isSameDay ? earlier.calls : 0) };
  }

  /** A key has one row, for the latest day on which one of its calls was refused. */
  protected override async store(counts: ReadonlyMap<string, Count>): Promise<void> {
    const all = Array.from(counts.values());
    await this.#sql`
      INSERT INTO balance_refusals AS b (key_id, account_id, service_id, required, refused_at, calls)
      SELECT r.key_id, r.account_id, r.service_id, r.required, to_timestamp(r.at_ms / 1000.0::float8), r.calls
      FROM unnest(${Array.from(counts.keys())}::text[], ${all.map(({ accountId }) => accountId)}::uuid[],
                  ${all.map(({ serviceId }) => serviceId)}::uuid[], ${all.map(({ requiredMicros }) => requiredMicros)}::bigint[],
                  ${all.map(({ atMs }) => atMs)}::bigint[], ${all.map(({ calls }) => calls)}::bigint[])
        AS r (key_id, account_id, service_id, required, at_ms, calls)
      ORDER BY r.key_id
      ON CONFLICT (key_id) DO UPDATE SET
        service_id = CASE WHEN excluded.refused_at >= b.refused_at THEN excluded.service_id ELSE b.service_id END,
        required = CASE WHEN excluded.refused_at >= b.refused_at THEN excluded.required ELSE b.required END,
        refused_at = greatest(b.refused_at, excluded.refused_at),
        calls = excluded.calls + CASE WHEN (b.refused_at AT TIME ZONE 'UTC')::date = (excluded.refused_at AT TIME ZONE 'UTC')::date
                                      THEN b.calls ELSE 0 END
      WHERE (b.refused_at AT TIME ZONE 'UTC')::date <= (excluded.refused_at AT TIME ZONE 'UTC')::date`;
  }
}
