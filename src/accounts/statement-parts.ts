import { COUNTED_SQL } from '../ledger/usage-event.ts';
import type { Tx } from '../platform/postgres.ts';
import { microsOf } from './cursor.ts';
import type { StatementLedger } from './statement-sql.ts';
import { madeWithin } from './usage-sql.ts';

/**
 * Maximum calls that are read to divide the sums of a page, maximum keys and services that made those of an hour, and maximum hours:
 * 50 000 calls take about 100 ms. The hours beyond it, older ones, keep their sums whole.
 */
const MAX_CALLS = 50_000;
const MAX_KEYS = 1_000;
const MAX_HOURS = 100;
const HOUR_MICROS = 3_600_000_000;

/** A movement, of which only a sum over calls has `from`. */
type Divisible = {
  readonly micros: number;
  readonly rest: string;
  readonly kind: string;
  readonly amountMicros: number;
  readonly from: Date | null;
  readonly calls: number | null;
  readonly serviceId: string | null;
};

/** What the calls of one service have moved between two other movements of an hour. */
type Part = {
  readonly serviceId: string;
  readonly part: number;
  readonly charged: number;
  readonly fees: number;
  readonly calls: number;
  readonly first: Date;
  readonly lastMicros: number;
};

export const hourOf = ({ micros }: { readonly micros: number }): number =>
  Math.floor(micros / HOUR_MICROS) * HOUR_MICROS;

/**
 * Divides each sum over the calls of an hour where another movement, such as a credit, came between these calls: otherwise the
 * statement would show balances that the account never had. A sum stays whole if its calls are no longer kept one by one, or too
 * many.
 *
 * @param rows  of whole hours, newest first; so is the result
 */
export async function divided<Row extends Divisible>(
  tx: Tx,
  of: { readonly accountId: string; readonly ledger: StatementLedger },
  rows: readonly Row[],
): Promise<readonly Row[]> {
  const result: Row[] = [];
  let [calls, hours] = [0, 0];
  for (const ofHour of byHour(rows)) {
    const cuts = ofHour.filter(({ from }) => from === null).map(({ micros }) => micros);
    const isCut = (row: Row): boolean => row.from !== null && cuts.some((cut) => isBetween(cut, row, of.ledger));
    if (!ofHour.some(isCut) || hours >= MAX_HOURS) {
      result.push(...ofHour);
      continue;
    }
    const hour = hourOf(ofHour[0] as Row);
    calls += await countRead(tx, of, hour);
    hours++;
    const parts = calls > MAX_CALLS ? [] : await selectParts(tx, of, hour, cuts);
    const inParts = ofHour.flatMap((row) => (isCut(row) ? partsOf(row, parts) : [row]));
    result.push(...inParts.sort((a, b) => b.micros - a.micros || (b.rest < a.rest ? -1 : 1)));
  }
  return result;
}

function byHour<Row extends Divisible>(rows: readonly Row[]): Row[][] {
  const hours: Row[][] = [];
  for (const row of rows) {
    const last = hours.at(-1);
    if (last?.[0] !== undefined && hourOf(last[0]) === hourOf(row)) last.push(row);
    else hours.push([row]);
  }
  return hours;
}

/** Earnings that were paid out or given back in part are dated at that movement, so it is at their end. */
const isBetween = (cut: number, { from, micros }: Divisible, ledger: StatementLedger): boolean =>
  cut >= (from as Date).getTime() * 1_000 && (ledger === 'earnings' ? cut >= micros : cut <= micros);

/** The keys with charged or free calls in the hour. */
const keysOfHour = (tx: Tx, { accountId, ledger }: { accountId: string; ledger: StatementLedger }, hour: number) =>
  ledger === 'wallet'
    ? tx`FROM key_hours WHERE account_id = ${accountId} AND hour = ${new Date(hour / 1_000)} AND completed > 0`
    : tx`FROM key_hours WHERE hour = ${new Date(hour / 1_000)} AND service_id IN (
           SELECT service_id FROM service_hours WHERE provider_id = ${accountId} AND hour = ${new Date(hour / 1_000)})`;

/**
 * How many calls `selectParts` reads: all of these keys, whosever service they called, and those of the hours beside, because ids need
 * not be of the same hour as calls. Infinity if the keys are too many to be counted.
 */
async function countRead(
  tx: Tx,
  of: { readonly accountId: string; readonly ledger: StatementLedger },
  hour: number,
): Promise<number> {
  const [from, to] = [new Date((hour - HOUR_MICROS) / 1_000), new Date((hour + HOUR_MICROS) / 1_000)];
  const [row] = await tx<{ keys: number; calls: number }[]>`
    WITH of_hour AS MATERIALIZED (SELECT key_id ${keysOfHour(tx, of, hour)} LIMIT ${MAX_KEYS + 1}::int)
    SELECT (SELECT count(*) FROM of_hour)::int AS keys, coalesce(sum(calls), 0)::bigint AS calls
    FROM key_hours WHERE key_id IN (SELECT key_id FROM of_hour) AND hour >= ${from} AND hour <= ${to}`;
  return row === undefined || row.keys > MAX_KEYS ? Number.POSITIVE_INFINITY : row.calls;
}

async function selectParts(
  tx: Tx,
  of: { readonly accountId: string; readonly ledger: StatementLedger },
  hour: number,
  cuts: readonly number[],
): Promise<readonly Part[]> {
  const range = { fromMs: hour / 1_000, toMs: (hour + HOUR_MICROS) / 1_000 };
  // At one instant, a wallet first gets its money and then pays, and what is earned comes before what is taken from it.
  const after = of.ledger === 'wallet' ? 0 : 1;
  const times = [...new Set(cuts)].map((cut) => cut + after);
  const account = tx.text(of.ledger === 'wallet' ? 'account_id' : 'provider_id');
  // The times are one parameter, so that the statement's text stays the same, and are made once and not for each call.
  return tx.anew<Part[]>`
    SELECT c.service_id AS "serviceId", width_bucket(c.created_at, (
             SELECT array_agg(timestamptz '1970-01-01 00:00:00Z' + micros * interval '1 microsecond' ORDER BY micros)
             FROM unnest(${times}::bigint[]) AS micros)) AS part,
           sum(c.amount)::bigint AS charged, sum(c.fee)::bigint AS fees, count(*) FILTER (WHERE c.outcome = 'completed') AS calls,
           min(c.created_at) AS first, ${microsOf(tx, tx`max(c.created_at)`)} AS "lastMicros"
    FROM calls c
    WHERE c.key_id IN (SELECT key_id ${keysOfHour(tx, of, hour)}) AND c.${account} = ${of.accountId} ${madeWithin(tx, range)}
      AND ${tx.text(COUNTED_SQL)}
    GROUP BY 1, 2 HAVING sum(c.amount) > 0`;
}

/** The parts of a sum; the sum itself if they are not all of it. */
function partsOf<Row extends Divisible>(row: Row, all: readonly Part[]): Row[] {
  const amountOf = ({ charged, fees }: Part): number =>
    row.kind === 'charge' ? -charged : row.kind === 'fee' ? -fees : charged;
  const parts = all.filter((part) => part.serviceId === row.serviceId && amountOf(part) !== 0);
  const sum = parts.reduce((total, part) => total + amountOf(part), 0);
  if (sum !== row.amountMicros) return [row];
  return parts.map((part) => ({
    ...row,
    ...{ micros: part.lastMicros, from: part.first, calls: part.calls, amountMicros: amountOf(part) },
  }));
}
