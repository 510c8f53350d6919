import { rebuildSums } from '../ledger/rollups/rebuild.js';
import { PostgresSession } from '../platform/postgres.js';
import { onDatabase } from './database-program.js';
/** Bounds one statement. The longest reads all calls once, to find the days that they are of. */
const STATEMENT_MS = 6 * 3_600_000;
/** How much longer than the server this process waits. */
const NETWORK_MS = 5_000;
/**
 * The program `main.js rebuild-sums`: makes the sums of calls anew from the calls. Works while gateways and writers run. If it is
 * killed, the days that it has told of are done.
 *
 * Tested by test/roles/rebuild-sums.test.ts and test/ledger/rollups/rebuild.test.ts.
 *
 * @param say is told each day
 * @throws StartRefused when the database is away or not this build's, or when another process drops old days or rebuilds sums
 */
export function rebuildAllSums(databaseUrl, migrations, say) {
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
            say(`done: ${days} days, ${calls} calls`);
        }
        finally {
            session.close();
        }
    });
}
function lineOf({ day, calls, changes }) {
    const changed = changes
        .filter(({ removed, written }) => removed + written > 0)
        .map(({ table, removed, written }) => `${table}: ${removed} rows removed, ${written} written`);
    return `${day}: ${calls} calls; ${changed.length === 0 ? 'all sums are right' : changed.join('; ')}`;
}
//# sourceMappingURL=rebuild-sums.js.map