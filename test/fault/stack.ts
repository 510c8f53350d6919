// A complete installation in its own processes, with a fault proxy on every link: a supervised gateway with two workers, a
// writer, Redis or a Redis Cluster, Postgres and a service.

import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { processIdentity } from '../../scripts/local/identity.mjs';
import { freePort } from '../../scripts/local/ports.mjs';
import { loadConfig } from '../../src/config/config.ts';
import { evenTags, slotOf } from '../../src/platform/cluster/hash-tags.ts';
import { readMigrations } from '../../src/platform/migrate.ts';
import { openStores, type Stores } from '../../src/roles/stores.ts';
import { runAcceptPostgres } from '../support/accept-postgres.ts';
import { buildSources } from '../support/build.ts';
import { QUIET } from '../support/store.ts';
import { scratchDir, startTestPostgres, startTestRedis, type TestRedis, type TestStore } from '../support/stores.ts';
import { type Clocked, Clocks } from './clocks/clocks.ts';
import { FaultCluster } from './cluster/nodes.ts';
import { Daemon } from './daemon.ts';
import { FaultProxy } from './fault-proxy.ts';
import { PostgresPair } from './history/postgres-pair.ts';
import { RedisPair } from './history/redis-pair.ts';
import { LINKS, type LinkName } from './plan.ts';
import { UnderWay } from './under-way.ts';

export const LEASE_SECONDS = 10;
const SHARDS = 4;
/** Two for each of the three masters. */
const CLUSTER_SHARDS = 6;

/** Links that only histories have: where the test looks at the stores is then led to other servers, too. */
const HISTORY_LINKS = ['second-writer-redis', 'second-writer-postgres', 'test-redis', 'test-postgres'] as const;
type AnyLink = LinkName | (typeof HISTORY_LINKS)[number];

/** How long the gateway's metrics page may take; its workers write it together. */
const METRICS_MS = 5_000;

/** Stacks that this process has started. */
let stacks = 0;

export type Worker = { readonly pid: number; readonly instance: string };

type Parts = {
  readonly redis: TestRedis | RedisPair | null;
  readonly cluster: FaultCluster | null;
  readonly postgres: TestStore | PostgresPair;
  readonly links: ReadonlyMap<AnyLink, FaultProxy>;
  readonly service: Daemon;
  readonly writer: Daemon;
  readonly secondWriter: Daemon;
  readonly gateway: Daemon;
  readonly stores: Stores;
  readonly gatewayUrl: string;
  readonly metricsUrl: string;
  readonly seenFile: string;
  readonly directEnv: Readonly<Record<string, string>>;
  readonly clocks: Clocks | null;
};

export class Stack {
  readonly underWay = new UnderWay();
  readonly #redis: TestRedis | RedisPair | null;
  /** Null: there is one Redis. */
  readonly cluster: FaultCluster | null;
  readonly #postgres: TestStore | PostgresPair;
  readonly #links: ReadonlyMap<AnyLink, FaultProxy>;
  readonly service: Daemon;
  readonly writer: Daemon;
  /** Runs only while a history wants two. */
  readonly secondWriter: Daemon;
  readonly gateway: Daemon;
  /** Direct connections to the stores, not through the fault proxies. */
  readonly stores: Stores;
  readonly gatewayUrl: string;
  readonly #metricsUrl: string;
  /** The environment of a program that reaches the stores as the test does. */
  readonly directEnv: Readonly<Record<string, string>>;
  /** Null: all clocks are right. */
  readonly clocks: Clocks | null;
  /** The file in which the service records the calls that reached it. */
  readonly seenFile: string;

  private constructor(parts: Parts) {
    this.#redis = parts.redis;
    this.cluster = parts.cluster;
    this.#postgres = parts.postgres;
    this.#links = parts.links;
    this.service = parts.service;
    this.writer = parts.writer;
    this.secondWriter = parts.secondWriter;
    this.gateway = parts.gateway;
    this.stores = parts.stores;
    this.gatewayUrl = parts.gatewayUrl;
    this.#metricsUrl = parts.metricsUrl;
    this.seenFile = parts.seenFile;
    this.directEnv = parts.directEnv;
    this.clocks = parts.clocks;
  }

  /** The only Redis, or the master of the two. */
  get redis(): TestRedis {
    if (this.#redis === null) throw new Error('there is a cluster');
    return this.#redis instanceof RedisPair ? this.#redis.master : this.#redis;
  }

  get redisPair(): RedisPair {
    if (this.#redis instanceof RedisPair) return this.#redis;
    throw new Error('there is no second Redis');
  }

  get postgres(): TestStore {
    return this.#postgres instanceof PostgresPair ? this.#postgres.primary : this.#postgres;
  }

  get postgresPair(): PostgresPair {
    if (this.#postgres instanceof PostgresPair) return this.#postgres;
    throw new Error('there is no second Postgres');
  }

  hasTwoWriters = false;

  get writers(): readonly Daemon[] {
    return this.hasTwoWriters ? [this.writer, this.secondWriter] : [this.writer];
  }

  /** The links to a store: all but those of the test itself, or those of some programs. */
  linksOf(store: 'redis' | 'postgres', whose: 'all' | 'gateway' | 'writer' = 'all'): FaultProxy[] {
    return Array.from(this.#links)
      .filter(([name]) => name.endsWith(`-${store}`) && !name.startsWith('test-'))
      .filter(([name]) => whose === 'all' || name.includes(`${whose}-`))
      .map(([, link]) => link);
  }

  /** Gateways connect to Redis anew. Resolves when they have lost their connections. */
  async reconnectGateway(): Promise<void> {
    if (this.cluster === null) this.link('gateway-redis').reset();
    else await this.cluster.dropClients();
  }

  /** New connections to a store lead to this port from now on. */
  lead(store: 'redis' | 'postgres', port: number): void {
    for (const [name, link] of this.#links) if (name.endsWith(`-${store}`)) link.retarget(port);
  }

  /** Cuts all connections to a store, also those of the test. */
  cut(store: 'redis' | 'postgres'): void {
    for (const [name, link] of this.#links) if (name.endsWith(`-${store}`)) link.reset();
  }

  /** @throws in a cluster, where each node has proxies of its own, for a link to Redis */
  link(name: AnyLink): FaultProxy {
    const link = this.#links.get(name);
    if (link === undefined) throw new Error(`there is no link ${name}`);
    return link;
  }

  /** The slot of each shard in a cluster. */
  readonly slots: readonly number[] = evenTags(CLUSTER_SHARDS).map((tag) => slotOf(`{${tag}}`));

  /**
   * @param settings further ones of the gateway and the writer
   * @param options.forHistories whether stores can be replaced by others that have less
   * @param options.withClocks whether clocks can jump; only for histories
   */
  static async start(
    kind: 'one redis' | 'cluster' = 'one redis',
    settings: Record<string, string> = {},
    {
      forHistories = false,
      withClocks = false,
    }: { readonly forHistories?: boolean; readonly withClocks?: boolean } = {},
  ): Promise<Stack> {
    const build = buildSources();
    const clocks = withClocks ? Clocks.open() : null;
    const clock = (whose: Clocked): Record<string, string> => clocks?.env(whose) ?? {};
    const cluster = kind === 'cluster' ? await FaultCluster.start(clock('redis')) : null;
    const redis = cluster === null ? await startRedis(forHistories, clock('redis')) : null;
    const oneRedis = redis instanceof RedisPair ? redis.master : redis;
    const redisUrl = (cluster ?? (oneRedis as TestRedis)).url;
    const postgres = forHistories ? await PostgresPair.start(clock('postgres')) : await startTestPostgres();
    const { port: postgresPort, url: postgresUrl } = postgres instanceof PostgresPair ? postgres.primary : postgres;
    const ports = { gateway: await freePort(), service: await freePort() };
    const metricsPorts = {
      gateway: await freePort(),
      writer: await freePort(),
      'second-writer': await freePort(),
    };
    const links = new Map<AnyLink, FaultProxy>();
    for (const name of [...LINKS, ...(forHistories ? HISTORY_LINKS : [])]) {
      const store = name.endsWith('-redis') ? oneRedis?.port : postgresPort;
      const target = { 'gateway-service': ports.service, 'caller-gateway': ports.gateway }[name as string] ?? store;
      if (target !== undefined) links.set(name, await FaultProxy.open(target));
    }
    const through = (link: AnyLink, url: string): string => links.get(link)?.through(url) ?? url;
    const environment = (who: keyof typeof metricsPorts): Record<string, string> => ({
      DATABASE_URL: through(`${who}-postgres`, postgresUrl),
      REDIS_URL: through(`${who}-redis`, redisUrl),
      HOST: '127.0.0.1',
      REDIS_SHARDS: String(cluster === null ? SHARDS : CLUSTER_SHARDS),
      // With 200 ms, six nodes that write each command to one disk seem silent now and then.
      REDIS_COMMAND_TIMEOUT_MS: cluster === null ? '200' : '500',
      INSTANCE_LEASE_SECONDS: String(LEASE_SECONDS),
      UPSTREAM_ALLOW_CIDRS: '127.0.0.0/8',
      ANONYMOUS_RATE_LIMIT: '1000000',
      DRAIN_SECONDS: '1',
      SECRETS_KEY: Buffer.alloc(32, 'a key').toString('base64'),
      METRICS_PORT: String(metricsPorts[who]),
      ...settings,
    });
    const main = path.join(build, 'main.js');
    const says = (role: string) => (output: string) =>
      output.split('\n').some((line) => line.includes(`"role":"${role}"`) && line.endsWith('"msg":"ready"}'));
    // Test files of one worker have one pid. Two stacks with the same log would each take the other's start for its own.
    const id = `${process.pid}-${++stacks}`;
    const seenFile = path.join(scratchDir(), `fault-seen-${id}`);
    const fixture = fileURLToPath(new URL('./fixtures/service.mjs', import.meta.url));
    const service = new Daemon({
      name: `fault-service-${id}`,
      args: [fixture, String(ports.service), seenFile],
      isReady: (output) => output.includes('listening'),
    });
    const newWriter = (who: 'writer' | 'second-writer'): Daemon =>
      new Daemon({
        name: `fault-${who}-${id}`,
        args: [main, 'writer'],
        env: { ...environment(who), ...clock('writer') },
        isReady: says('writer'),
      });
    const [writer, secondWriter] = [newWriter('writer'), newWriter('second-writer')];
    const gateway = new Daemon({
      name: `fault-gateway-${id}`,
      args: [main, 'gateway'],
      env: { ...environment('gateway'), ...clock('gateway'), PORT: String(ports.gateway), WORKERS: '2' },
      isReady: says('supervisor'),
    });
    await Promise.all([service.ensure(), writer.ensure().then(() => gateway.ensure())]);
    const migrations = readMigrations(fileURLToPath(new URL('../../migrations', import.meta.url)));
    const directEnv = {
      ...environment('gateway'),
      DATABASE_URL: through('test-postgres', postgresUrl),
      REDIS_URL: through('test-redis', redisUrl),
      REDIS_COMMAND_TIMEOUT_MS: cluster === null ? '5000' : '1000',
    };
    const config = loadConfig(directEnv);
    const stores = await openStores(config, { name: 'test', maxConnections: 4, migrations, log: QUIET });
    return new Stack({
      redis,
      cluster,
      postgres,
      links,
      service,
      writer,
      secondWriter,
      gateway,
      stores,
      seenFile,
      gatewayUrl: `http://127.0.0.1:${ports.gateway}`,
      metricsUrl: `http://127.0.0.1:${metricsPorts.gateway}/metrics`,
      directEnv,
      clocks,
    });
  }

  /** Runs `main.js accept-postgres`, and accepts what it lists. @returns what it printed, and its exit code */
  acceptPostgres() {
    return runAcceptPostgres({ env: { ...this.directEnv, LOG_LEVEL: 'error' } });
  }

  /** The workers that exist, whether running or stopped. */
  workers(): Worker[] {
    return this.#started().filter(({ pid }) => processIdentity(pid) !== null);
  }

  /** The workers that have ended. A starting worker does not count, although it has leases before it says that it is ready. */
  ended(): Worker[] {
    return this.#started().filter(({ pid }) => processIdentity(pid) === null);
  }

  #started(): Worker[] {
    const lines = this.gateway.output.split('\n').filter((line) => line.endsWith('"msg":"ready"}'));
    const ready = lines.map((line) => JSON.parse(line) as Partial<Worker>);
    return ready.flatMap(({ pid, instance }) =>
      pid === undefined || instance === undefined ? [] : [{ pid, instance }],
    );
  }

  /** The sum of gauges over all workers; null while a worker does not answer. */
  async gauges(names: readonly string[]): Promise<number | null> {
    const page = await this.#metrics();
    if (page === null) return null;
    const samples = page.split('\n').filter((line) => names.some((name) => line.startsWith(`${name}{`)));
    if (samples.length < names.length * this.workers().length) return null;
    return samples.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
  }

  /** Null: no answer in time. By itself `fetch` waits for 300 s. */
  async #metrics(): Promise<string | null> {
    try {
      return await (await fetch(this.#metricsUrl, { signal: AbortSignal.timeout(METRICS_MS) })).text();
    } catch (error) {
      if (error instanceof Error && error.name === 'TimeoutError') return null;
      throw error;
    }
  }

  /** What the gateway and the writer logged last, for the report of a failure. */
  lastLines(count: number): string {
    return [this.gateway, this.writer, this.secondWriter]
      .map(({ output }) => output.split('\n').slice(-count).join('\n'))
      .join('\n\n');
  }

  async stop(): Promise<void> {
    await this.gateway.stop();
    await this.writer.stop();
    await this.secondWriter.stop();
    await this.service.stop();
    await this.stores.close();
    for (const link of this.#links.values()) await link.close();
    await this.#redis?.stop();
    await this.cluster?.stop();
    await this.#postgres.stop();
  }
}

/** Everything that Redis has acknowledged is on its disk. */
const startRedis = (isPair: boolean, env: Readonly<Record<string, string>>): Promise<TestRedis | RedisPair> =>
  isPair ? RedisPair.start(env) : startTestRedis({ appendonly: true, appendfsync: 'always' });
