import { type ApiError, unavailableError } from '../../errors.ts';
import { type Sql, sqlState, type Tx } from '../../platform/postgres.ts';

/**
 * Maximum time for the statements of one page, in ms. It is below the API's own bound of 5 s, so that Postgres never goes on
 * working for a request that was already answered.
 */
const DEADLINE_MS = 4_000;

/**
 * How far a statement may exceed the deadline. Telling Postgres the time left before each statement would cost a round trip each
 * time. Statements that are sent together run one after another, and each gets the time that was left for the first.
 */
const EXCESS_MS = 100;

const QUERY_CANCELED = '57014';

/**
 * Reads one page of an operators' list. A filter that no index serves may make Postgres read very many rows. At the deadline
 * Postgres stops, and the page fails.
 *
 * @param mode  of the transaction
 * @throws ApiError `unavailable` at the deadline
 */
export async function readWithDeadline<T>(
  sql: Sql,
  read: (timed: () => Promise<Tx>) => Promise<T>,
  mode = 'READ ONLY',
): Promise<T> {
  const endsAt = performance.now() + DEADLINE_MS;
  let toldMs = Number.POSITIVE_INFINITY;
  try {
    return await sql.begin(
      (tx) =>
        read(async () => {
          const leftMs = Math.ceil(endsAt - performance.now());
          if (leftMs <= 0) throw tooLong();
          if (leftMs < toldMs - EXCESS_MS) {
            await tx`SELECT set_config('statement_timeout', ${String(leftMs)}, true)`;
            toldMs = leftMs;
          }
          return tx;
        }),
      mode,
    );
  } catch (error) {
    throw sqlState(error) === QUERY_CANCELED ? tooLong() : error;
  }
}

function tooLong(): ApiError {
  const message = `The search took longer than ${DEADLINE_MS / 1_000} s. Add a filter, or make the time range shorter.`;
  return unavailableError(undefined, message);
}
