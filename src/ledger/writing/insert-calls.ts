import { dayOfId } from '../../platform/ids.ts';
import { budgetsText, chargedMicros, feeMicros, type UsageEvent, useOf } from '../usage-event.ts';
import { arrayLiterals, quoted } from './array-literal.ts';

/**
 * Stores the calls that are not stored yet, as rows of the journal row $1, and returns their ids. The other parameters are those of
 * `callColumns`. The same call must not occur twice in one statement: it would be unknown which of its events was stored.
 */
export const INSERT_CALLS_SQL = `
INSERT INTO calls (day, usage_id, account_id, key_id, provider_id, service_id, method, path, status, amount, fee,
                   free_tier, outcome, latency_us, request_bytes, response_bytes, created_at, authorized, clamped, at_cap, cause,
                   budgets, tag, journal_id)
SELECT day, usage_id, account_id, key_id, provider_id, service_id, method, path, status, amount, fee,
       free_tier, outcome, latency_us, request_bytes, response_bytes, to_timestamp(admitted_ms / 1000.0::float8),
       authorized, clamped, at_cap, cause, budgets, tag, $1::bigint
FROM unnest(
  $2::uuid[], $3::date[], $4::uuid[], $5::text[], $6::uuid[], $7::uuid[], $8::text[], $9::text[], $10::smallint[],
  $11::bigint[], $12::bigint[], $13::boolean[], $14::text[], $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[],
  $19::bigint[], $20::boolean[], $21::boolean[], $22::text[], $23::text[], $24::text[]
) AS t (usage_id, day, account_id, key_id, provider_id, service_id, method, path, status,
        amount, fee, free_tier, outcome, latency_us, request_bytes, response_bytes, admitted_ms, authorized, clamped, at_cap,
        cause, budgets, tag)
ON CONFLICT DO NOTHING
RETURNING usage_id AS "usageId"`;
const CALL_COLUMNS = 23;

/** The parameters of `INSERT_CALLS_SQL` after the first: one array literal for each column. */
export const callColumns = (events: readonly UsageEvent[], feeBasisPoints: number): string[] =>
  arrayLiterals(events, CALL_COLUMNS, (event, add) => {
    const amount = chargedMicros(event);
    const use = useOf(event);
    const budgets = budgetsText(event.budgets);
    add(0, event.usageId);
    add(1, dayOfId(event.usageId));
    add(2, event.accountId);
    add(3, quoted(event.keyId));
    add(4, event.providerId);
    add(5, event.serviceId);
    add(6, quoted(event.method));
    add(7, quoted(event.path));
    add(8, event.status);
    add(9, amount);
    add(10, feeMicros(amount, feeBasisPoints));
    add(11, letterOf(event.freeTier));
    add(12, event.outcome);
    add(13, event.latencyUs);
    add(14, event.requestBytes);
    add(15, event.responseBytes);
    add(16, event.admittedAtMs);
    add(17, use?.authorizedMicros ?? 'NULL');
    add(18, use === null ? 'NULL' : letterOf(use.isClamped));
    add(19, use === null ? 'NULL' : letterOf(use.isAtCap));
    add(20, event.cause === null ? 'NULL' : quoted(event.cause));
    add(21, budgets === null ? 'NULL' : quoted(budgets));
    add(22, event.tag === null ? 'NULL' : quoted(event.tag));
  });

const letterOf = (value: boolean): string => (value ? 't' : 'f');
