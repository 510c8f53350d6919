import { ApiError } from '../errors.ts';
import type { Tx } from '../platform/postgres.ts';

/** Maximum rows of earlier days that one opening deletes: enough to keep up, and few enough to cost little. */
const MAX_DELETED = 100;

/** The address that opens an account, and how many accounts it may open in a day. */
export type Opener = { readonly address: string; readonly maxPerDay: number };

/**
 * Counts an account that the transaction opens for the address. The row of the address stays locked until the transaction ends. So
 * the count is exact over all gateways, and an account whose transaction fails is not counted.
 *
 * @throws ApiError `rate_limited` if the address has opened as many as it may today
 */
export async function countOpening(tx: Tx, { address, maxPerDay }: Opener): Promise<void> {
  // Rows that another transaction is deleting right now are skipped: waiting for them could end in a deadlock.
  await tx`
    DELETE FROM account_openings WHERE (day, address) IN (
      SELECT day, address FROM account_openings WHERE day < (now() AT TIME ZONE 'UTC')::date
      LIMIT ${MAX_DELETED} FOR UPDATE SKIP LOCKED)`;
  const counted = await tx`
    INSERT INTO account_openings AS o (day, address, opened) VALUES ((now() AT TIME ZONE 'UTC')::date, ${address}, 1)
    ON CONFLICT (day, address) DO UPDATE SET opened = o.opened + 1 WHERE o.opened < ${maxPerDay}
    RETURNING opened`;
  if (counted[0] !== undefined) return;
  // now() is the time at which the transaction began, so this is the day that was counted above, even if midnight has passed since.
  const [left] = await tx<{ seconds: number }[]>`
    SELECT ceil(extract(epoch FROM date_trunc('day', t) + interval '1 day' - t))::int AS seconds
    FROM (SELECT now() AT TIME ZONE 'UTC' AS t) AS utc`;
  const seconds = (left as { seconds: number }).seconds;
  throw new ApiError(
    'rate_limited',
    `An address may open at most ${maxPerDay} accounts a day. Try again in ${seconds} seconds, or add keys to an account of yours.`,
    { headers: { 'Retry-After': String(seconds) } },
  );
}
