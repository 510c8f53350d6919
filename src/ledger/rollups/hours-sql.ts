import { COUNTED_SQL } from '../usage-event.ts';
import { CALL_CLASSES, CLASS_SQL, SERVICE_FAILURES } from './call-class.ts';

/** Columns of `calls` that the sums by hour are made from. */
export const SUMMED_COLUMNS =
  'account_id, key_id, provider_id, service_id, path, status, amount, fee, free_tier, outcome, latency_us, created_at';

const SERVICE_SUMS = ['calls', 'completed', 'free_calls', ...CALL_CLASSES, 'charged', 'fees', 'latency_sum_us'];
export const SERVICE_COLUMNS = `service_id, hour, provider_id, ${SERVICE_SUMS.join(', ')}`;
const KEY_SUMS = [
  ...['calls', 'free_calls', 'succeeded', 'failed', 'spent', 'latency_sum_us', 'latency_count', 'succeeded_us'],
];
export const KEY_COLUMNS = `key_id, hour, service_id, account_id, ${KEY_SUMS.join(', ')}, last_call_at`;

const added = (columns: readonly string[]): string =>
  columns.map((column) => `${column} = h.${column} + excluded.${column}`).join(', ');

/**
 * Adds the rows of `sums`, one per service and hour. The rows are locked in the order of their keys.
 *
 * A listing has one provider, and a key one account. If a damaged event says otherwise, the row has the least id, in whatever order
 * the events come.
 */
export const addServiceHours = (sums: string): string => `
  INSERT INTO service_hours AS h (${SERVICE_COLUMNS})
  SELECT ${SERVICE_COLUMNS} FROM (${sums}) AS sums ORDER BY service_id, hour
  ON CONFLICT (service_id, hour) DO UPDATE SET ${added(SERVICE_SUMS)},
    provider_id = least(h.provider_id, excluded.provider_id)`;

/** Adds the rows of `sums`, one per key, hour and service. The rows are locked in the order of their keys. */
export const addKeyHours = (sums: string): string => `
  INSERT INTO key_hours AS h (${KEY_COLUMNS})
  SELECT ${KEY_COLUMNS} FROM (${sums}) AS sums ORDER BY key_id, hour, service_id
  ON CONFLICT (key_id, hour, service_id) DO UPDATE SET ${added(KEY_SUMS)},
    account_id = least(h.account_id, excluded.account_id),
    last_call_at = greatest(h.last_call_at, excluded.last_call_at)`;

const HOUR = `date_trunc('hour', created_at, 'UTC')`;
const countClass = (name: string): string => `count(*) FILTER (WHERE class = '${name}') AS ${name}`;

/** The counted calls of `from` (rows with `SUMMED_COLUMNS`), each with its hour and its class. */
export const countedOf = (from: string): string =>
  `(SELECT *, ${HOUR} AS hour, ${CLASS_SQL} AS class FROM ${from} WHERE ${COUNTED_SQL}) AS counted`;

/** Sums of the counted calls of `from` (rows with `SUMMED_COLUMNS`) by service and hour: the rows of `service_hours`. */
export const serviceSumsOf = (from: string): string => `
  SELECT service_id, hour, (min(provider_id::text))::uuid AS provider_id, count(*) AS calls,
    count(*) FILTER (WHERE outcome = 'completed') AS completed,
    count(*) FILTER (WHERE outcome = 'completed' AND free_tier) AS free_calls,
    ${CALL_CLASSES.map(countClass).join(', ')},
    sum(amount) AS charged, sum(fee) AS fees,
    coalesce(sum(latency_us) FILTER (WHERE class = 'succeeded'), 0) AS latency_sum_us
  FROM ${countedOf(from)}
  GROUP BY service_id, hour`;

/** Sums of the counted calls of `from` (rows with `SUMMED_COLUMNS`) by key, hour and service: the rows of `key_hours`. */
export const keySumsOf = (from: string): string => `
  SELECT key_id, hour, service_id, (min(account_id::text))::uuid AS account_id, count(*) AS calls,
    count(*) FILTER (WHERE outcome = 'completed' AND free_tier) AS free_calls,
    count(*) FILTER (WHERE class = 'succeeded') AS succeeded,
    count(*) FILTER (WHERE class IN (${SERVICE_FAILURES.map((name) => `'${name}'`).join(', ')})) AS failed,
    sum(amount) AS spent, sum(latency_us) AS latency_sum_us, count(*) FILTER (WHERE latency_us > 0) AS latency_count,
    coalesce(sum(latency_us) FILTER (WHERE class = 'succeeded'), 0) AS succeeded_us,
    max(created_at) AS last_call_at
  FROM ${countedOf(from)}
  GROUP BY key_id, hour, service_id`;

const bigints = (columns: readonly string[]): string[] => columns.map((column) => `${column} bigint`);

/** Names and types of the array parameters of `serviceRowsFrom` and `keyRowsFrom`, in their order. */
export const SERVICE_PARAMETERS: readonly string[] = [
  ...['service_id uuid', 'hours bigint', 'provider_id uuid'],
  ...bigints(SERVICE_SUMS),
];
export const KEY_PARAMETERS: readonly string[] = [
  ...['key_id text', 'hours bigint', 'service_id uuid', 'account_id uuid'],
  ...bigints(KEY_SUMS),
  'last_ms bigint',
];

/**
 * The arrays as rows. They are read in the target list: for sums by key that took Postgres 1.5 µs per row, and in FROM 2.5. Each
 * row is of another key, hour and service: adding up equal ones here, by GROUP BY, took 3 µs more per row.
 */
export function rowsFrom(parameters: readonly string[], first: number): string {
  const columns = parameters.map((parameter, i) => {
    const [name, type] = parameter.split(' ');
    return `unnest($${first + i}::${type}[]) AS ${name}`;
  });
  return `(SELECT ${columns.join(', ')}) AS rows`;
}

/** `hours` counts whole hours since 1970. 3 600 times that is exact in a float8 for every date that Postgres knows. */
const HOUR_OF_NUMBER = 'to_timestamp(hours * 3600::float8) AS hour';

/** The writer's sums by service and hour, one row each, from the parameters `$first` and following. */
export const serviceRowsFrom = (first: number): string => `
  SELECT service_id, ${HOUR_OF_NUMBER}, provider_id, ${SERVICE_SUMS.join(', ')}
  FROM ${rowsFrom(SERVICE_PARAMETERS, first)}`;

/** The writer's sums by key, hour and service, one row each, from the parameters `$first` and following. */
export const keyRowsFrom = (first: number): string => `
  SELECT key_id, ${HOUR_OF_NUMBER}, service_id, account_id, ${KEY_SUMS.join(', ')},
    to_timestamp(last_ms / 1000.0::float8) AS last_call_at
  FROM ${rowsFrom(KEY_PARAMETERS, first)}`;
