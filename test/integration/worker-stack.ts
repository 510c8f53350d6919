// A marketplace as `node dist/main.js` starts it: processes under a supervisor, with two workers by default.

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { processIdentity } from '../../scripts/local/identity.mjs';
import { freePort } from '../../scripts/local/ports.mjs';
import { type OwnedProcess, signalProcess, spawnOwned } from '../../scripts/local/processes.mjs';
import { loadConfig } from '../../src/config/config.ts';
import { readMigrations } from '../../src/platform/migrate.ts';
import { openStores } from '../../src/roles/stores.ts';
import { startMarketRedis } from '../support/redis-kind.ts';
import { QUIET } from '../support/store.ts';
import { createUsedDatabase, scratchDir, scratchRunDir } from '../support/stores.ts';
import { until } from '../support/wait.ts';
import { found, MarketClient, type MarketParts } from './market-client.ts';

export type LogLine = Readonly<Record<string, unknown>> & { readonly msg: string };

/** The environment variables that `main.js` reads. */
type Env = Readonly<Record<string, string>> & { readonly PORT: string; readonly METRICS_PORT: string };

let started = 0;

/** A supervisor in its own process, with its log in a file. */
export class SupervisorProcess {
  readonly child: OwnedProcess;
  readonly #logFile: string;

  /** @param build the folder that `buildSources` returned */
  constructor(build: string, env: Readonly<Record<string, string>>, role = 'all') {
    const name = `supervisor-${process.pid}-${started++}`;
    this.#logFile = path.join(scratchDir(), `${name}.log`);
    this.child = spawnOwned({
      runDir: scratchRunDir(),
      name,
      command: process.execPath,
      args: [path.join(build, 'main.js'), role],
      env: { PATH: process.env.PATH, ...env },
      logFile: this.#logFile,
    });
  }

  get output(): string {
    return readFileSync(this.#logFile, 'utf8');
  }

  /** The log lines of the supervisor and its children. */
  get log(): readonly LogLine[] {
    const lines = this.output.split('\n').filter((line) => line.startsWith('{') && line.endsWith('}'));
    return lines.map((line) => JSON.parse(line) as LogLine);
  }

  /** Waits until all processes are ready. */
  async ready(): Promise<void> {
    // A process without a supervisor logs `all`.
    const isWhole = (role: unknown): boolean => role === 'supervisor' || role === 'all';
    const isReady = (): boolean => this.log.some(({ role, msg }) => isWhole(role) && msg === 'ready');
    await until(() => isReady() || this.child.hasExited());
    if (!isReady()) throw new Error(`the supervisor ended at its start:\n${this.output}`);
  }

  /** Pids of all processes that became ready under this name (`1`, `2`, `writer`), oldest first. */
  pidsOf(name: string): number[] {
    const lines = this.log.filter(({ msg, process: of }) => msg === 'process is ready' && of === name);
    return lines.map(({ pid }) => pid as number);
  }

  pidOf(name: string): number {
    return this.pidsOf(name).at(-1) as number;
  }

  signal(signal: NodeJS.Signals, wholeGroup = false): void {
    signalProcess(this.child.record, signal, wholeGroup);
  }

  /** @returns its exit code */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    this.signal(signal);
    const { code } = await this.child.exited;
    this.child.forget();
    return code;
  }
}

export class WorkerStack extends MarketClient {
  supervisor: SupervisorProcess;
  readonly #build: string;
  readonly env: Env;
  readonly #cleanUp: () => Promise<void>;

  private constructor(
    parts: MarketParts & {
      supervisor: SupervisorProcess;
      build: string;
      env: Env;
      cleanUp: () => Promise<void>;
    },
  ) {
    super(parts);
    this.supervisor = parts.supervisor;
    this.#build = parts.build;
    this.env = parts.env;
    this.#cleanUp = parts.cleanUp;
  }

  static async start(build: string, settings: Readonly<Record<string, string>> = {}): Promise<WorkerStack> {
    const [database, redis] = [await createUsedDatabase(), await startMarketRedis()];
    const env = {
      DATABASE_URL: database.url,
      REDIS_URL: redis.url,
      HOST: '127.0.0.1',
      PORT: String(await freePort()),
      METRICS_PORT: String(await freePort()),
      WORKERS: '2',
      UPSTREAM_ALLOW_CIDRS: '127.0.0.0/8',
      TRUSTED_PROXY_HOPS: '1',
      ANONYMOUS_RATE_LIMIT: '20',
      // As in marketplace.ts.
      REDIS_COMMAND_TIMEOUT_MS: '5000',
      ...settings,
    };
    const supervisor = new SupervisorProcess(build, env);
    await supervisor.ready();
    const migrations = readMigrations(fileURLToPath(new URL('../../migrations', import.meta.url)));
    const stores = await openStores(loadConfig(env), { name: 'test', maxConnections: 3, migrations, log: QUIET });
    const baseUrl = `http://127.0.0.1:${env.PORT}`;
    const cleanUp = async (): Promise<void> => {
      await stores.close();
      await redis.release();
      await database.drop();
    };
    return new WorkerStack({ ...(await found(baseUrl)), baseUrl, stores, supervisor, build, env, cleanUp });
  }

  /** Starts the supervisor again on the same stores and ports. */
  async startAgain(): Promise<void> {
    this.supervisor = new SupervisorProcess(this.#build, this.env);
    await this.supervisor.ready();
  }

  /** All samples of a metric, by their `worker` label. */
  async samples(name: string): Promise<ReadonlyMap<string, number>> {
    const page = await (await fetch(`http://127.0.0.1:${this.env.METRICS_PORT}/metrics`)).text();
    const samples = new Map<string, number>();
    for (const line of page.split('\n').filter((text) => text.startsWith(`${name}{`))) {
      const worker = /worker="(\w+)"/.exec(line)?.[1] ?? 'none';
      samples.set(worker, (samples.get(worker) ?? 0) + Number(line.split(' ').at(-1)));
    }
    return samples;
  }

  /** Waits until every worker knows a service that was made on another worker. Each worker learns of it by itself. */
  async listedEverywhere(proxyPath: string): Promise<void> {
    // Each request uses its own connection. All 40 miss one of two workers once in 10^12 times.
    const url = this.baseUrl + proxyPath.replace('proxy', 'services');
    let address = 0;
    const ask = async (): Promise<boolean> => {
      // Each from its own address, because one address may not send this many requests.
      const from = `198.18.${address >> 8}.${address++ & 255}`;
      return (await fetch(url, { headers: { Connection: 'close', 'X-Forwarded-For': from } })).ok;
    };
    await until(async () => (await Promise.all(Array.from({ length: 40 }, ask))).every(Boolean));
  }

  async stop(): Promise<void> {
    if (!this.supervisor.child.hasExited()) await this.supervisor.stop();
    await this.#cleanUp();
  }
}

/** Whether a process with this pid runs. A zombie does not count: orphans stay zombies until process 1 reaps them. */
export const isAlive = (pid: number): boolean => processIdentity(pid) !== null;
