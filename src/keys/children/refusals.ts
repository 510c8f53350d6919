import { Job, type JobOptions } from '../../platform/job.ts';
import type { Sql } from '../../platform/postgres.ts';

/** How long counts wait in memory. They are lost with a process that dies. */
const STORE_MS = 5_000;
/** Maximum budgets with refusals that wait. Refusals by further budgets are not counted. */
const MAX_BUDGETS = 10_000;

/** The budget that did not cover a call, in its present period. */
type RefusingBudget = { readonly keyId: string; readonly resetsAtMs: number | null };
type Count = { readonly resetsAtMs: number | null; calls: number };

/**
 * Counts the calls that budgets refused, for the owners of the keys. A refused call has no hold and no event, so it is counted here and
 * added to `budget_refusals` every few seconds. No money depends on it: a count may lack what a killed process had, and may have twice what
 * Postgres stored without being able to say so.
 *
 * Tested by test/routes/child-keys.test.ts.
 */
export class BudgetRefusals extends Job {
  readonly #sql: Sql;
  readonly #log: JobOptions['log'];
  #waiting = new Map<string, Count>();

  constructor({ sql, log }: { readonly sql: Sql; readonly log: JobOptions['log'] }) {
    super({
      everyMs: STORE_MS,
      messages: {
        failing: 'calls that budgets refused cannot be counted in Postgres; trying again',
        again: 'calls that budgets refused are counted in Postgres again',
      },
      log,
    });
    this.#sql = sql;
    this.#log = log;
  }

  count({ keyId, resetsAtMs }: RefusingBudget): void {
    const waiting = this.#waiting.get(keyId);
    if (waiting !== undefined && waiting.resetsAtMs === resetsAtMs) waiting.calls++;
    else if (waiting !== undefined || this.#waiting.size < MAX_BUDGETS)
      this.#waiting.set(keyId, { resetsAtMs, calls: 1 });
  }

  /** Stores what waits. Call it after the last call has been answered. */
  override async stop(): Promise<void> {
    await super.stop();
    try {
      await this.round();
    } catch (err) {
      this.#log.warn({ err, budgets: this.#waiting.size }, 'calls that budgets refused are not counted');
    }
  }

  protected override async round(): Promise<void> {
    if (this.#waiting.size === 0) return;
    const taken = this.#waiting;
    this.#waiting = new Map();
    try {
      await addRefusals(this.#sql, taken);
    } catch (error) {
      for (const [keyId, { resetsAtMs, calls }] of taken) {
        const since = this.#waiting.get(keyId);
        if (since === undefined) this.#waiting.set(keyId, { resetsAtMs, calls });
        else if (since.resetsAtMs === resetsAtMs) since.calls += calls;
      }
      throw error;
    }
  }
}

/** A key has one row, of the latest period in which its budget refused a call. A budget that was stopped meanwhile has none. */
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
