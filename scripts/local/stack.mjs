// @ts-check
// The local stack: Postgres, Redis, the gateway and the demo service. Every part that was started is stopped exactly once, even if
// the start fails half-way.
// Tested by test/scripts/start.test.ts and test/scripts/ready.test.ts.

import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import path from 'node:path';
import { ensureDemo } from '../demo/make.mjs';
import { isOk } from './api.mjs';
import { projectDir } from './dependencies.mjs';
import { readJson, writeJson } from './files.mjs';
import { startGateway } from './gateway.mjs';
import { portNear } from './ports.mjs';
import { startPostgres } from './postgres.mjs';
import { findRecorded, killProcess, spawnOwned, stopProcess, waitUntilReady } from './processes.mjs';
import { startRedis } from './redis.mjs';
import { startRedisCluster } from './redis-cluster.mjs';
import { filesOf } from './settings.mjs';

/**
 * @typedef {import('./processes.mjs').ExitStatus} ExitStatus
 *
 * @typedef {object} Part a process of the stack
 * @property {string} name
 * @property {number} pid
 * @property {Promise<ExitStatus>} exited
 * @property {() => Promise<unknown>} stop
 *
 * @typedef {object} StoreState the ports and passwords that stay the same from start to start, in DATA_DIR/stores.json
 * @property {{ port: number, password: string }} [postgres]
 * @property {{ port: number, password: string }} [redis]
 * @property {{ password: string, nodes: { port: number, busPort: number }[] }} [cluster]
 * @property {{ port: number }} [demo] the port that the demo listings name
 * @property {string} [secretsKey] the SECRETS_KEY of a local Postgres
 */

// The gateway stops first, because its calls under way need the demo service and the stores.
const stopOrder = ['gateway', 'demo', 'redis', 'postgres'];
const placeOf = (/** @type {Part} */ { name }) => stopOrder.indexOf(name.replace(/-\d+$/, ''));

// How much longer than DRAIN_SECONDS the launcher waits for the gateway before it kills it. The gateway should decide which calls
// to cut: its supervisor gives the workers DRAIN_SECONDS + 10 s, and then the writer 10 s. The other 10 s are a margin.
const drainMarginSeconds = 30;
const leftoverGraceMs = 3_000;

/**
 * Stops the gateway and the demo service that a killed launcher has left behind. (`startPostgres` and `startRedis` stop the stores.)
 * @param {string} dataDir
 * @param {(line: string) => void} say
 */
export async function stopLeftovers(dataDir, say) {
  const { runDir, stack } = filesOf(dataDir);
  for (const name of ['gateway', 'demo']) {
    const leftover = findRecorded(runDir, name);
    if (leftover === null) continue;
    say(`Stopping the ${name} process ${leftover.pid} that an earlier start left behind`);
    await stopProcess(leftover, { graceMs: leftoverGraceMs });
  }
  rmSync(stack, { force: true });
}

export class Stack {
  /** @type {Part[]} */
  #parts = [];
  #settings;
  #files;
  /** @type {StoreState} */
  #state;
  #hurry = new AbortController();

  /** @param {import('./settings.mjs').Settings} settings */
  constructor(settings) {
    this.#settings = settings;
    this.#files = filesOf(settings.dataDir);
    this.#state = readJson(this.#files.stores) ?? {};
  }

  get baseUrl() {
    return `http://127.0.0.1:${this.#settings.port}`;
  }

  /** @param {string} name */
  logFile(name) {
    return this.#files.log(name);
  }

  /** @param {(name: string, status: ExitStatus) => void} listener called when a part ends, for whatever reason */
  onExit(listener) {
    for (const { name, exited } of this.#parts) void exited.then((status) => listener(name, status));
  }

  async startStores() {
    const { databaseUrl = await this.#startPostgres() } = this.#settings;
    const { redisUrl = await (this.#settings.wantsCluster ? this.#startRedisCluster() : this.#startRedis()) } =
      this.#settings;
    return { databaseUrl, redisUrl };
  }

  async #startPostgres() {
    const known = this.#state.postgres;
    const postgres = await startPostgres({
      dataDir: this.#files.postgresDir,
      runDir: this.#files.runDir,
      logFile: this.#files.log('postgres'),
      ...known,
    });
    this.#parts.push({ ...postgres, name: 'postgres' });
    this.#remember({ postgres: { port: postgres.port, password: postgres.password } });
    return postgres.url;
  }

  async #startRedis() {
    const password = this.#state.redis?.password ?? randomBytes(18).toString('base64url');
    const redis = await startRedis({
      dir: this.#files.redisDir,
      runDir: this.#files.runDir,
      logFile: this.#files.log('redis'),
      password,
      ...(this.#state.redis === undefined ? {} : { port: this.#state.redis.port }),
    });
    this.#parts.push({ ...redis, name: 'redis' });
    this.#remember({ redis: { port: redis.port, password } });
    return redis.url;
  }

  async #startRedisCluster() {
    const password = this.#state.cluster?.password ?? randomBytes(18).toString('base64url');
    const cluster = await startRedisCluster({
      dir: this.#files.redisDir,
      runDir: this.#files.runDir,
      logDir: path.dirname(this.#files.log('redis')),
      password,
      ...(this.#state.cluster === undefined ? {} : { ports: this.#state.cluster.nodes }),
    });
    for (const [at, node] of cluster.nodes.entries()) this.#parts.push({ ...node, name: `redis-${at}` });
    this.#remember({ cluster: { password, nodes: cluster.nodes.map(({ port, busPort }) => ({ port, busPort })) } });
    return cluster.url;
  }

  /** The key for the secrets of listings, made at the first start: it lies beside the password of the Postgres that they are in. */
  secretsKey() {
    const secretsKey = this.#state.secretsKey ?? randomBytes(32).toString('base64');
    this.#remember({ secretsKey });
    return secretsKey;
  }

  /** @param {StoreState} change */
  #remember(change) {
    this.#state = { ...this.#state, ...change };
    writeJson(this.#files.stores, this.#state);
  }

  /** @param {NodeJS.ProcessEnv} env @param {() => void} throwIfStopped called while the gateway is not ready yet */
  async startGateway(env, throwIfStopped) {
    const { runDir, log } = this.#files;
    const graceMs = (this.#settings.drainSeconds + drainMarginSeconds) * 1000;
    const gateway = await startGateway({
      runDir,
      logFile: log('gateway'),
      baseUrl: this.baseUrl,
      readyFile: this.#files.stack,
      env,
      throwIfStopped,
    });
    this.#parts.push({
      ...gateway,
      stop: async () => {
        const stopping = stopProcess(gateway.record, { graceMs });
        const hurried = new Promise((resolve) => this.#hurry.signal.addEventListener('abort', resolve, { once: true }));
        if (this.#hurry.signal.aborted) await killProcess(gateway.record);
        await Promise.race([stopping, hurried.then(() => killProcess(gateway.record))]);
        gateway.forget();
      },
    });
    return gateway;
  }

  /** Whether the demo has been made already. */
  get hasDemo() {
    return readJson(this.#files.demo) !== null;
  }

  /** @param {string | undefined} bootstrapToken */
  async startDemo(bootstrapToken) {
    const registeredPort = this.#state.demo?.port;
    const demoPort = await this.#startDemoService(registeredPort);
    const demo = await ensureDemo({
      baseUrl: this.baseUrl,
      demoPort,
      registeredPort,
      demoFile: this.#files.demo,
      partialFile: this.#files.demoPartial,
      bootstrapToken,
    });
    this.#remember({ demo: { port: demoPort } });
    return demo;
  }

  /** @param {number | undefined} wantedPort */
  async #startDemoService(wantedPort) {
    const port = await portNear(wantedPort);
    const logFile = this.#files.log('demo');
    const service = spawnOwned({
      runDir: this.#files.runDir,
      name: 'demo',
      command: process.execPath,
      args: ['scripts/demo/service.mjs', String(port)],
      cwd: projectDir,
      logFile,
    });
    const stop = async () => {
      await stopProcess(service.record, { graceMs: 2_000 });
      service.forget();
    };
    this.#parts.push({ ...service, stop });
    await waitUntilReady(service, () => isOk(`http://127.0.0.1:${port}/healthz`), { timeoutMs: 10_000, logFile });
    return port;
  }

  /**
   * Writes the file that tells other commands where the stack is. It also tells the gateway that everything is ready: once the
   * file exists, `/readyz` answers 200.
   * @param {string} databaseUrl
   * @param {string} redisUrl
   */
  announce(databaseUrl, redisUrl) {
    const pids = Object.fromEntries(this.#parts.map(({ name, pid }) => [name, pid]));
    writeJson(this.#files.stack, {
      database_url: databaseUrl,
      redis_url: redisUrl,
      base_url: this.baseUrl,
      metrics_url: `http://127.0.0.1:${this.#settings.metricsPort}/metrics`,
      pids: { launcher: process.pid, ...pids },
    });
  }

  /** Makes `stop` kill the gateway instead of waiting for calls under way. The stores still end in order, so they lose nothing. */
  hurry() {
    this.#hurry.abort();
  }

  /** Stops everything that was started. If a part cannot be stopped, the others are stopped all the same. */
  async stop() {
    rmSync(this.#files.stack, { force: true });
    /** @type {string[]} */
    const failures = [];
    for (const part of this.#parts.splice(0).sort((a, b) => placeOf(a) - placeOf(b))) {
      await part.stop().catch((error) => failures.push(`${part.name}: ${error.message}`));
    }
    if (failures.length > 0) throw new Error(`not everything could be stopped: ${failures.join('; ')}`);
  }
}
