import type { JobOptions } from '../platform/job.ts';
import { LateCounts } from '../platform/late-counts.ts';
import type { Sql } from '../platform/postgres.ts';
import { isOfSums, type KeyScope } from './key-scope.ts';
import { type TimeRange, utcDay } from './time-range.ts';

/** A call that the balance of its account did not cover. */
type RefusedCall = {
  readonly keyId: string;
  readonly accountId: string;
  readonly serviceId: string;
  /** What would have been held. */
  readonly requiredMicros: number;
};
type Count = Omit<RefusedCall, 'keyId'> & {
  /** Of the last one; the others are of the same day (UTC). */
  readonly atMs: number;
  readonly calls: number;
};

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
    const isSameDay = utcDay(earlier.atMs) === utcDay(later.atMs);
    return { ...later, calls: later.calls + (isSameDay ? earlier.calls : 0) };
  }

  /** A key has one row, of the latest day on which one of its calls was refused. */
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
        service_id = excluded.service_id, required = excluded.required,
        refused_at = greatest(b.refused_at, excluded.refused_at),
        calls = excluded.calls + CASE WHEN (b.refused_at AT TIME ZONE 'UTC')::date = (excluded.refused_at AT TIME ZONE 'UTC')::date
                                      THEN b.calls ELSE 0 END
      WHERE (b.refused_at AT TIME ZONE 'UTC')::date <= (excluded.refused_at AT TIME ZONE 'UTC')::date`;
  }
}

/** Maximum keys whose refused calls are told. */
const MAX_KEYS = 10;

/** The last call of a key that the balance did not cover. */
export type Refused = RefusedCall & {
  readonly label: string | null;
  readonly serviceName: string;
  readonly at: Date;
  readonly calls: number;
};

/** The last refused calls of the keys of a scope, in a range of time, the newest first: one of each key. */
export async function selectRefused(
  sql: Sql,
  { scope, serviceId, fromMs, toMs }: TimeRange & { readonly scope: KeyScope; readonly serviceId: string | null },
): Promise<readonly Refused[]> {
  return sql<Refused[]>`
    SELECT b.key_id AS "keyId", b.account_id AS "accountId", b.service_id AS "serviceId", b.required AS "requiredMicros",
           k.label, coalesce(s.name, '') AS "serviceName", b.refused_at AS at, b.calls
    FROM (
      SELECT * FROM balance_refusals WHERE ${isOfSums(sql, scope)} ${serviceId === null ? sql`` : sql`AND service_id = ${serviceId}`}
        ${fromMs === null ? sql`` : sql`AND refused_at >= ${new Date(fromMs)}`}
        ${toMs === null ? sql`` : sql`AND refused_at < ${new Date(toMs)}`}
      ORDER BY refused_at DESC, key_id LIMIT ${MAX_KEYS}
    ) AS b JOIN api_keys k ON k.key_id = b.key_id LEFT JOIN services s ON s.id = b.service_id
    ORDER BY b.refused_at DESC, b.key_id`;
}
