import { Backlog } from '../admission/backlog.ts';
import { Catalog } from '../catalog/catalog.ts';
import { Discovery } from '../catalog/discovery/discovery.ts';
import { OpenApiImporter } from '../catalog/openapi-import/importer.ts';
import { ProfileFeed } from '../catalog/providers/profile-feed.ts';
import { PROFILES_CHANNEL } from '../catalog/providers/profiles-sql.ts';
import type { Config } from '../config/config.ts';
import { untouchedRate } from '../gate/answer.ts';
import { type CallerStream, PROXY_PREFIX, type RequestHead } from '../gate/caller-io.ts';
import { Gate } from '../gate/gate.ts';
import { RefillTimes } from '../gate/refill-times.ts';
import { Api } from '../http/api.ts';
import { PagePermits, permitsFor } from '../http/page-permits.ts';
import { answerPreflight } from '../http/preflight.ts';
import { getHead } from '../http/request-head.ts';
import { HttpServer } from '../http/server.ts';
import type { LoadedUws } from '../http/uws.ts';
import { Authenticator } from '../keys/authenticator.ts';
import { BalanceRefusals } from '../keys/balance-refusals.ts';
import { BudgetRefusals } from '../keys/children/budget-refusals.ts';
import { KeyCache } from '../keys/key-cache.ts';
import { keepKeyCacheFresh } from '../keys/key-feed.ts';
import { Keys } from '../keys/keys.ts';
import { selectKeyRecords } from '../keys/keys-sql.ts';
import { StateRestorer } from '../keys/state-restorer.ts';
import { Fence } from '../ledger/history/fence.ts';
import { keepLayout, layoutOf } from '../ledger/layout.ts';
import { Hydrator } from '../ledger/wallets/hydrate.ts';
import { KeyStates } from '../ledger/wallets/key-states.ts';
import type { AccessLog } from '../observability/access-log.ts';
import type { Log } from '../observability/log.ts';
import type { Metrics } from '../observability/metrics.ts';
import { SparseWarning } from '../observability/sparse-warning.ts';
import { SiteFiles } from '../pages/site-files.ts';
import { systemClock } from '../platform/clock.ts';
import { maxOpenFiles } from '../platform/open-files.ts';
import { Breakers } from '../proxy/breakers.ts';
import { BufferedBytes } from '../proxy/buffered-bytes.ts';
import { UnheardCalls } from '../proxy/by-use/unheard-calls.ts';
import { EventStreams } from '../proxy/event-stream.ts';
import { startExchange } from '../proxy/exchange.ts';
import { newCounters } from '../proxy/exchange-options.ts';
import { LoadShedder } from '../proxy/load-shedder.ts';
import { MessageBodies } from '../proxy/mcp/message-bodies.ts';
import { Messages } from '../proxy/mcp/messages.ts';
import { Offers } from '../proxy/offers.ts';
import { Pseudonyms } from '../proxy/pseudonyms.ts';
import { shedCall } from '../proxy/shed.ts';
import type { ArrivedCall } from '../proxy/stages/arrived-call.ts';
import { QualityFeed } from '../quality/quality-feed.ts';
import { Answers } from '../replay/answers.ts';
import { Replays } from '../replay/replays.ts';
import { openApiRoutes } from '../routes/openapi.ts';
import { pageRoutes } from '../routes/pages.ts';
import type { Watch } from '../routes/shown-service.ts';
import { siteRoutes } from '../routes/site.ts';
import { errorPages } from '../routes/site-errors.ts';
import { Resealer } from '../secrets/resealer.ts';
import { Sealer } from '../secrets/sealer.ts';
import { ServiceSecrets } from '../secrets/service-secrets.ts';
import { untilLeased } from '../traffic/leases.ts';
import { LiveStreams } from '../traffic/live-streams.ts';
import { LOOKS, Looks } from '../traffic/looks.ts';
import { nameOf } from '../traffic/name.ts';
import { Reporter } from '../traffic/reporter.ts';
import { UpstreamClient } from '../upstream/index.ts';
import { Reachability } from '../watch/reachability.ts';
import { Uptimes } from '../watch/uptimes.ts';
import { connectionBound } from './connection-bound.ts';
import { gatewayMetrics } from './gateway-metrics.ts';
import { gatewayRoutes } from './gateway-routes.ts';
import { openAdmission } from './open-admission.ts';
import { newInstanceId, type Stores } from './stores.ts';

/** Bounds of the upstream client, see `UpstreamOptions`. They are not settings, because no operator has needed others yet. */
const UPSTREAM = {
  maxWaitingPerOrigin: 1_024,
  maxWaitMs: 1_000,
  connectTimeoutMs: 5_000,
  keepAliveMs: 30_000,
  maxHeadBytes: 65_536,
};
/** A caller that neither takes its response nor sends its request for this long is cut off. */
const IDLE_CALLER_SECONDS = 60;
/**
 * Maximum bytes of request body that all answered calls together may buffer for services that do not read it. Beyond it, the
 * call that buffers most is ended.
 */
const MAX_BUFFERED_BYTES = 67_108_864;
/** After draining, Redis has this long to confirm the settlements. If one never reaches Redis, the sweep refunds its call. */
const FLUSH_SETTLEMENTS_MS = 5_000;

export type Gateway = {
  readonly port: number;
  /** The name of this process's leases and holds in Redis; after a reconnection, a number is appended to it (`HoldOwners`). */
  readonly instance: string;
  /**
   * Drains: accepts no new calls, lets those under way finish, and waits until Redis has confirmed their settlements.
   *
   * @param options.handOver another process serves the port, and callers are sent there first; see `HttpServer.drain`
   * @returns how many calls were cut off, and how many settlements Redis has not confirmed
   */
  stop(options?: { readonly handOver?: boolean }): Promise<{ callsCut: number; unsettled: number }>;
};

type GatewayOptions = {
  readonly config: Config;
  readonly stores: Stores;
  readonly uws: LoadedUws;
  /** Whether other gateways listen on the same port. */
  readonly sharesPort?: boolean;
  /** This gateway's number among the workers, from 1. */
  readonly worker?: number;
  readonly metrics: Metrics;
  readonly log: Log;
  /** Default null: none. */
  readonly accessLog?: AccessLog | null;
  /** Default true. Tests that count what a service receives turn it off. */
  readonly asksNewEndpoints?: boolean;
  /** Settings of health checks, for tests. */
  readonly healthIntervalMs?: number | undefined;
  /** Default: as in production. A gateway that runs from sources needs one that finds a compiled worker. */
  readonly importer?: OpenApiImporter;
  /** Default: as in production. */
  readonly shedder?: LoadShedder;
  /** Finds the built pages, for a gateway that runs from sources. */
  readonly webFolder?: (() => string) | undefined;
};

/**
 * Builds and starts the gateway: everything between the caller's socket, Redis and the services.
 *
 * Tested by test/integration/lifecycle.test.ts, and by every test that starts test/integration/marketplace.ts.
 */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { config, stores, log } = options;
  const { sql, redis, keys: redisKeys, installation } = stores;
  const instance = newInstanceId();

  const { databaseUrl, maxRateLimit } = config;
  const hydrator = new Hydrator({ databaseUrl, installation, sql, redis, keys: redisKeys, maxRateLimit, log });
  const { admission, replicaDemand, nodes, closeBatches } = await openAdmission({
    config,
    stores,
    instance,
    loader: hydrator,
    log,
  });
  // Before anything is cached from Redis: `reshard` either finds this lease, or is noticed here (`Layout`).
  admission.start();
  try {
    await untilLeased(redis, redisKeys, instance);
    await keepLayout(sql, layoutOf(stores));
  } catch (error) {
    await admission.drain(0);
    await closeBatches();
    throw error;
  }
  const backlog = new Backlog({ redis, keys: redisKeys, maxEvents: config.maxBacklogEvents });
  const keyCache = new KeyCache({ fetchKeys: (ids) => selectKeyRecords(sql, ids, maxRateLimit) });
  const profiles = new ProfileFeed({ sql, take: (some, isAll) => catalog.setProfiles(some, isAll), log });
  const catalog = new Catalog({
    sql,
    log,
    also: {
      channel: PROFILES_CHANNEL,
      onMessage: (accountId) => profiles.changed(accountId),
      onListening: () => profiles.mayHaveMissed(),
    },
  });
  const { upstreamMaxConnections, upstreamMaxTotalConnections } = config;
  // Its index grows while Postgres is asked for the next page. The start waits for it below, because under the load of calls it
  // would grow slowly, and until then /discover would answer 503.
  const discovery = new Discovery(catalog, log);
  const wantedConnections = Math.max(upstreamMaxTotalConnections, upstreamMaxConnections);
  const maxConnections = connectionBound(wantedConnections, maxOpenFiles(), log);
  const upstream = new UpstreamClient({
    ...UPSTREAM,
    allowCidrs: config.upstreamAllowCidrs,
    maxConnectionsPerOrigin: upstreamMaxConnections,
    maxConnections,
  });
  const counters = newCounters();
  const reporter = new Reporter({
    redis,
    name: nameOf('gateway', instance, options.worker ?? 1),
    calls: {
      counts: () => ({
        admitted: counters.admitted,
        completed: counters.completed,
        open: counters.open,
        refunded: Object.fromEntries(counters.refunded),
        refused: Object.fromEntries(counters.refused),
      }),
      latencies: counters.latencies,
    },
  });
  const looks = new Looks({ sql, redis, reporter });
  const stopKeyFeed = await keepKeyCacheFresh(sql, keyCache, {
    also: { channel: LOOKS, onMessage: () => reporter.looked() },
  });
  await catalog.start();
  const qualities = new QualityFeed({ sql, take: (changed) => catalog.setQualities(changed), log });
  // Before the index is built, so that its first lists have qualities.
  qualities.start();
  profiles.start();
  await discovery.current();

  const keyStates = new KeyStates({
    redis,
    keys: redisKeys,
    maxRateLimit,
    commandTimeoutMs: config.redisCommandTimeoutMs,
  });
  const keys = new Keys({ sql, state: keyStates, cache: keyCache, maxRateLimit });

  const fence = new Fence({ sql, redis, keys: redisKeys });
  const restorer = new StateRestorer({
    publish: (keyId) => keys.restoreState(keyId, (work) => fence.begin([], work)),
    log,
  });
  const gate = new Gate({
    authenticator: new Authenticator(keyCache, systemClock),
    admission,
    anonymousRateLimit: config.anonymousRateLimit,
    refills: new RefillTimes(systemClock, options.worker, config.workers),
    onContradiction: (keyId) => restorer.restore(keyId),
  });
  const breakers = new Breakers();
  const shedder = options.shedder ?? new LoadShedder();
  const secrets = new ServiceSecrets(new Sealer(config.secretsKeys));
  // One worker of each machine looks after the secrets of listings.
  const resealer = (options.worker ?? 1) === 1 ? new Resealer({ sql, secrets, log }) : null;
  // A quarter of the connections, so that three quarters are left for calls with a waiting caller.
  const unheardCalls = new UnheardCalls(Math.ceil(maxConnections / 4));
  const answers = new Answers({
    redis,
    keys: redisKeys,
    maxAnswerBytes: config.replayMaxBytes,
    maxBytes: config.replayBytes,
    memoryShare: (shard) => backlog.memoryShare(shard),
    log,
  });
  const budgetRefusals = new BudgetRefusals({ sql, log });
  const balanceRefusals = new BalanceRefusals({ sql, log });
  const replays = new Replays({ sql, log });
  const exchangeOptions = {
    gate,
    catalog,
    offers: new Offers({ breakers, idleBodySeconds: config.idleBodySeconds, secrets, log }),
    admission,
    upstream,
    pseudonyms: new Pseudonyms(await pseudonymSecret(stores)),
    maxRequestBodyBytes: config.maxRequestBodyBytes,
    bufferedBytes: new BufferedBytes(MAX_BUFFERED_BYTES),
    operator: config.operator,
    messages: new Messages(gate, new MessageBodies({ maxMessageBytes: config.maxRequestBodyBytes })),
    eventStreams: new EventStreams(),
    unheardCalls,
    answers,
    budgetRefusals,
    balanceRefusals,
    replays,
    backlogFull: () => backlog.full,
    counters,
    log,
  };

  const pseudonyms = exchangeOptions.pseudonyms;
  const reachability = new Reachability({
    client: upstream,
    sql,
    log: new SparseWarning(log),
    intervalMs: options.healthIntervalMs,
  });
  const uptimes = new Uptimes({ sql, take: (all) => catalog.setUptimes(all), log });
  const watch: Watch = {
    check: (listing, what) => {
      if (options.asksNewEndpoints ?? true) reachability.check(listing, what);
    },
  };
  const trafficStreams = new LiveStreams();
  const apiRoutes = gatewayRoutes({
    config,
    stores,
    log,
    catalog,
    discovery,
    keys,
    keyStates,
    keyCache,
    hydrator,
    secrets,
    pseudonyms,
    watch,
    backlog,
    looks,
    trafficStreams,
    importer: options.importer ?? new OpenApiImporter(),
    isReady: () => !server.draining && admission.answering && redis.ready && catalog.ready(),
  });
  const site = config.web ? await SiteFiles.load(options.webFolder?.()) : null;
  if (config.web && site === null) log.warn({}, 'the pages are not built (npm run build): `/` is a small page');
  const routes = [
    ...apiRoutes,
    ...pageRoutes(
      apiRoutes,
      config.operator.details,
      site &&
        ((root) =>
          siteRoutes({
            files: site,
            root,
            operator: config.operator.details,
            lacksAdmin: () => keys.lacksAdmin(),
            trustedProxyHops: config.trustedProxyHops,
            ask: (path, query, { address, requestId }) =>
              api.ask({ head: getHead(path, query), key: null, address, requestId }),
          })),
    ),
  ];
  const errorPage = site === null ? undefined : errorPages(site, config.operator.details);
  const permits = new PagePermits(permitsFor(sql.maxConnections));
  const api: Api = new Api({
    gate,
    permits,
    routes: [...routes, ...openApiRoutes(routes, config.operator.details)],
    log,
    errorPage,
  });
  const startCall = (head: RequestHead, caller: CallerStream): ArrivedCall | null => {
    if (shedder.sheds()) {
      shedCall(gate, counters, head, caller);
      return null;
    }
    return startExchange(exchangeOptions, head, caller);
  };
  // Loaded here, so that only gateways load it: the protocol's package takes 27 MB and 0.2 s in every process that imports it.
  const { MCP_PATH, McpEndpoint } = await import('../mcp/endpoint.ts');
  const mcp = new McpEndpoint({
    gate,
    ask: (asked) => api.ask(asked),
    startCall,
    allowedOrigins: config.allowedOrigins,
    log,
  });
  const server: HttpServer = new HttpServer({
    uws: options.uws,
    host: config.host,
    port: config.port,
    sharesPort: options.sharesPort ?? false,
    trustedProxyHops: config.trustedProxyHops,
    idleCallerSeconds: IDLE_CALLER_SECONDS,
    maxRequestBodyBytes: config.maxRequestBodyBytes,
    isCall: (head) => head.path.startsWith(PROXY_PREFIX),
    onCall: startCall,
    onRequest: (head, stream) => {
      shedder.requested();
      void (head.path === MCP_PATH ? mcp : api).handle(head, stream);
    },
    accessLog: options.accessLog ?? null,
    onPreflight: (head, stream) => {
      shedder.requested();
      if (head.path === MCP_PATH && !mcp.allowsPage(head)) void mcp.handle(head, stream);
      else answerPreflight(head, stream, untouchedRate(gate.limitOf(null)));
    },
    log,
  });

  options.metrics.add(
    gatewayMetrics({
      counters,
      server,
      upstream,
      admission,
      replicaDemand,
      nodes,
      backlog,
      breakers,
      shedder,
      unheardCalls,
      answers,
      resealer,
      shards: redisKeys.shards,
      maxBacklogEvents: config.maxBacklogEvents,
    }),
  );
  backlog.start();
  breakers.start();
  shedder.start();
  const refusals = [budgetRefusals, balanceRefusals];
  const jobs = [qualities, uptimes, profiles, ...refusals, replays, ...(resealer === null ? [] : [resealer])];
  for (const job of jobs) job.start();
  const port = await server.listen();

  return {
    port,
    instance,
    stop: async ({ handOver = false } = {}) => {
      // These would delay the drain. Their readers ask another gateway.
      trafficStreams.end();
      const callsCut = await server.drain(config.drainSeconds * 1000, { handOver });
      // Cuts off the calls that did not finish in time. Each is settled as the failure table in docs/design.md says.
      server.close();
      unheardCalls.stop();
      const unsettled = await admission.drain(FLUSH_SETTLEMENTS_MS);
      await answers.drain();
      await reporter.stop();
      backlog.stop();
      breakers.stop();
      shedder.stop();
      reachability.stop();
      await Promise.all(jobs.map((job) => job.stop()));
      await catalog.stop();
      stopKeyFeed();
      await upstream.close();
      await closeBatches();
      hydrator.close();
      return { callsCut, unsettled };
    },
  };
}

async function pseudonymSecret({ sql }: Stores): Promise<string> {
  const rows = await sql<{ pseudonym_secret: string }[]>`SELECT pseudonym_secret FROM installation`;
  const secret = rows[0]?.pseudonym_secret;
  if (secret === undefined) throw new Error('the installation row is missing');
  return secret;
}
