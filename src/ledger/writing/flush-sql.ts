import { timeOfId } from '../../platform/ids.ts';
import { MOVE_BALANCES_SQL, PLATFORM_ACCOUNT_ID } from '../posting.ts';
import { addSumsOf } from '../rollups/all-sums.ts';
import { SUMMED_COLUMNS } from '../rollups/hours-sql.ts';
import { chargedMicros, feeMicros, type UsageEvent } from '../usage-event.ts';
import { quoted } from './array-literal.ts';

/**
 * Stores a batch that may contain calls that are stored already, or data that Postgres refuses. One statement inserts the calls
 * and then everything that follows from those that were really inserted. A call that is stored already has no second effect,
 * because everything below `inserted` reads only from `inserted`.
 *
 * Rows of `balances`, `free_usage`, `service_hours`, `key_hours`, `service_latencies` and `service_amounts` are locked in the order
 * of their keys. Every transaction that moves balances (credits, payouts) does the same, so no two can deadlock. The exception is a
 * batch that is stored in halves, under savepoints: each half locks its rows anew. It may deadlock with another writer. Then Postgres
 * ends one of the two transactions, and its writer tries the batch again. Tested by test/ledger/writing/flush.test.ts.
 */
export const FLUSH_SQL = `
WITH input AS (
  SELECT * FROM unnest(
    $1::uuid[], $2::date[], $3::uuid[], $4::text[], $5::uuid[], $6::uuid[], $7::text[], $8::text[], $9::smallint[],
    $10::bigint[], $11::bigint[], $12::boolean[], $13::text[], $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[]
  ) AS t (usage_id, day, account_id, key_id, provider_id, service_id, method, path, status,
          amount, fee, free_tier, outcome, latency_us, request_bytes, response_bytes, admitted_ms)
), next_journal AS MATERIALIZED (
  SELECT nextval(pg_get_serial_sequence('journal', 'id')) AS id
), inserted AS (
  INSERT INTO calls (day, usage_id, account_id, key_id, provider_id, service_id, method, path, status, amount, fee,
                     free_tier, outcome, latency_us, request_bytes, response_bytes, created_at, journal_id)
  SELECT day, usage_id, account_id, key_id, provider_id, service_id, method, path, status, amount, fee,
         free_tier, outcome, latency_us, request_bytes, response_bytes, to_timestamp(admitted_ms / 1000.0::float8),
         (SELECT id FROM next_journal)
  FROM input
  ON CONFLICT DO NOTHING
  RETURNING ${SUMMED_COLUMNS}
), journal_row AS (
  INSERT INTO journal (id, kind, with_hours) OVERRIDING SYSTEM VALUE
  SELECT id, 'usage', true FROM next_journal WHERE EXISTS (SELECT FROM inserted)
), sides AS (
  SELECT account_id, 'wallet' AS ledger, -sum(amount)::bigint AS amount FROM inserted GROUP BY account_id
  UNION ALL
  SELECT provider_id, 'earnings', sum(amount - fee)::bigint FROM inserted GROUP BY provider_id
  UNION ALL
  SELECT '${PLATFORM_ACCOUNT_ID}'::uuid, 'fees', sum(fee)::bigint FROM inserted
), posted AS (
  INSERT INTO entries (journal_id, account_id, ledger, amount)
  SELECT (SELECT id FROM next_journal), account_id, ledger, amount FROM sides WHERE amount <> 0
  RETURNING account_id, ledger, amount
), moved AS (${MOVE_BALANCES_SQL}
), free AS (
  INSERT INTO free_usage AS f (account_id, service_id, used)
  SELECT account_id, service_id, count(*) FROM inserted WHERE free_tier AND outcome = 'completed'
  GROUP BY account_id, service_id ORDER BY account_id, service_id
  ON CONFLICT (account_id, service_id) DO UPDATE SET used = f.used + excluded.used
), ${addSumsOf('inserted')}
SELECT count(*)::int AS inserted FROM inserted`;

/**
 * Keeps an event that cannot be stored as a call. Repeating it changes nothing. (`$3` is sent as text that is JSON already: the
 * client would encode a parameter of type `json` once more.)
 */
export const REJECT_SQL = `
INSERT INTO rejected_events (shard, stream_id, fields, error) VALUES ($1::int, $2::text, $3::text::json, $4::text)
ON CONFLICT DO NOTHING`;

/** The same for many events at once, from arrays. */
export const REJECT_ALL_SQL = `
INSERT INTO rejected_events (shard, stream_id, fields, error)
SELECT shard, stream_id, fields::json, error
FROM unnest($1::int[], $2::text[], $3::text[], $4::text[]) AS t (shard, stream_id, fields, error)
ON CONFLICT DO NOTHING`;

const DAY_MS = 86_400_000;
const dayNames = new Map<number, string>();

/** UTC day of an id as `YYYY-MM-DD`. Names are cached, since a batch has one or two days; this saves 0.7 µs per call. */
export function dayName(usageId: string): string {
  const day = Math.floor(timeOfId(usageId) / DAY_MS);
  let name = dayNames.get(day);
  if (name === undefined) {
    // Years beyond 9999 print as '+010889-…'. Postgres accepts them as '10889-…', without the sign and the zeros.
    name = new Date(day * DAY_MS).toISOString().replace(/^\+0*/, '').split('T')[0] as string;
    if (dayNames.size >= 64) dayNames.clear();
    dayNames.set(day, name);
  }
  return name;
}

/**
 * The parameters of `FLUSH_SQL`: one array literal per column. They are written here because the client's own array encoder
 * calls two functions for every element.
 */
export function flushParameters(events: readonly UsageEvent[], feeBasisPoints: number): string[] {
  const columns: string[] = Array.from({ length: 17 }, () => '{');
  let comma = '';
  const add = (column: number, text: string | number): void => {
    columns[column] += comma + text;
  };
  for (const event of events) {
    const amount = chargedMicros(event);
    add(0, event.usageId);
    add(1, dayName(event.usageId));
    add(2, event.accountId);
    add(3, quoted(event.keyId));
    add(4, event.providerId);
    add(5, event.serviceId);
    add(6, quoted(event.method));
    add(7, quoted(event.path));
    add(8, event.status);
    add(9, amount);
    add(10, feeMicros(amount, feeBasisPoints));
    add(11, event.freeTier ? 't' : 'f');
    add(12, event.outcome);
    add(13, event.latencyUs);
    add(14, event.requestBytes);
    add(15, event.responseBytes);
    add(16, event.admittedAtMs);
    comma = ',';
  }
  return columns.map((column) => `${column}}`);
}
