import { type EarningsSums, selectEarnings } from '../accounts/earnings-sql.ts';
import { parseDayRange } from '../accounts/time-range.ts';
import type { ApiRequest, FromSchema, Route } from '../http/route.ts';
import { keyOf } from '../keys/caller.ts';
import { COUNT, CURRENCY, EXAMPLE, json, list, record, TEXT, TIME, UUID, usd } from '../openapi/schemas.ts';
import { microsToUsd } from '../platform/money.ts';
import type { Sql } from '../platform/postgres.ts';

const QUERY = {
  type: 'object',
  additionalProperties: false,
  properties: {
    from: { type: 'string', maxLength: 40, description: 'First UTC day, YYYY-MM-DD' },
    to: { type: 'string', maxLength: 40, description: 'First UTC day not included, YYYY-MM-DD' },
  },
} as const;
type Query = FromSchema<typeof QUERY>;

const BY_HOUR = 'While all of it is of the last three days (UTC), newest first; hours without calls are left out';
const SUMS = {
  calls: COUNT,
  free_calls: COUNT,
  gross: usd('What buyers were charged'),
  refunded: usd('What they got back of these calls, at any time'),
  fees: usd("The platform's share of the rest"),
  earned: usd("The provider's share: gross − refunded − fees"),
};
const EARNINGS = record(
  'Earnings',
  {
    gross: SUMS.gross,
    refunded: SUMS.refunded,
    fees: SUMS.fees,
    earned: SUMS.earned,
    paid_out: usd('What was paid out'),
    payable: usd('What is owed now, whatever the range. Negative: the platform carries it until earnings cover it'),
    fee_percent: {
      type: 'number',
      minimum: 0,
      maximum: 100,
      description: "The platform's share of a charge at present",
    },
    currency: CURRENCY,
    by_service: list(record('ServiceEarnings', { service_id: UUID, service_name: TEXT, ...SUMS })),
    by_day: list(
      record('DayEarnings', { day: { type: 'string', format: 'date', description: 'In UTC' }, ...SUMS }),
      'Newest first',
    ),
    by_hour: list(record('HourEarnings', { hour: TIME, ...SUMS }), BY_HOUR),
  },
  { optional: ['by_hour'] },
);
const SUMS_EXAMPLE = { calls: 120, free_calls: 20, gross: 0.2, refunded: 0, fees: 0.02, earned: 0.18 };

/**
 * `GET /earnings/me`: what the services of this account have earned, in USD. `gross`, `refunded`, `fees`, `earned`
 * (gross − refunded − fees) and `paid_out` cover the range only; `payable` is always what the provider is owed now. Without a range,
 * payable = earned − paid_out.
 */
export function earningsRoutes(deps: { readonly sql: Sql; readonly feeBasisPoints: number }): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v1/earnings/me',
      summary: "Earnings of the caller's services, by service and by day (newest first)",
      access: ['provider'],
      forSuspended: true,
      query: QUERY,
      responses: {
        200: json('The earnings', EARNINGS, {
          gross: 0.2,
          refunded: 0,
          fees: 0.02,
          earned: 0.18,
          paid_out: 0,
          payable: 0.18,
          fee_percent: 10,
          currency: 'USD',
          by_service: [{ service_id: EXAMPLE.serviceId, service_name: 'Translate', ...SUMS_EXAMPLE }],
          by_day: [{ day: '2026-11-22', ...SUMS_EXAMPLE }],
          by_hour: [{ hour: '2026-11-22T09:00:00.000Z', ...SUMS_EXAMPLE }],
        }),
      },
      handle: async ({ caller, query }: ApiRequest<undefined, Query>) => {
        const earnings = await selectEarnings(deps.sql, keyOf(caller).accountId, parseDayRange(query));
        const total = (pick: (sums: EarningsSums) => number): number =>
          microsToUsd(earnings.byService.reduce((sum, service) => sum + pick(service), 0));
        return {
          status: 200,
          body: {
            gross: total((sums) => sums.grossMicros),
            refunded: total((sums) => sums.refundedMicros),
            fees: total((sums) => sums.feesMicros),
            earned: total(earnedMicros),
            paid_out: microsToUsd(earnings.paidOutMicros),
            payable: microsToUsd(earnings.payableMicros),
            fee_percent: deps.feeBasisPoints / 100,
            currency: 'USD',
            by_service: earnings.byService.map((service) => ({
              service_id: service.serviceId,
              service_name: service.serviceName,
              ...sumsJson(service),
            })),
            by_day: earnings.byDay.map((day) => ({ day: day.day, ...sumsJson(day) })),
            ...(earnings.byHour === null
              ? {}
              : { by_hour: earnings.byHour.map((hour) => ({ hour: hour.hour.toISOString(), ...sumsJson(hour) })) }),
          },
        };
      },
    },
  ];
}

const earnedMicros = ({ grossMicros, refundedMicros, feesMicros }: EarningsSums): number =>
  grossMicros - refundedMicros - feesMicros;

function sumsJson(sums: EarningsSums): Record<string, number> {
  return {
    calls: sums.calls,
    free_calls: sums.freeCalls,
    gross: microsToUsd(sums.grossMicros),
    refunded: microsToUsd(sums.refundedMicros),
    fees: microsToUsd(sums.feesMicros),
    earned: microsToUsd(earnedMicros(sums)),
  };
}
