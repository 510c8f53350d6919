import { isCounted } from '../usage-event.js';
import { HourSums } from './hour-sums.js';
/** The columns of `calls` that make a `StoredCall`. */
export const STORED_CALL = `
  account_id AS "accountId", key_id AS "keyId", provider_id AS "providerId", service_id AS "serviceId", path, status, outcome,
  amount AS "amountMicros", fee AS "feeMicros", free_tier AS "freeTier", latency_us AS "latencyUs",
  (extract(epoch FROM created_at) * 1000)::bigint AS "admittedAtMs"`;
/** The sums of stored calls, by the same code that makes them in a flush. */
export function sumsOf(calls) {
    const sums = new HourSums();
    for (const call of calls) {
        if (isCounted(call, call.amountMicros))
            sums.add(call, call.amountMicros, call.feeMicros);
    }
    return { services: sums.services(), keys: sums.keys() };
}
//# sourceMappingURL=stored-calls.js.map