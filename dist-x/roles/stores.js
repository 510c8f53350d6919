import { randomUUID } from 'node:crypto';
import { keepLayout, layoutOf, refuseOtherLayout } from '../ledger/layout.js';
import { checkOwnership } from '../ledger/ownership.js';
import { migrate, refuseOtherSchema } from '../platform/migrate.js';
import { durabilityWarnings, openPostgres } from '../platform/postgres.js';
import { openRedis } from './open-redis.js';
/**
 * Connects to both stores, migrates the database, and checks that the stores are set up as the gateway needs them and belong to
 * the same installation. Throws the reason when the process must not start.
 *
 * Tested by test/integration/installations.test.ts.
 */
export async function openStores(config, options) {
    const { log, name } = options;
    const opened = openRedis(config, `tollgate-${name}`, log);
    const { redis, keys } = opened;
    let installation;
    try {
        await opened.connect();
        installation = await prepareDatabase(config, options, redis, keys);
        await opened.claim(installation);
    }
    catch (error) {
        opened.destroy();
        throw error;
    }
    const sql = openPostgres({
        url: config.databaseUrl,
        maxConnections: options.maxConnections,
        applicationName: `tollgate-${name}`,
        installation,
    });
    return {
        sql,
        redis,
        cluster: opened.cluster,
        keys,
        installation,
        close: async () => {
            await opened.close();
            await sql.end({ timeout: 5 });
        },
    };
}
/**
 * Checks that the stores are of this build's formats and belong together, then migrates the database, on a connection that does not
 * check the installation's id yet.
 *
 * @returns the installation's id
 */
async function prepareDatabase(config, { name, migrations, mayBeMoving = false, log }, redis, keys) {
    const sql = openPostgres({ url: config.databaseUrl, maxConnections: 1, applicationName: `tollgate-${name}-start` });
    const layout = layoutOf({ redis, keys });
    try {
        const version = await refuseOtherSchema(sql, migrations);
        await checkOwnership({ redis, keys, sql }, config);
        if (version > 0)
            await refuseOtherLayout(sql, layout, { mayBeMoving });
        const applied = await migrate(sql, migrations);
        if (applied.length > 0)
            log.info({ versions: applied }, 'migrated');
        for (const warning of await durabilityWarnings(sql))
            log.warn({}, warning);
        const rows = await sql `SELECT id FROM installation`;
        if (rows[0] === undefined)
            throw new Error('the installation row is missing');
        await keepLayout(sql, layout, { mayBeMoving });
        return rows[0].id;
    }
    finally {
        await sql.end({ timeout: 1 });
    }
}
/** A new id at each start, so that the holds of an earlier process are not taken for this one's. */
export const newInstanceId = () => randomUUID();
//# sourceMappingURL=stores.js.map