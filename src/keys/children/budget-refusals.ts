import type { JobOptions } from '../../platform/job.ts';
import { LateCounts } from '../../platform/late-counts.ts';
import type { Sql } from '../../platform/postgres.ts';

/** The budget that did not cover a call, in its present period. */
type RefusingBudget = { readonly keyId: string; readonly resetsAtMs: number | null };
type Count = { readonly resetsAtMs: number | null; readonly calls: number };

/**
 * Counts the calls that budgets refused, for the owners of the keys. A refused call has no hold and no event, so it is counted here and
 * added to `budget_refusals` every few seconds.
 *
 * Tested by test/routes/child-keys.test.ts.
 */
export class BudgetRefusals extends LateCounts<Count> {
  readonly #sql: Sql;

  constructor({ sql, log }: { readonly sql: Sql; readonly log: JobOptions['log'] }) {
    super('calls that budgets refused', log);
    this.#sql = sql;
  }

  count({ keyId, resetsAtMs }: RefusingBudget): void {
    this.add(keyId, { resetsAtMs, calls: 1 });
  }

  /** The count of a later period replaces that of the earlier one. */
  protected override merged(earlier: Count, later: Count): Count {
    if (earlier.resetsAtMs !== later.resetsAtMs) return later;
    return { resetsAtMs: later.resetsAtMs, calls: earlier.calls + later.calls };
  }

  protected override async store(counts: ReadonlyMap<string, Count>): Promise<void> {
    await addRefusals(this.#sql, counts);
  }
}

/**
 * A key has one row, for the latest period in which its budget refused a call. A key whose budget was removed meanwhile has none.
 */
async function addRefusals(sql: Sql, counts: ReadonlyMap<string, Count>): Promise<void> {
  const all = Array.from(counts.values());
  await sql`
    INSERT INTO budget_refusals AS b (key_id, resets_at, calls)
    SELECT k.key_id, coalesce(to_timestamp(r.resets_at_ms / 1000.0::float8), 'infinity'), r.calls
    FROM unnest(${Array.from(counts.keys())}::text[], ${all.map(({ resetsAtMs }) => resetsAtMs)}::bigint[],
                ${all.map(({ calls }) => calls)}::bigint[]) AS r (key_id, resets_at_ms, calls)
    JOIN api_keys k ON k.key_id = r.key_id AND k.budget_amount IS NOT NULL
    ORDER BY k.key_id
    ON CONFLICT (key_id) DO UPDATE SET
      resets_at = excluded.resets_at,
      calls = excluded.calls + CASE WHEN b.resets_at = excluded.resets_at THEN b.calls ELSE 0 END
    WHERE b.resets_at <= excluded.resets_at`;
}
