import { Backlog } from '../admission/backlog.js';
import { Catalog } from '../catalog/catalog.js';
import { Discovery } from '../catalog/discovery/discovery.js';
import { untouchedRate } from '../gate/answer.js';
import { PROXY_PREFIX } from '../gate/caller-io.js';
import { Gate } from '../gate/gate.js';
import { RefillPlaces } from '../gate/refill-places.js';
import { Api } from '../http/api.js';
import { PagePlaces, placesFor } from '../http/page-places.js';
import { answerPreflight } from '../http/preflight.js';
import { getHead } from '../http/request-head.js';
import { HttpServer } from '../http/server.js';
import { Authenticator } from '../keys/authenticator.js';
import { KeyCache } from '../keys/key-cache.js';
import { keepKeyCacheFresh } from '../keys/key-feed.js';
import { Keys } from '../keys/keys.js';
import { selectKeyRecords } from '../keys/keys-sql.js';
import { StateRestorer } from '../keys/state-restorer.js';
import { keepLayout, layoutOf } from '../ledger/layout.js';
import { Hydrator } from '../ledger/wallets/hydrate.js';
import { KeyStates } from '../ledger/wallets/key-states.js';
import { SparseWarning } from '../observability/sparse-warning.js';
import { SiteFiles } from '../pages/site-files.js';
import { systemClock } from '../platform/clock.js';
import { maxOpenFiles } from '../platform/open-files.js';
import { Breakers } from '../proxy/breakers.js';
import { BufferedBytes } from '../proxy/buffered-bytes.js';
import { EventStreams } from '../proxy/event-stream.js';
import { startExchange } from '../proxy/exchange.js';
import { newCounters } from '../proxy/exchange-options.js';
import { LoadShedder } from '../proxy/load-shedder.js';
import { MessageBodies } from '../proxy/mcp/message-bodies.js';
import { Messages } from '../proxy/mcp/messages.js';
import { Offers } from '../proxy/offers.js';
import { Pseudonyms } from '../proxy/pseudonyms.js';
import { shedCall } from '../proxy/shed.js';
import { QualityFeed } from '../quality/quality-feed.js';
import { openApiRoutes } from '../routes/openapi.js';
import { pageRoutes } from '../routes/pages.js';
import { siteRoutes } from '../routes/site.js';
import { errorPages } from '../routes/site-errors.js';
import { Resealer } from '../secrets/resealer.js';
import { Sealer } from '../secrets/sealer.js';
import { ServiceSecrets } from '../secrets/service-secrets.js';
import { EventStreams as AdminStreams } from '../traffic/event-streams.js';
import { untilLeased } from '../traffic/leases.js';
import { LOOKS, Looks } from '../traffic/looks.js';
import { nameOf } from '../traffic/name.js';
import { Reporter } from '../traffic/reporter.js';
import { UpstreamClient } from '../upstream/index.js';
import { Reachability } from '../watch/reachability.js';
import { Uptimes } from '../watch/uptimes.js';
import { connectionBound } from './connection-bound.js';
import { gatewayMetrics } from './gateway-metrics.js';
import { gatewayRoutes } from './gateway-routes.js';
import { openAdmission } from './open-admission.js';
import { newInstanceId } from './stores.js';
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
/**
 * Builds and starts the gateway: everything between the caller's socket, Redis and the services.
 *
 * Tested by test/integration/lifecycle.test.ts, and by every test that starts test/integration/marketplace.ts.
 */
export async function startGateway(options) {
    const { config, stores, log } = options;
    const { sql, redis, keys: redisKeys, installation } = stores;
    const instance = newInstanceId();
    const hydrator = new Hydrator({ databaseUrl: config.databaseUrl, installation, sql, redis, keys: redisKeys, log });
    const { admission, replicaDemand, nodes, closeBatches } = await openAdmission({
        config,
        stores,
        instance,
        loader: hydrator,
        log,
    });
    // Before anything is kept of Redis. `reshard` either finds this lease, or is found here (`Layout`).
    admission.start();
    try {
        await untilLeased(redis, redisKeys, instance);
        await keepLayout(sql, layoutOf(stores));
    }
    catch (error) {
        await admission.drain(0);
        await closeBatches();
        throw error;
    }
    const backlog = new Backlog({ redis, keys: redisKeys, maxEvents: config.maxBacklogEvents });
    const keyCache = new KeyCache({ fetchKeys: (ids) => selectKeyRecords(sql, ids) });
    const catalog = new Catalog({ sql, log });
    const { upstreamMaxConnections, upstreamMaxTotalConnections } = config;
    // Its index grows while Postgres is asked for the next page. It is waited for below, because under the load of calls it would grow
    // slowly, and until then /discover would answer 503.
    const discovery = new Discovery(catalog, log);
    const upstream = new UpstreamClient({
        ...UPSTREAM,
        allowCidrs: config.upstreamAllowCidrs,
        maxConnectionsPerOrigin: upstreamMaxConnections,
        maxConnections: connectionBound(Math.max(upstreamMaxTotalConnections, upstreamMaxConnections), maxOpenFiles(), log),
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
    // Before the index is there, so that its first lists have qualities.
    qualities.start();
    await discovery.current();
    const keyStates = new KeyStates({ redis, keys: redisKeys });
    const keys = new Keys({ sql, state: keyStates, cache: keyCache });
    const restorer = new StateRestorer({ publish: (keyId) => keys.restoreState(keyId), log });
    const gate = new Gate({
        authenticator: new Authenticator(keyCache, systemClock),
        admission,
        anonymousRateLimit: config.anonymousRateLimit,
        places: new RefillPlaces(systemClock, options.worker, config.workers),
        onContradiction: (keyId) => restorer.restore(keyId),
    });
    const breakers = new Breakers();
    const shedder = new LoadShedder();
    const secrets = new ServiceSecrets(new Sealer(config.secretsKeys));
    // One worker of each machine looks after the secrets of listings.
    const resealer = (options.worker ?? 1) === 1 ? new Resealer({ sql, secrets, log }) : null;
    const exchangeOptions = {
        gate,
        catalog,
        offers: new Offers({ breakers, idleBodySeconds: config.idleBodySeconds, secrets, log }),
        admission,
        upstream,
        pseudonyms: new Pseudonyms(await pseudonymSecret(stores)),
        maxRequestBodyBytes: config.maxRequestBodyBytes,
        bufferedBytes: new BufferedBytes(MAX_BUFFERED_BYTES),
        topUpUrl: config.topUpUrl,
        messages: new Messages(gate, new MessageBodies({ maxMessageBytes: config.maxRequestBodyBytes })),
        eventStreams: new EventStreams(),
        backlogFull: () => backlog.full,
        counters,
        log,
    };
    const pseudonyms = exchangeOptions.pseudonyms;
    const reachability = new Reachability({ client: upstream, sql, log: new SparseWarning(log) });
    const uptimes = new Uptimes({ sql, log });
    const watch = {
        check: (listing) => {
            if (options.asksNewEndpoints ?? true)
                reachability.check(listing);
        },
        uptimeOf: (serviceId) => uptimes.of(serviceId),
    };
    const trafficStreams = new AdminStreams();
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
        importWorker: options.importWorker,
        isReady: () => !server.draining && admission.answering && redis.ready && catalog.ready(),
    });
    const site = config.web ? await SiteFiles.load(options.webFolder?.()) : null;
    if (config.web && site === null)
        log.warn({}, 'the pages are not built (npm run build): `/` is a small page');
    const routes = [
        ...apiRoutes,
        ...pageRoutes(apiRoutes, site &&
            ((root) => siteRoutes({
                files: site,
                root,
                trustedProxyHops: config.trustedProxyHops,
                ask: (path, query, { address, requestId }) => api.ask({ head: getHead(path, query), key: null, address, requestId }),
            }))),
    ];
    const errorPage = site === null ? undefined : errorPages(site);
    const places = new PagePlaces(placesFor(sql.maxConnections));
    const api = new Api({ gate, places, routes: [...routes, ...openApiRoutes(routes)], log, errorPage });
    const startCall = (head, caller) => {
        if (shedder.sheds()) {
            shedCall(gate, counters, head, caller);
            return null;
        }
        return startExchange(exchangeOptions, head, caller);
    };
    // Loaded here, so that only gateways load it: the protocol's package takes 27 MB and 0.2 s in every process that imports it.
    const { MCP_PATH, McpEndpoint } = await import('../mcp/endpoint.js');
    const mcp = new McpEndpoint({
        gate,
        ask: (asked) => api.ask(asked),
        startCall,
        allowedOrigins: config.allowedOrigins,
        log,
    });
    const server = new HttpServer({
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
        onPreflight: (head, stream) => {
            shedder.requested();
            if (head.path === MCP_PATH && !mcp.allowsPage(head))
                void mcp.handle(head, stream);
            else
                answerPreflight(head, stream, untouchedRate(gate.limitOf(null)));
        },
        log,
    });
    options.metrics.add(gatewayMetrics({
        counters,
        server,
        upstream,
        admission,
        replicaDemand,
        nodes,
        backlog,
        breakers,
        shedder,
        resealer,
        shards: redisKeys.shards,
        maxBacklogEvents: config.maxBacklogEvents,
    }));
    backlog.start();
    breakers.start();
    shedder.start();
    const jobs = [qualities, uptimes, ...(resealer === null ? [] : [resealer])];
    for (const job of jobs)
        job.start();
    const port = await server.listen();
    return {
        port,
        instance,
        stop: async ({ handOver = false } = {}) => {
            // They would keep the drain waiting. Their readers ask another gateway.
            trafficStreams.end();
            const callsCut = await server.drain(config.drainSeconds * 1000, { handOver });
            // Cuts off the calls that did not finish in time. Each is settled as the failure table in docs/design.md says.
            server.close();
            const unsettled = await admission.drain(FLUSH_SETTLEMENTS_MS);
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
async function pseudonymSecret({ sql }) {
    const rows = await sql `SELECT pseudonym_secret FROM installation`;
    const secret = rows[0]?.pseudonym_secret;
    if (secret === undefined)
        throw new Error('the installation row is missing');
    return secret;
}
//# sourceMappingURL=gateway.js.map