import { amountColumns, latencyColumns } from './day-sums.ts';
import {
  addServiceAmounts,
  addServiceLatencies,
  amountRowsFrom,
  amountSumsOf,
  LATENCY_PARAMETERS,
  latencyRowsFrom,
  latencySumsOf,
} from './days-sql.ts';
import { type Hours, keyColumns, serviceColumns } from './hour-sums.ts';
import {
  addKeyHours,
  addServiceHours,
  KEY_PARAMETERS,
  keyRowsFrom,
  keySumsOf,
  SERVICE_PARAMETERS,
  serviceRowsFrom,
  serviceSumsOf,
} from './hours-sql.ts';

/** All sums of calls: by hour, of services and of keys, and by day, of latencies and of amounts. */

/** Parts of a WITH clause that add the calls of `from` (rows with `SUMMED_COLUMNS`) to all sums. */
export const addSumsOf = (from: string): string => `
service_sums AS (${addServiceHours(serviceSumsOf(from))}
), key_sums AS (${addKeyHours(keySumsOf(from))}
), latency_sums AS (${addServiceLatencies(latencySumsOf(from))}
), amount_sums AS (${addServiceAmounts(amountSumsOf(from))}
)`;

/** Parts of a WITH clause that add the writer's sums, which are the parameters `$first` and following: `sumsColumns`. */
export function addSumsFrom(first: number): string {
  const keys = first + SERVICE_PARAMETERS.length;
  const latencies = keys + KEY_PARAMETERS.length;
  const amounts = latencies + LATENCY_PARAMETERS.length;
  return `
service_sums AS (${addServiceHours(serviceRowsFrom(first))}
), key_sums AS (${addKeyHours(keyRowsFrom(keys))}
), latency_sums AS (${addServiceLatencies(latencyRowsFrom(latencies))}
), amount_sums AS (${addServiceAmounts(amountRowsFrom(amounts))}
)`;
}

/** The sums of all pages of a batch, as the array literals that `addSumsFrom` reads. */
export const sumsColumns = (pages: readonly Hours[]): string[] => [
  ...serviceColumns(pages),
  ...keyColumns(pages),
  ...latencyColumns(pages),
  ...amountColumns(pages),
];
