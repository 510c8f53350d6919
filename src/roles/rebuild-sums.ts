import { type RebuiltRefunds, rebuildRefundSums } from '../accounts/refunds/rebuild-sums.ts';
import { type RebuiltDay, rebuildSums } from '../ledger/rollups/rebuild.ts';
import type { Migration } from '../platform/migrate.ts';
import { PostgresSession } from '../platform/postgres.ts';
import { onDatabase } from './database-program.ts';

/** Time limit of one statement. The longest reads all calls once, to find their days. */
const STATEMENT_MS = 6 * 3_600_000;
/** How much longer than the server's limit this process waits. */
const NETWORK_MS = 5_000;

/**
 * The program `main.js rebuild-sums`: rebuilds the sums of calls and refunds. Works while gateways and writers run. If it is
 * killed, the days that it has reported are done.
 *
 * Tested by test/roles/rebuild-sums.test.ts and test/ledger/rollups/rebuild.test.ts.
 *
 * @param say called with a line about each day
 * @throws StartRefused when the database is away or not this build's, or when another process drops old days or rebuilds sums
 */
export function rebuildAllSums(
  databaseUrl: string | undefined,
  migrations: readonly Migration[],
  say: (line: string) => void,
): Promise<void> {
  return onDatabase(databaseUrl, migrations, 'tollgate-rebuild-sums', async (_, url) => {
    const options = { url, applicationName: 'tollgate-rebuild-sums', settings: { statement_timeout: STATEMENT_MS } };
    const session = new PostgresSession(options, STATEMENT_MS + NETWORK_MS);
    try {
      let [days, calls] = [0, 0];
      for await (const day of rebuildSums(session)) {
        days++;
        calls += day.calls;
        say(lineOf(day));
      }
      say(refundsLine(await rebuildRefundSums(session)));
      say(`done: ${days} days, ${calls} calls`);
    } finally {
      session.close();
    }
  });
}

function refundsLine({ removed, written }: RebuiltRefunds): string {
  const isRight = removed + written === 0;
  return `refunds: ${isRight ? 'all sums are right' : `refund_hours: ${removed} rows removed, ${written} written`}`;
}

function lineOf({ day, calls, changes }: RebuiltDay): string {
  const changed = changes
    .filter(({ removed, written }) => removed + written > 0)
    .map(({ table, removed, written }) => `${table}: ${removed} rows removed, ${written} written`);
  return `${day}: ${calls} calls; ${changed.length === 0 ? 'all sums are right' : changed.join('; ')}`;
}
