import { isRedisUnavailable } from './redis.js';
import { replicasOf } from './redis-node.js';
import { StartRefused } from './start-refused.js';
/**
 * Warns if a master has fewer replicas than its trips must reach. It is no reason to refuse the start: replicas come and go, and a
 * gateway serves pages without them, and calls as soon as they are back.
 *
 * @param nodes each master once
 * @throws StartRefused when Redis does not let this user WAIT
 */
export async function warnOfMissingReplicas(nodes, wanted, log) {
    for (const { address, store } of nodes) {
        // Zero replicas: it replies at once.
        await store.command('wait', ['0', '1']).catch((error) => {
            if (isRedisUnavailable(error))
                throw error;
            throw new StartRefused(`redis ${address} refuses WAIT, which REDIS_WAIT_REPLICAS needs: ${error.message}`);
        });
        const replicas = replicasOf(String(await store.command('info', ['replication'])));
        if (replicas >= wanted)
            continue;
        log.warn({ node: address, replicas, wanted }, `redis ${address} has ${replicas} replicas, but REDIS_WAIT_REPLICAS is ${wanted}: calls of its accounts get 503 until it has as many`);
    }
}
//# sourceMappingURL=replicas.js.map