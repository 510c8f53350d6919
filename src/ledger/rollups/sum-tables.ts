import { CALL_CLASSES } from './call-class.ts';

/** A table of sums of counted calls. Its first `keys` columns are its primary key. */
export type SumTable = {
  readonly name: string;
  readonly keys: number;
  readonly columns: readonly string[];
  /** Its rows are computed from the rows that are added to this table. */
  readonly of?: SumTable;
};

export const SERVICE_HOURS: SumTable = {
  name: 'service_hours',
  keys: 2,
  columns: [
    'service_id',
    'hour',
    'provider_id',
    'calls',
    'completed',
    'free_calls',
    ...CALL_CLASSES,
    'charged',
    'fees',
    'latency_sum_us',
    'by_use',
    'at_cap',
    'first_call_at',
    'last_call_at',
  ],
};
export const KEY_HOURS: SumTable = {
  name: 'key_hours',
  keys: 3,
  columns: [
    'key_id',
    'hour',
    'service_id',
    'account_id',
    'calls',
    'completed',
    'free_calls',
    'succeeded',
    'failed',
    'latency_count',
    'spent',
    'latency_sum_us',
    'succeeded_us',
    'first_call_at',
    'last_call_at',
  ],
};
export const DAY_SUMS: readonly string[] = ['calls', 'free_calls', 'spent', 'latency_sum_us', 'latency_count'];
/** The sums from `key_hours` that pages of usage need, by day: of hours before `DAYS_SUMMED_TO`. */
export const KEY_DAYS: SumTable = {
  name: 'key_days',
  keys: 3,
  columns: ['key_id', 'day', 'service_id', 'account_id', ...DAY_SUMS],
  of: KEY_HOURS,
};
/** The sums by day of accounts with many keys (those with `summed_from`), by service. */
export const ACCOUNT_DAYS: SumTable = {
  name: 'account_days',
  keys: 3,
  columns: ['account_id', 'day', 'service_id', ...DAY_SUMS],
  of: KEY_HOURS,
};
/** The same by key. */
export const ACCOUNT_KEY_DAYS: SumTable = {
  name: 'account_key_days',
  keys: 3,
  columns: ['account_id', 'day', 'key_id', ...DAY_SUMS],
  of: KEY_HOURS,
};
/** Histogram of the latencies of a service's succeeded calls, by day. */
export const SERVICE_LATENCIES: SumTable = {
  name: 'service_latencies',
  keys: 3,
  columns: ['service_id', 'day', 'bucket', 'calls'],
};
/** Histogram, by day, of what a service's calls were charged, rounded to three digits. */
export const SERVICE_AMOUNTS: SumTable = {
  name: 'service_amounts',
  keys: 3,
  columns: ['service_id', 'day', 'amount', 'calls'],
};
export const SUM_TABLES: readonly SumTable[] = [
  SERVICE_HOURS,
  KEY_HOURS,
  KEY_DAYS,
  ACCOUNT_DAYS,
  ACCOUNT_KEY_DAYS,
  SERVICE_LATENCIES,
  SERVICE_AMOUNTS,
];

/** Types of the arrays that the writer sends, one for each column. All others are bigints. */
const TYPES: Readonly<Record<string, string>> = {
  service_id: 'uuid',
  provider_id: 'uuid',
  account_id: 'uuid',
  key_id: 'text',
  tag: 'text',
  bucket: 'smallint',
};

/** Columns that are sent as a number: whole hours or days since 1970, and milliseconds. */
const VALUES: Readonly<Record<string, string>> = {
  // 3 600 times a number of hours is exact in a float8 for every date that Postgres knows.
  hour: 'to_timestamp(hour * 3600::float8)',
  day: `'epoch'::date + day::int`,
  first_call_at: 'to_timestamp(first_call_at / 1000.0::float8)',
  last_call_at: 'to_timestamp(last_call_at / 1000.0::float8)',
};

/**
 * How columns are combined whose values are not added up. A listing has one provider, and a key one account. If a damaged event
 * says otherwise, the row gets the smallest id, in whatever order the events come.
 */
const KEPT: Readonly<Record<string, string>> = {
  provider_id: 'least',
  account_id: 'least',
  first_call_at: 'least',
  last_call_at: 'greatest',
};

/**
 * Parts of a WITH clause that add the writer's sums to the rows of all tables. The sums are the parameters from `$first` on, an
 * array for each column of the tables that are not computed from another one. No key occurs twice in them. The rows of each table
 * are locked in the order of their keys.
 *
 * The arrays are read in the target list: for sums by key that took Postgres 1.5 µs per row, and in FROM 2.5. Adding up equal keys
 * here, with GROUP BY, took 3 µs more per row, so it is done only for accounts with many keys, and for late calls.
 *
 * @param prefix of the tables' names, for tables with the same columns
 */
export function addSumsFrom(first: number, prefix = ''): string {
  let next = first;
  const rowsOf = (table: SumTable): string => {
    if (table === KEY_DAYS) return keyDayRows(`FROM ${KEY_HOURS.name}_added WHERE hour < ${DAYS_SUMMED_TO}`);
    if (table.of !== undefined) return accountRows(table);
    const rows = sentRows(table, next);
    next += table.columns.length;
    return rows;
  };
  const parts = SUM_TABLES.map((table) => {
    const { name, keys, columns } = table;
    const key = columns.slice(0, keys).join(', ');
    const insert = `INSERT INTO ${prefix}${name} AS s (${columns.join(', ')})
      SELECT ${columns.join(', ')} FROM ${name}_added ORDER BY ${key}`;
    return `${name}_added AS (${rowsOf(table)}), ${name}_sums AS (${insert}
      ON CONFLICT (${key}) DO UPDATE SET ${mergedRow(table)})`;
  });
  return parts.join(', ');
}

/** A query of the rows that the writer sends. */
export function sentRows({ columns }: SumTable, first: number): string {
  const arrays = columns.map((column, i) => `unnest($${first + i}::${TYPES[column] ?? 'bigint'}[]) AS ${column}`);
  const values = columns.map((column) => (column in VALUES ? `${VALUES[column]} AS ${column}` : column));
  return `SELECT ${values.join(', ')} FROM (SELECT ${arrays.join(', ')}) AS rows`;
}

/** The hour up to which `key_days` has all calls, as of the statement's snapshot. */
export const DAYS_SUMMED_TO = '(SELECT days_summed_to FROM installation WHERE only_row)';

const DAY_OF_HOUR = `(hour AT TIME ZONE 'UTC')::date`;

const summed = (columns: readonly string[]): string =>
  columns.map((column) => `sum(${column})::bigint AS ${column}`).join(', ');

/**
 * A query of rows of `key_days`: the sums of these rows of `key_hours`. As KEPT says, the smallest of several accounts. Postgres 15 has
 * no minimum of uuids; that of their texts is the same.
 */
export const keyDayRows = (fromHours: string): string => `
  SELECT key_id, ${DAY_OF_HOUR} AS day, service_id, min(account_id::text)::uuid AS account_id, ${summed(DAY_SUMS)}
  ${fromHours} GROUP BY 1, 2, 3`;

/** A query of the rows that are added for accounts with many keys. */
function accountRows({ keys, columns }: SumTable): string {
  const key = columns.slice(0, keys);
  return `
    SELECT ${key.join(', ')}, ${summed(columns.slice(keys))}
    FROM (SELECT *, ${DAY_OF_HOUR} AS day FROM ${KEY_HOURS.name}_added) AS r
    JOIN accounts a ON a.id = account_id AND summed_from IS NOT NULL AND day >= summed_from
    GROUP BY ${key.join(', ')}`;
}

/** How a row of the table is combined with another row of the same key, `excluded`. */
export const mergedRow = ({ keys, columns }: SumTable): string =>
  columns
    .slice(keys)
    .map((column) => {
      const kept = KEPT[column];
      return kept === undefined
        ? `${column} = s.${column} + excluded.${column}`
        : `${column} = ${kept}(s.${column}, excluded.${column})`;
    })
    .join(', ');
