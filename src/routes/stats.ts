import type { Catalog } from '../catalog/catalog.ts';
import { ApiError, unavailableError } from '../errors.ts';
import type { JsonSchema, Route } from '../http/route.ts';
import { CALL_CLASSES, type CallClass } from '../ledger/rollups/call-class.ts';
import { quantile } from '../ledger/rollups/latency-buckets.ts';
import { CACHE_CONTROL } from '../openapi/headers.ts';
import { COUNT, EXAMPLE, json, list, orNull, record, TIME, UUID, usd } from '../openapi/schemas.ts';
import { microsToUsd } from '../platform/money.ts';
import type { StatsReader } from '../quality/stats-reader.ts';
import type { ChargedPrices, DayStats, HourStats, ServiceStats } from '../quality/stats-sql.ts';

const RATE: JsonSchema = {
  type: ['number', 'null'],
  minimum: 0,
  maximum: 1,
  description: 'succeeded ÷ (succeeded + failed); null when both are 0',
};
const MS: JsonSchema = {
  type: ['number', 'null'],
  minimum: 0,
  description: 'Milliseconds; null without succeeded calls',
};
const LATENCY = record('Latency', { p50: MS, p95: MS, p99: MS }, { description: 'Of succeeded calls, within 10 %' });
const USD = orNull(usd('What a charged call cost, to three digits; null without charged calls'));
const AT_CAP: JsonSchema = {
  type: ['number', 'null'],
  minimum: 0,
  maximum: 1,
  description: 'Of the calls priced by use, the share that cost the `max_price`; null without such calls',
};
const PRICE_CHARGED = record('PriceCharged', { median: USD, p95: USD, at_cap: AT_CAP });
const CLASSES = {
  calls: { ...COUNT, description: 'All that count: without free MCP messages and calls of the provider' },
  succeeded: COUNT,
  failed: { ...COUNT, description: 'No connection, no answer in time, a cut answer, 5xx, or given back whole' },
  caller_errors: { ...COUNT, description: '4xx that were not refunded: mistakes of callers' },
  caller_left: { ...COUNT, description: 'The caller left before an answer' },
  unavailable: { ...COUNT, description: 'The gateway could not serve the call' },
  success_rate: RATE,
};
const COUNTS = { ...CLASSES, latency_ms: LATENCY, price_charged: PRICE_CHARGED };
/** The part of the statistics that helps to choose a service; see `recentStats`. */
export const RECENT_STATS = record(
  'RecentStats',
  {
    calls: COUNTS.calls,
    success_rate: COUNTS.success_rate,
    latency_ms: COUNTS.latency_ms,
    price_charged: COUNTS.price_charged,
  },
  { description: 'Of the last 30 days; see /services/{id}/stats. Absent while it cannot be read' },
);
const STATS = record(
  'ServiceStats',
  {
    service_id: UUID,
    quality: { type: 'number', minimum: 0, maximum: 100 },
    quality_inputs: orNull(
      record(
        'QualityInputs',
        {
          evidence: { type: 'number', minimum: 0, description: 'Calls that count, weighted by age and buyer' },
          buyers: COUNT,
          success_rate: { type: 'number', minimum: 0, maximum: 1 },
          latency_ms: MS,
          computed_at: TIME,
        },
        { description: 'The evidence for the quality; null until the service was judged' },
      ),
    ),
    ...COUNTS,
    days: list(
      record('DayStats', { day: { type: 'string', format: 'date', description: 'In UTC' }, ...COUNTS }),
      'The last 30 days, newest first; days without calls are left out',
    ),
    hours: list(
      record('HourStats', {
        hour: TIME,
        ...CLASSES,
        latency_ms: { ...MS, description: 'The mean of succeeded calls, in milliseconds; null without any' },
      }),
      'Of a service whose calls are all of the last three days (UTC), newest first; hours without calls are left out',
    ),
  },
  { optional: ['hours'] },
);
const CLASSES_EXAMPLE = {
  calls: 120,
  succeeded: 115,
  failed: 2,
  caller_errors: 3,
  caller_left: 0,
  unavailable: 0,
  success_rate: 0.9829,
};
const COUNTS_EXAMPLE = {
  ...CLASSES_EXAMPLE,
  latency_ms: { p50: 18.9, p95: 47, p99: 98 },
  price_charged: { median: 0.002, p95: 0.002, at_cap: null },
};

/** `GET /services/{id}/stats`: the evidence for a quality, and the calls of the last 30 days. For anybody. */
export function serviceStatsRoutes(deps: {
  readonly catalog: Pick<Catalog, 'get' | 'ready' | 'qualityOf'>;
  readonly reader: Pick<StatsReader, 'read'>;
}): Route[] {
  const { catalog, reader } = deps;
  return [
    {
      method: 'GET',
      path: '/api/v1/services/:id/stats',
      summary: 'How calls of a service went in the last 30 days, and the evidence for its quality',
      access: 'anyone',
      params: { id: { description: 'The service', schema: UUID, example: EXAMPLE.serviceId } },
      responses: {
        200: json(
          'The statistics',
          STATS,
          {
            service_id: EXAMPLE.serviceId,
            quality: 83.4,
            quality_inputs: {
              evidence: 61.4,
              buyers: 17,
              success_rate: 0.98,
              latency_ms: 21.4,
              computed_at: EXAMPLE.time,
            },
            ...COUNTS_EXAMPLE,
            days: [{ day: '2026-11-22', ...COUNTS_EXAMPLE }],
            hours: [{ hour: '2026-11-22T09:00:00.000Z', ...CLASSES_EXAMPLE, latency_ms: 21.4 }],
          },
          { 'Cache-Control': CACHE_CONTROL('max-age=30') },
        ),
      },
      errors: ['service_not_found'],
      handle: async ({ params }) => {
        if (!catalog.ready()) throw unavailableError();
        const id = params.id ?? '';
        if (catalog.get(id) === undefined) throw new ApiError('service_not_found');
        const stats = await reader.read(id);
        return {
          status: 200,
          headers: { 'Cache-Control': 'max-age=30' },
          body: { service_id: id, quality: catalog.qualityOf(id).value, ...statsJson(stats) },
        };
      },
    },
  ];
}

/**
 * The statistics of a service in a few numbers. Undefined if Postgres does not answer soon: the rest of a listing comes from
 * memory, and must not wait for them.
 */
export async function recentStats(reader: Pick<StatsReader, 'readSoon'>, id: string): Promise<object | undefined> {
  const stats = await reader.readSoon(id);
  if (stats === null) return undefined;
  const { calls, success_rate, latency_ms } = countsJson(stats.days);
  return { calls, success_rate, latency_ms, price_charged: pricesJson(stats.prices, null, stats.days) };
}

function statsJson({ days, hours, prices, inputs }: ServiceStats): Record<string, unknown> {
  return {
    quality_inputs:
      inputs === null
        ? null
        : {
            evidence: round(inputs.evidence, 1),
            buyers: inputs.buyers,
            // Rounded down. The database keeps it to seven digits, so that 0.983 comes as 0.98299998.
            success_rate: Math.floor(inputs.successRate * 10_000 + 0.001) / 10_000,
            latency_ms: inputs.latencyUs === null ? null : inputs.latencyUs / 1_000,
            computed_at: inputs.computedAt.toISOString(),
          },
    ...countsJson(days),
    price_charged: pricesJson(prices, null, days),
    days: days.map((day) => ({
      day: day.day,
      ...countsJson([day]),
      price_charged: pricesJson(prices, day.day, [day]),
    })),
    ...(hours === null ? {} : { hours: hours.map(hourJson) }),
  };
}

const hourJson = (hour: HourStats) => ({
  hour: hour.hour.toISOString(),
  ...classesJson([hour]),
  latency_ms: hour.succeeded === 0 ? null : round(hour.latencySumUs / hour.succeeded / 1_000, 1),
});

const countsJson = (days: readonly DayStats[]) => ({
  ...classesJson(days),
  latency_ms: latencyJson(days.map(({ latencyHistogram }) => latencyHistogram)),
});

type Classes = Readonly<Record<CallClass, number>> & Pick<DayStats, 'calls' | 'givenBack' | 'givenBackSucceeded'>;

function classesJson(of: readonly Classes[]) {
  const sum = (pick: (one: Classes) => number): number => of.reduce((total, one) => total + pick(one), 0);
  const [answered, mistakes, left, error, timeout, fault, cut, unavailable] = CALL_CLASSES.map((name) =>
    sum((one) => one[name]),
  ) as [number, number, number, number, number, number, number, number];
  const [back, backSucceeded] = [sum(({ givenBack }) => givenBack), sum(({ givenBackSucceeded: well }) => well)];
  const succeeded = answered - backSucceeded;
  // The other calls that are charged were answered with 4xx, or their callers left.
  const rest = back - backSucceeded;
  const callerErrors = Math.max(0, mistakes - rest);
  const callerLeft = Math.max(0, left - Math.max(0, rest - mistakes));
  const failed = error + timeout + fault + cut + back;
  return {
    calls: sum(({ calls }) => calls),
    succeeded,
    failed,
    caller_errors: callerErrors,
    caller_left: callerLeft,
    unavailable,
    // Rounded down: 1 only if all succeeded.
    success_rate: succeeded + failed === 0 ? null : Math.floor((succeeded * 10_000) / (succeeded + failed)) / 10_000,
  };
}

function latencyJson(histograms: readonly (readonly number[])[]) {
  const total = (histograms[0] ?? []).map((_, bucket) => histograms.reduce((sum, of) => sum + (of[bucket] ?? 0), 0));
  const at = (q: number): number | null => {
    const us = quantile(total, q);
    return us === null ? null : round(us / 1_000, 1);
  };
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}

function pricesJson(prices: readonly ChargedPrices[], of: string | null, days: readonly DayStats[]) {
  const found = prices.find(({ day }) => day === of);
  const byUse = days.reduce((sum, day) => sum + day.byUse, 0);
  const atCap = days.reduce((sum, day) => sum + day.atCap, 0);
  return {
    median: found === undefined ? null : microsToUsd(found.medianMicros),
    p95: found === undefined ? null : microsToUsd(found.p95Micros),
    at_cap: byUse === 0 ? null : round(atCap / byUse, 4),
  };
}

const round = (value: number, digits: number): number => Number(value.toFixed(digits));
