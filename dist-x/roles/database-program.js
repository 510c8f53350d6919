import { checkSchema } from '../platform/migrate.js';
import { isPostgresUnavailable, openPostgres, sqlState } from '../platform/postgres.js';
import { StartRefused } from '../platform/start-refused.js';
/**
 * Runs a program of operators that needs nothing but Postgres.
 *
 * @throws StartRefused when the database is away, or its schema is not this build's
 */
export async function onDatabase(databaseUrl, migrations, name, work) {
    if (databaseUrl === undefined || !/^postgres(ql)?:\/\//.test(databaseUrl) || !URL.canParse(databaseUrl)) {
        throw new StartRefused('DATABASE_URL must be the URL of Postgres, such as postgres://user:password@host/database');
    }
    const sql = openPostgres({ url: databaseUrl, maxConnections: 1, applicationName: name });
    try {
        await checkSchema(sql, migrations);
        return await work(sql, databaseUrl);
    }
    catch (error) {
        if (isPostgresUnavailable(error) || isRefusal(error))
            throw new StartRefused(`Postgres: ${error.message}`);
        throw error;
    }
    finally {
        await sql.end({ timeout: 1 });
    }
}
/** Whether Postgres does not let these credentials in (class 28), or has no such database (3D). */
const isRefusal = (error) => /^(28|3D)/.test(sqlState(error) ?? '');
//# sourceMappingURL=database-program.js.map