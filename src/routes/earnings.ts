import { type EarningsSums, selectEarnings } from '../accounts/earnings-sql.ts';
import { parseDayRange } from '../accounts/time-range.ts';
import type { ApiRequest, JsonSchema, Route } from '../http/route.ts';
import { keyOf } from '../keys/caller.ts';
import { microsToUsd } from '../platform/money.ts';
import type { Sql } from '../platform/postgres.ts';

const QUERY: JsonSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    from: { type: 'string', maxLength: 40, description: 'First UTC day, YYYY-MM-DD' },
    to: { type: 'string', maxLength: 40, description: 'First UTC day not included, YYYY-MM-DD' },
  },
};
type Query = { readonly from?: string; readonly to?: string };

/**
 * `GET /earnings/me`: what the services of this account have earned, in USD. `earned` (gross), `fees` and `paid_out` cover the
 * range only; `payable` is always what the provider is owed now. Without a range, payable = earned − fees − paid_out.
 */
export function earningsRoutes(deps: { readonly sql: Sql }): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v1/earnings/me',
      summary: "Earnings of the caller's services, by service and by day (newest first)",
      access: ['provider'],
      query: QUERY,
      handle: async ({ caller, query }: ApiRequest<undefined, Query>) => {
        const earnings = await selectEarnings(deps.sql, keyOf(caller).accountId, parseDayRange(query));
        const total = (pick: (sums: EarningsSums) => number): number =>
          microsToUsd(earnings.byService.reduce((sum, service) => sum + pick(service), 0));
        return {
          status: 200,
          body: {
            earned: total((sums) => sums.earnedMicros),
            fees: total((sums) => sums.feesMicros),
            paid_out: microsToUsd(earnings.paidOutMicros),
            payable: microsToUsd(earnings.payableMicros),
            currency: 'USD',
            by_service: earnings.byService.map((service) => ({
              service_id: service.serviceId,
              service_name: service.serviceName,
              ...sumsJson(service),
            })),
            by_day: earnings.byDay.map((day) => ({ day: day.day, ...sumsJson(day) })),
          },
        };
      },
    },
  ];
}

function sumsJson(sums: EarningsSums): Record<string, number> {
  return {
    calls: sums.calls,
    free_calls: sums.freeCalls,
    earned: microsToUsd(sums.earnedMicros),
    fees: microsToUsd(sums.feesMicros),
  };
}
