import { readAllowance, readFreeLeft } from '../accounts/allowance.ts';
import { Closing } from '../accounts/closing.ts';
import { Suspension } from '../accounts/suspension.ts';
import { selectKeyActivity } from '../accounts/usage-sums.ts';
import type { Backlog } from '../admission/backlog.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { Discovery } from '../catalog/discovery/discovery.ts';
import type { OpenApiImporter } from '../catalog/openapi-import/importer.ts';
import { OperationsReader } from '../catalog/operations/operations-reader.ts';
import type { Config } from '../config/config.ts';
import type { Route } from '../http/route.ts';
import type { KeyCache } from '../keys/key-cache.ts';
import type { Keys } from '../keys/keys.ts';
import { CalledServices } from '../ledger/called-services.ts';
import { Fence } from '../ledger/history/fence.ts';
import { Corrector } from '../ledger/reconcile/corrector.ts';
import { CreditWallets } from '../ledger/wallets/credit-wallets.ts';
import { DebitWallets } from '../ledger/wallets/debit-wallets.ts';
import type { Hydrator } from '../ledger/wallets/hydrate.ts';
import type { KeyStates } from '../ledger/wallets/key-states.ts';
import { Wallets } from '../ledger/wallets/wallets.ts';
import type { Log } from '../observability/log.ts';
import type { Pseudonyms } from '../proxy/pseudonyms.ts';
import { StatsReader } from '../quality/stats-reader.ts';
import { accountRoutes } from '../routes/account.ts';
import { accountsRoutes } from '../routes/admin/accounts.ts';
import { auditRoutes } from '../routes/admin/audit.ts';
import { adminCallsRoutes } from '../routes/admin/calls.ts';
import { correctionsRoutes } from '../routes/admin/corrections.ts';
import { creditsRoutes } from '../routes/admin/credits.ts';
import { debitsRoutes } from '../routes/admin/debits.ts';
import { inCsv } from '../routes/admin/in-csv.ts';
import { instancesRoutes } from '../routes/admin/instances.ts';
import { adminKeysRoutes } from '../routes/admin/keys.ts';
import { payoutsRoutes } from '../routes/admin/payouts.ts';
import { reconciliationRoutes } from '../routes/admin/reconciliation.ts';
import { adminRefundsRoutes } from '../routes/admin/refunds.ts';
import { adminServicesRoutes } from '../routes/admin/services.ts';
import { statsRoutes } from '../routes/admin/stats.ts';
import { trafficRoutes } from '../routes/admin/traffic.ts';
import { balanceRoutes } from '../routes/balance.ts';
import { blockedBuyersRoutes } from '../routes/blocked-buyers.ts';
import { discoverRoutes } from '../routes/discover.ts';
import { earningsRoutes } from '../routes/earnings.ts';
import { healthRoutes } from '../routes/health.ts';
import { keysRoutes } from '../routes/keys.ts';
import { llmsRoutes } from '../routes/llms.ts';
import { mcpServerRoutes } from '../routes/mcp-server.ts';
import { openApiImportRoutes } from '../routes/openapi-import.ts';
import { PriceNotice } from '../routes/price-notice.ts';
import { refundsRoutes } from '../routes/refunds.ts';
import { serviceCallsRoutes } from '../routes/service-calls.ts';
import { servicesRoutes } from '../routes/services.ts';
import { sessionsRoutes } from '../routes/sessions.ts';
import type { Watch } from '../routes/shown-service.ts';
import { statementRoutes } from '../routes/statement.ts';
import { serviceStatsRoutes } from '../routes/stats.ts';
import { usageRoutes } from '../routes/usage.ts';
import type { ServiceSecrets } from '../secrets/service-secrets.ts';
import { Sessions } from '../sessions/sessions.ts';
import { readLeaseAges } from '../traffic/leases.ts';
import type { LiveStreams } from '../traffic/live-streams.ts';
import type { Looks } from '../traffic/looks.ts';
import { AddressPolicy } from '../upstream/index.ts';
import type { Stores } from './stores.ts';
import { Reconcilers } from './upkeep.ts';

/** The parts that the gateway shares with its routes. */
type RouteParts = {
  readonly config: Config;
  readonly stores: Stores;
  readonly log: Log;
  readonly catalog: Catalog;
  readonly discovery: Discovery;
  readonly keys: Keys;
  readonly keyStates: KeyStates;
  readonly keyCache: KeyCache;
  readonly hydrator: Hydrator;
  readonly secrets: ServiceSecrets;
  readonly pseudonyms: Pseudonyms;
  readonly watch: Watch;
  readonly backlog: Backlog;
  readonly looks: Looks;
  readonly trafficStreams: LiveStreams;
  readonly importer: OpenApiImporter;
  readonly isReady: () => boolean;
};

/** Makes the routes of the API, and the parts that only routes use. Pages and the OpenAPI document are added by the gateway. */
export function gatewayRoutes(parts: RouteParts): Route[] {
  const { config, log, catalog, discovery, keys, keyStates, keyCache, hydrator, watch, secrets } = parts;
  const { pseudonyms, backlog, looks, trafficStreams, isReady } = parts;
  const { sql, redis, keys: redisKeys } = parts.stores;
  const operations = new OperationsReader(sql);
  const stats = new StatsReader(sql);
  const called = new CalledServices({ sql, redis, keys: redisKeys });
  const notice = new PriceNotice(config.priceNoticeSeconds, called);
  const wallets = new Wallets({ redis, keys: redisKeys, hydrator });
  const money = new Fence({ sql, redis, keys: redisKeys });
  const applier = new CreditWallets({ sql, redis, keys: redisKeys, hydrator, log });
  const addresses = new AddressPolicy(config.upstreamAllowCidrs);
  const changing = { catalog, sql, operations, secrets, addresses, notice, watch };
  const pseudonymOf = (buyer: string, provider: string): string => pseudonyms.ofAccount(buyer, provider);
  const routes: Route[] = [
    ...keysRoutes({
      keys,
      readActivity: (keyId) => selectKeyActivity(sql, keyId),
      adminBootstrapToken: config.adminBootstrapToken,
      maxAccountsPerAddress: config.maxAccountsPerAddress,
      maxRateLimit: config.maxRateLimit,
    }),
    ...sessionsRoutes({ sessions: new Sessions({ sql, cache: keyCache, sessionDays: config.sessionDays }) }),
    ...discoverRoutes({
      catalog,
      discovery,
      operations,
      stats,
      readFreeLeft: (key, listing) => readFreeLeft(wallets, key, listing),
      trustedProxyHops: config.trustedProxyHops,
    }),
    ...servicesRoutes({ ...changing, maxListings: config.maxListingsPerAccount }),
    ...blockedBuyersRoutes({ ...changing, pseudonymOf }),
    ...openApiImportRoutes({
      catalog,
      sql,
      operations,
      importer: parts.importer,
      notice,
      watch,
    }),
    ...serviceStatsRoutes({ catalog, reader: stats }),
    ...serviceCallsRoutes({ sql, pseudonymOf }),
    ...usageRoutes({ sql }),
    ...balanceRoutes({ read: (key) => readAllowance({ sql, wallets }, key), operator: config.operator }),
    ...earningsRoutes({ sql, feeBasisPoints: config.platformFeeBasisPoints }),
    ...accountsRoutes({
      suspension: new Suspension({ sql, state: keyStates, cache: keyCache }),
      closing: new Closing({ sql, state: keyStates, cache: keyCache, wallets }),
      wallets,
      catalog,
      sql,
    }),
    ...accountRoutes({ sql, catalog, operatorName: config.operator.details?.name ?? null }),
    ...adminKeysRoutes({ sql, keys }),
    ...adminServicesRoutes({ catalog, sql, operations, watch, notice }),
    ...adminCallsRoutes({ sql }),
    ...auditRoutes({ sql }),
    ...statsRoutes({ sql, backlog }),
    ...trafficRoutes({ looks, streams: trafficStreams }),
    ...instancesRoutes({ looks, leaseAges: () => readLeaseAges(redis, redisKeys), shards: redisKeys.shards }),
    ...statementRoutes({ sql, wallets }),
    ...creditsRoutes({ sql, money, keys, applier, log }),
    ...refundsRoutes({ sql, money, applier, log }),
    ...adminRefundsRoutes({ sql }),
    ...debitsRoutes({ sql, money, carrier: new DebitWallets({ sql, redis, keys: redisKeys, hydrator, log }), log }),
    ...payoutsRoutes({ sql, money }),
    ...correctionsRoutes({ corrector: new Corrector({ sql, redis, keys: redisKeys }), log }),
    ...reconciliationRoutes({ sql, reconciler: new Reconcilers({ sql, redis, keys: redisKeys }), log }),
    ...llmsRoutes({ trustedProxyHops: config.trustedProxyHops, operator: config.operator.details }),
    ...mcpServerRoutes({ trustedProxyHops: config.trustedProxyHops }),
    ...healthRoutes({ isReady, readyFile: config.readyFile }),
  ];
  return routes.map(inCsv);
}
