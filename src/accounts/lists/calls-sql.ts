import { dayOfId } from '../../platform/ids.ts';
import type { Tx } from '../../platform/postgres.ts';
import { CALL_SELECT, type CallRow } from '../call-fields.ts';
import { utcDay } from '../time-range.ts';

type CallOutcome = 'completed' | 'refunded' | 'abandoned';

type CallFilter = {
  /** The id of a single call; null: all calls. */
  readonly usageId: string | null;
  /** A half-open range of `created_at`, in ms. */
  readonly fromMs: number;
  readonly toMs: number;
  readonly accountId: string | null;
  readonly keyId: string | null;
  readonly serviceId: string | null;
  readonly providerId: string | null;
  readonly outcome: CallOutcome | null;
};

const DAY_MS = 86_400_000;
/**
 * By how much the gateway's clock, from which a call's day follows, and Redis's clock, from which `created_at` comes, may differ.
 */
const CLOCK_SLACK_MS = 3_600_000;

/**
 * Calls of all accounts, newest first. Reads day by day, from the newest, until the page is full: within a day, both indexes of the
 * calls are in the order of the list.
 *
 * @param timed   sets the deadline of each statement
 * @param before  the last `usageId` of the previous page, or null for the first
 */
export async function selectAllCalls(
  timed: () => Promise<Tx>,
  filter: CallFilter,
  before: string | null,
  limit: number,
): Promise<CallRow[]> {
  const found: CallRow[] = [];
  const { usageId } = filter;
  const lastMs = Date.parse(usageId === null ? utcDay(filter.fromMs - CLOCK_SLACK_MS) : dayOfId(usageId));
  const newest = usageId === null ? utcDay(filter.toMs + CLOCK_SLACK_MS) : dayOfId(usageId);
  const first = before !== null && dayOfId(before) < newest ? dayOfId(before) : newest;
  // Counted in milliseconds: `utcDay` has no day before 1970.
  for (let ms = Date.parse(first); ms >= lastMs && found.length < limit; ms -= DAY_MS) {
    found.push(...(await selectCallsOfDay(await timed(), utcDay(ms), filter, before, limit - found.length)));
  }
  return found;
}

function selectCallsOfDay(
  tx: Tx,
  day: string,
  filter: CallFilter,
  before: string | null,
  limit: number,
): Promise<CallRow[]> {
  const { usageId, accountId, keyId, serviceId, providerId, outcome, fromMs, toMs } = filter;
  const ofAccount = tx`AND c.account_id = ${accountId}
    AND c.key_id IN (SELECT key_id FROM api_keys WHERE account_id = ${accountId})`;
  const ofOutcome = outcome === 'refunded' ? tx`AND c.outcome LIKE 'refunded:%'` : tx`AND c.outcome = ${outcome}`;
  return tx.anew<CallRow[]>`
    SELECT ${tx.text(CALL_SELECT)}
    FROM calls c LEFT JOIN services s ON s.id = c.service_id
    WHERE c.day = ${day} AND c.created_at >= ${new Date(fromMs)} AND c.created_at < ${new Date(toMs)}
      ${usageId === null ? tx`` : tx`AND c.usage_id = ${usageId}`}
      ${before === null ? tx`` : tx`AND c.usage_id < ${before}`}
      ${accountId === null ? tx`` : ofAccount}
      ${keyId === null ? tx`` : tx`AND c.key_id = ${keyId}`}
      ${serviceId === null ? tx`` : tx`AND c.service_id = ${serviceId}`}
      ${providerId === null ? tx`` : tx`AND c.provider_id = ${providerId}`}
      ${outcome === null ? tx`` : ofOutcome}
    ORDER BY c.usage_id DESC LIMIT ${limit}`;
}
