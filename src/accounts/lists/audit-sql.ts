import type { Tx } from '../../platform/postgres.ts';
import type { Act, ActOutcome } from '../audit.ts';
import type { TimeRange } from '../time-range.ts';

type AuditFilter = TimeRange & {
  /** The id of a key or account, or the name of an actor that is not a key. */
  readonly actor: string | null;
  readonly actorIsAccount: boolean;
  readonly action: string | null;
  readonly subjectId: string | null;
  readonly outcome: ActOutcome | null;
};

export type AuditRow = Act & { readonly id: number; readonly at: Date; readonly outcome: ActOutcome };

/**
 * Acts, newest first. Acts of one transaction have the same time: the id breaks the tie.
 *
 * @param before the id of the last act of the previous page (acts are never deleted, so it still exists), or null for the first
 */
export function selectActs(tx: Tx, filter: AuditFilter, before: number | null, limit: number): Promise<AuditRow[]> {
  const { actor, actorIsAccount, action, subjectId, outcome, fromMs, toMs } = filter;
  const byActor = actorIsAccount ? tx`AND actor_account_id = ${actor}` : tx`AND actor = ${actor}`;
  return tx<AuditRow[]>`
    SELECT id, at, actor, actor_account_id AS "actorAccountId", action, subject_type AS "subjectType",
           subject_id AS "subjectId", before, after, request_id AS "requestId", outcome
    FROM audit
    WHERE true ${actor === null ? tx`` : byActor}
      ${action === null ? tx`` : tx`AND action = ${action}`}
      ${subjectId === null ? tx`` : tx`AND subject_id = ${subjectId}`}
      ${outcome === null ? tx`` : tx`AND outcome = ${outcome}`}
      ${fromMs === null ? tx`` : tx`AND at >= ${new Date(fromMs)}`}
      ${toMs === null ? tx`` : tx`AND at < ${new Date(toMs)}`}
      ${before === null ? tx`` : tx`AND (at, id) < (SELECT at, id FROM audit WHERE id = ${before})`}
    ORDER BY at DESC, id DESC LIMIT ${limit}`;
}

export async function actExists(sql: Tx, id: number): Promise<boolean> {
  const rows = await sql<object[]>`SELECT FROM audit WHERE id = ${id}`;
  return rows.length > 0;
}
