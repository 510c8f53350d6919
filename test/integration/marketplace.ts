// A complete marketplace in this process, on real stores and free ports, used over HTTP as a caller would.

import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { OpenApiImporter } from '../../src/catalog/openapi-import/importer.ts';
import { type Config, loadConfig } from '../../src/config/config.ts';
import { loadUws } from '../../src/http/uws.ts';
import type { Log } from '../../src/observability/log.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import { readMigrations } from '../../src/platform/migrate.ts';
import { LoadShedder } from '../../src/proxy/load-shedder.ts';
import { type Gateway, startGateway } from '../../src/roles/gateway.ts';
import { openStores, type Stores } from '../../src/roles/stores.ts';
import { startWriter, type Writer } from '../../src/roles/writer.ts';
import { builtWeb, importWorker } from '../support/build.ts';
import { withCallerStack } from '../support/caller-stack.ts';
import { startMarketRedis } from '../support/redis-kind.ts';
import { createUsedDatabase, type TestRedis } from '../support/stores.ts';
import { type Founders, found, MarketClient } from './market-client.ts';

export { authorization, type CallRecord, type Key, type ServiceOptions, type Usage } from './market-client.ts';

/** How many shards the data of a marketplace have. A process that a test starts on its stores has to be told. */
export const SHARDS = 4;

/** The gateway's log lines, kept so that a test can look for secrets in them. */
export class MemoryLog implements Log {
  readonly lines: string[] = [];
  debug = (fields: object, message: string): void => this.#add('debug', fields, message);
  info = (fields: object, message: string): void => this.#add('info', fields, message);
  warn = (fields: object, message: string): void => this.#add('warn', fields, message);
  error = (fields: object, message: string): void => this.#add('error', fields, message);
  fatal = (fields: object, message: string): void => this.#add('fatal', fields, message);

  #add(level: string, fields: object, message: string): void {
    const shown = Object.fromEntries(
      Object.entries(fields).map(([name, value]) => [name, value instanceof Error ? String(value.stack) : value]),
    );
    this.lines.push(JSON.stringify({ level, message, ...shown }));
  }
}

export type TestService = { readonly url: string; readonly port: number; close(): Promise<void> };

/** Starts a service on a free port of 127.0.0.1. */
export async function startService(listener: RequestListener): Promise<TestService> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

export async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** A service that answers with the request it received, to test header, path and body rules. */
export async function echo(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await bodyOf(request);
  const received = {
    method: request.method,
    url: request.url,
    headers: request.rawHeaders,
    body: body.toString('latin1'),
  };
  response.setHeader('Content-Type', 'application/json');
  response.end(JSON.stringify(received));
}

export class Marketplace extends MarketClient {
  readonly redis: TestRedis;
  readonly databaseUrl: string;
  readonly log: MemoryLog;
  readonly #gateway: Gateway;
  readonly #metrics: Metrics;
  #writer: Writer | null;
  readonly #startWriter: () => Promise<Writer>;
  readonly #startGateway: (settings: Partial<Config>) => Promise<Gateway>;
  readonly #cleanUp: () => Promise<void>;
  #gatewayStopped: ReturnType<Gateway['stop']> | null = null;

  private constructor(
    parts: Founders & {
      gateway: Gateway;
      metrics: Metrics;
      writer: Writer | null;
      startWriter: () => Promise<Writer>;
      startGateway: (settings: Partial<Config>) => Promise<Gateway>;
      stores: Stores;
      redis: TestRedis;
      databaseUrl: string;
      log: MemoryLog;
      cleanUp: () => Promise<void>;
    },
  ) {
    super({ ...parts, baseUrl: `http://127.0.0.1:${parts.gateway.port}` });
    this.redis = parts.redis;
    this.databaseUrl = parts.databaseUrl;
    this.log = parts.log;
    this.#gateway = parts.gateway;
    this.#metrics = parts.metrics;
    this.#writer = parts.writer;
    this.#startWriter = parts.startWriter;
    this.#startGateway = parts.startGateway;
    this.#cleanUp = parts.cleanUp;
  }

  /** @param settings environment variables besides those of the stores */
  static async start(
    settings: Readonly<Record<string, string>> = {},
    {
      writer: withWriter = true,
      durableRedis = false,
      health = {},
      asksNewEndpoints = false,
      sheds = false,
    }: {
      readonly writer?: boolean;
      readonly durableRedis?: boolean;
      /** Each new service is asked once then, in the background. */
      readonly asksNewEndpoints?: boolean;
      /** Whether the gateway sheds calls when its event loop is late. On a busy machine it is late for no fault of the gateway. */
      readonly sheds?: boolean;
      readonly health?: { readonly intervalMs?: number; readonly lookMs?: number };
    } = {},
  ): Promise<Marketplace> {
    const database = await createUsedDatabase();
    const redis = await startMarketRedis(durableRedis ? { appendonly: true, appendfsync: 'always' } : {});
    const config: Config = loadConfig({
      DATABASE_URL: database.url,
      REDIS_URL: redis.url,
      HOST: '127.0.0.1',
      PORT: '0',
      UPSTREAM_ALLOW_CIDRS: '127.0.0.0/8',
      ANONYMOUS_RATE_LIMIT: '100000',
      // Most tests have seen the end of their calls. With a second to drain, each gateway would wait for it: connections of fetch stay open.
      DRAIN_SECONDS: '0',
      PRICE_NOTICE_SECONDS: '0',
      // All that is done for each shard, such as the comparison after a start, costs a quarter of what it costs with the default. Those of
      // `worker-stack.ts`, on stores of their own, have the default.
      REDIS_SHARDS: String(SHARDS),
      // A stall of a busy machine is no Redis that is away.
      REDIS_COMMAND_TIMEOUT_MS: '5000',
      WEB: 'off',
      ...settings,
    });
    const log = new MemoryLog();
    const migrations = readMigrations(fileURLToPath(new URL('../../migrations', import.meta.url)));
    const stores = await openStores(config, { name: 'test', maxConnections: 5, migrations, log });
    withCallerStack(stores.redis);
    const metrics = new Metrics();
    const begin = (): Promise<Writer> => startWriter({ config, stores, metrics: new Metrics(), log, health });
    const writer = withWriter ? await begin() : null;
    const another = (its: Metrics, settings: Partial<Config> = {}): Promise<Gateway> =>
      startGateway({
        config: { ...config, ...settings },
        stores,
        uws: loadUws(process.env),
        metrics: its,
        log,
        // A page has 5 s for its answer.
        importer: new OpenApiImporter({ workerFile: importWorker, deadlineMs: 5_000 }),
        shedder: sheds ? new LoadShedder() : new LoadShedder({ random: () => 1 }),
        asksNewEndpoints,
        healthIntervalMs: health.intervalMs,
        webFolder: builtWeb,
      });
    const gateway = await another(metrics);
    const founders = await found(`http://127.0.0.1:${gateway.port}`);
    const cleanUp = async (): Promise<void> => {
      await redis.release();
      await database.drop();
    };
    return new Marketplace({
      gateway,
      metrics,
      writer,
      startWriter: begin,
      startGateway: (settings) => another(new Metrics(), settings),
      stores,
      redis,
      databaseUrl: database.url,
      log,
      ...founders,
      cleanUp,
    });
  }

  /** Drains the gateway as SIGTERM does. */
  stopGateway(): ReturnType<Gateway['stop']> {
    this.#gatewayStopped ??= this.#gateway.stop();
    return this.#gatewayStopped;
  }

  /** Starts a second gateway on the same stores, with its own caches. @param settings  those in which it differs */
  async anotherGateway(settings: Partial<Config> = {}): Promise<{ baseUrl: string; stop(): Promise<unknown> }> {
    const { port, stop } = await this.#startGateway(settings);
    return { baseUrl: `http://127.0.0.1:${port}`, stop };
  }

  async startWriter(): Promise<void> {
    this.#writer ??= await this.#startWriter();
  }

  async stop(): Promise<{ callsCut: number; unsettled: number }> {
    const left = await this.stopGateway();
    await this.#writer?.stop();
    await this.stores.close();
    await this.#cleanUp();
    return left;
  }

  /** The value of a gateway metric, summed over its labels. */
  async metric(name: string): Promise<number> {
    const lines = (await this.#metrics.render()).split('\n');
    const values = lines.filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`));
    return values.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
  }
}
