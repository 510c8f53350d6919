import { Closing } from '../accounts/closing.js';
import { Suspension } from '../accounts/suspension.js';
import { selectKeyActivity } from '../accounts/usage-sums.js';
import { OpenApiImporter } from '../catalog/openapi-import/importer.js';
import { OperationsReader } from '../catalog/operations/operations-reader.js';
import { CreditWallets } from '../ledger/wallets/credit-wallets.js';
import { DebitWallets } from '../ledger/wallets/debit-wallets.js';
import { Wallets } from '../ledger/wallets/wallets.js';
import { StatsReader } from '../quality/stats-reader.js';
import { accountsRoutes } from '../routes/admin/accounts.js';
import { auditRoutes } from '../routes/admin/audit.js';
import { adminCallsRoutes } from '../routes/admin/calls.js';
import { creditsRoutes } from '../routes/admin/credits.js';
import { debitsRoutes } from '../routes/admin/debits.js';
import { instancesRoutes } from '../routes/admin/instances.js';
import { adminKeysRoutes } from '../routes/admin/keys.js';
import { payoutsRoutes } from '../routes/admin/payouts.js';
import { reconciliationRoutes } from '../routes/admin/reconciliation.js';
import { adminServicesRoutes } from '../routes/admin/services.js';
import { statsRoutes } from '../routes/admin/stats.js';
import { trafficRoutes } from '../routes/admin/traffic.js';
import { balanceRoutes } from '../routes/balance.js';
import { discoverRoutes } from '../routes/discover.js';
import { earningsRoutes } from '../routes/earnings.js';
import { healthRoutes } from '../routes/health.js';
import { keysRoutes } from '../routes/keys.js';
import { llmsRoutes } from '../routes/llms.js';
import { mcpServerRoutes } from '../routes/mcp-server.js';
import { openApiImportRoutes } from '../routes/openapi-import.js';
import { serviceCallsRoutes } from '../routes/service-calls.js';
import { servicesRoutes } from '../routes/services.js';
import { statementRoutes } from '../routes/statement.js';
import { serviceStatsRoutes } from '../routes/stats.js';
import { usageRoutes } from '../routes/usage.js';
import { readLeaseAges } from '../traffic/leases.js';
import { AddressPolicy } from '../upstream/index.js';
import { Reconcilers } from './upkeep.js';
/** Makes the routes of the API, and the parts that only routes use. Pages and the OpenAPI document are added by the gateway. */
export function gatewayRoutes(parts) {
    const { config, log, catalog, discovery, keys, keyStates, keyCache, hydrator, watch, secrets } = parts;
    const { pseudonyms, backlog, looks, trafficStreams, isReady } = parts;
    const { sql, redis, keys: redisKeys } = parts.stores;
    const operations = new OperationsReader(sql);
    const stats = new StatsReader(sql);
    const wallets = new Wallets({ redis, keys: redisKeys, hydrator });
    return [
        ...keysRoutes({
            keys,
            readActivity: (keyId) => selectKeyActivity(sql, keyId),
            adminBootstrapToken: config.adminBootstrapToken,
            maxAccountsPerAddress: config.maxAccountsPerAddress,
        }),
        ...discoverRoutes({ catalog, discovery, operations, watch, stats }),
        ...servicesRoutes({
            catalog,
            sql,
            operations,
            secrets,
            maxListings: config.maxListingsPerAccount,
            addresses: new AddressPolicy(config.upstreamAllowCidrs),
            noticeSeconds: config.priceNoticeSeconds,
            watch,
        }),
        ...openApiImportRoutes({
            catalog,
            sql,
            operations,
            importer: new OpenApiImporter({ workerFile: parts.importWorker }),
            noticeSeconds: config.priceNoticeSeconds,
            watch,
        }),
        ...serviceStatsRoutes({ catalog, reader: stats }),
        ...serviceCallsRoutes({ sql, pseudonymOf: (buyer, provider) => pseudonyms.ofAccount(buyer, provider) }),
        ...usageRoutes({ sql }),
        ...balanceRoutes({ wallets, topUpUrl: config.topUpUrl }),
        ...earningsRoutes({ sql, feeBasisPoints: config.platformFeeBasisPoints }),
        ...accountsRoutes({
            suspension: new Suspension({ sql, state: keyStates, cache: keyCache }),
            closing: new Closing({ sql, state: keyStates, cache: keyCache, wallets }),
            wallets,
            sql,
        }),
        ...adminKeysRoutes({ sql, keys }),
        ...adminServicesRoutes({ catalog, sql, operations, watch, noticeSeconds: config.priceNoticeSeconds }),
        ...adminCallsRoutes({ sql }),
        ...auditRoutes({ sql }),
        ...statsRoutes({ sql, backlog }),
        ...trafficRoutes({ looks, streams: trafficStreams }),
        ...instancesRoutes({ looks, leaseAges: () => readLeaseAges(redis, redisKeys), shards: redisKeys.shards }),
        ...statementRoutes({ sql, wallets }),
        ...creditsRoutes({ sql, keys, applier: new CreditWallets({ sql, redis, keys: redisKeys, hydrator, log }), log }),
        ...debitsRoutes({ sql, carrier: new DebitWallets({ sql, redis, keys: redisKeys, hydrator, log }), log }),
        ...payoutsRoutes({ sql }),
        ...reconciliationRoutes({ sql, reconciler: new Reconcilers({ sql, redis, keys: redisKeys }) }),
        ...llmsRoutes({ trustedProxyHops: config.trustedProxyHops }),
        ...mcpServerRoutes({ trustedProxyHops: config.trustedProxyHops }),
        ...healthRoutes({ isReady, readyFile: config.readyFile }),
    ];
}
//# sourceMappingURL=gateway-routes.js.map