import { isCounted } from '../usage-event.ts';
import { HourSums, type Hours, type SummedCall } from './hour-sums.ts';

/** A row of `calls`, as read for sums. Fees are those that were kept at the time, whatever the platform's share is now. */
export type StoredCall = SummedCall & {
  readonly path: string;
  readonly amountMicros: number;
  readonly feeMicros: number;
  /** Null: the call had a fixed price. */
  readonly isAtCap: boolean | null;
};

/** The columns of `calls` that make a `StoredCall`. */
export const STORED_CALL = `
  account_id AS "accountId", key_id AS "keyId", provider_id AS "providerId", service_id AS "serviceId", path, status, outcome,
  amount AS "amountMicros", fee AS "feeMicros", at_cap AS "isAtCap", free_tier AS "freeTier", latency_us AS "latencyUs", tag,
  (extract(epoch FROM created_at) * 1000)::bigint AS "admittedAtMs"`;

/** The sums of stored calls, by the same code that makes them in a flush. */
export function sumsOf(calls: readonly StoredCall[]): Hours {
  const sums = new HourSums();
  for (const call of calls) {
    if (isCounted(call, call.amountMicros)) sums.add(call, call.amountMicros, call.feeMicros, call.isAtCap);
  }
  return { services: sums.services(), keys: sums.keys(), tags: sums.tags() };
}
