// @ts-check
// The stage of a scenario: stores, the service behind the peers, and the peers themselves. Each is started when it is first asked
// for. All of it is in one scratch folder, whose helper stops every process and removes the folder, however the benchmark ends
// (see scripts/local/scratch.mjs).

import path from 'node:path';
import { fileURLToPath } from 'node:url';
import postgres from 'postgres';
import { projectDir } from '../../scripts/local/dependencies.mjs';
import { askPort, freePort } from '../../scripts/local/ports.mjs';
import { startPostgres } from '../../scripts/local/postgres.mjs';
import { pollUntil, spawnOwned, waitUntilReady } from '../../scripts/local/processes.mjs';
import { startRedis } from '../../scripts/local/redis.mjs';
import { startRedisCluster } from '../../scripts/local/redis-cluster.mjs';

/**
 * @typedef {import('../measure/proc.mjs').Watched} Watched
 *
 * @typedef {object} StageOptions
 * @property {number} workers processes of each proxy
 *
 * @typedef {object} Store
 * @property {string} url
 * @property {number} port
 * @property {Watched} watched
 *
 * @typedef {object} RedisForm one Redis, with or without a replica, or a cluster
 * @property {string} url as REDIS_URL names it
 * @property {readonly string[]} masterUrls
 * @property {Watched[]} masters
 * @property {Watched[]} replicas
 */

// As production has it.
const durable = /** @type {const} */ ({ appendonly: true, appendfsync: 'everysec' });

export class Stage {
  /** @type {Map<string, Promise<any>>} */
  #parts = new Map();
  /** @type {Watched[]} */
  #watched = [];
  /** @type {{ name: string, logFile: string, hasExited: () => boolean }[]} */
  #started = [];

  /**
   * @param {import('../../scripts/local/scratch.mjs').Scratch} scratch
   * @param {StageOptions} options
   */
  constructor(scratch, options) {
    this.scratch = scratch;
    this.options = options;
  }

  /** All processes that were started here. What else runs on the machine does not belong to the benchmark. @returns {readonly Watched[]} */
  get watched() {
    return this.#watched;
  }

  /** The processes that were started here and have ended. */
  ended() {
    return this.#started.filter(({ hasExited }) => hasExited());
  }

  /** @param {string} name */
  file(name) {
    return path.join(this.scratch.dir, name);
  }

  /**
   * Starts a part when it is asked for the first time. Later calls get the same part.
   * @template T
   * @param {string} name
   * @param {() => Promise<T>} start
   * @returns {Promise<T>}
   */
  once(name, start) {
    this.scratch.assertInUse();
    let part = this.#parts.get(name);
    if (part === undefined) {
      part = start();
      this.#parts.set(name, part);
    }
    return part;
  }

  /**
   * Starts a process and waits until it is ready.
   * @param {object} options
   * @param {string} options.name
   * @param {string} options.command
   * @param {readonly string[]} options.args
   * @param {NodeJS.ProcessEnv} [options.env]
   * @param {Watched['extent']} [options.extent]
   * @param {NodeJS.Signals} [options.stopSignal]
   * @param {() => Promise<boolean>} options.isReady
   * @returns {Promise<Watched>}
   */
  async start({ name, isReady, extent = 'process', ...program }) {
    this.scratch.assertInUse();
    const logFile = this.file(`${name}.log`);
    const child = spawnOwned({ ...program, name, logFile, runDir: this.scratch.runDir, cwd: projectDir });
    this.#started.push({ name, logFile, hasExited: child.hasExited });
    await waitUntilReady(child, isReady, { timeoutMs: 60_000, logFile });
    return this.#watch({ pid: child.pid, extent });
  }

  /** @param {Watched} watched */
  #watch(watched) {
    this.#watched.push(watched);
    return watched;
  }

  /** The service behind every peer. @returns {Promise<{ port: number }>} */
  upstream() {
    return this.once('upstream', async () => {
      const port = await freePort();
      const program = fileURLToPath(new URL('../upstream/server.mjs', import.meta.url));
      const isReady = () => answers(port, '/hello');
      await this.start({ name: 'upstream', command: process.execPath, args: [program, String(port)], isReady });
      return { port };
    });
  }

  /**
   * A new database in the one Postgres of the stage, which has the durability of production.
   * @param {string} name
   * @returns {Promise<Store>}
   */
  async database(name) {
    const server = await this.once('postgres', async () => {
      const started = await startPostgres({
        dataDir: this.file('postgres'),
        runDir: this.scratch.runDir,
        logFile: this.file('postgres.log'),
      });
      return { ...started, watched: this.#watch({ pid: started.pid, extent: 'tree' }) };
    });
    return this.once(`database ${name}`, async () => {
      const sql = postgres(server.url, { max: 1, onnotice: () => {} });
      await sql`CREATE DATABASE ${sql(name)}`;
      await sql.end();
      const url = new URL(server.url);
      url.pathname = `/${name}`;
      return { url: url.href, port: server.port, watched: server.watched };
    });
  }

  /**
   * A Redis for one peer only, so that its CPU is that of this peer's calls. It is append-only with a sync every second, as in
   * production.
   * @param {string} name
   * @returns {Promise<Store>}
   */
  redis(name) {
    return this.once(`redis ${name}`, async () => {
      const started = await startRedis({
        dir: this.file(`redis-${name}`),
        runDir: this.scratch.runDir,
        name: `redis-${name}`,
        ...durable,
      });
      return { url: started.url, port: started.port, watched: this.#watch({ pid: started.pid, extent: 'process' }) };
    });
  }

  /** The Redis of `redis(name)`, alone. @param {string} name @returns {Promise<RedisForm>} */
  async oneRedis(name) {
    const { url, watched } = await this.redis(name);
    return { url, masterUrls: [url], masters: [watched], replicas: [] };
  }

  /** The same with a replica. @param {string} name @returns {Promise<RedisForm>} */
  async redisWithReplica(name) {
    const one = await this.oneRedis(name);
    const replica = await this.redis(`${name}-replica`);
    const { port } = new URL(one.url);
    await askPort(replica.port, `REPLICAOF 127.0.0.1 ${port}\r\nQUIT\r\n`);
    const isThere = async () =>
      ((await askPort(Number(port), 'INFO replication\r\nQUIT\r\n')) ?? '').includes('state=online');
    if (!(await pollUntil(isThere, { timeoutMs: 30_000, intervalMs: 50 })))
      throw new Error(`the replica of ${name} did not connect in 30 s`);
    return { ...one, replicas: [replica.watched] };
  }

  /** Three masters with a replica each. @param {string} name @returns {Promise<RedisForm>} */
  redisCluster(name) {
    return this.once(`cluster ${name}`, async () => {
      const { url, nodes } = await startRedisCluster({
        dir: this.file(`cluster-${name}`),
        runDir: this.scratch.runDir,
        ...durable,
      });
      const watch = (/** @type {boolean} */ isReplica) =>
        nodes.filter((node) => node.isReplica === isReplica).map(({ pid }) => this.#watch({ pid, extent: 'process' }));
      const masterUrls = nodes.filter(({ isReplica }) => !isReplica).map((node) => node.url);
      return { url, masterUrls, masters: watch(false), replicas: watch(true) };
    });
  }
}

/**
 * Whether a local server answers 200 on this path.
 * @param {number} port
 * @param {string} urlPath
 */
export async function answers(port, urlPath) {
  const answer = await askPort(port, `GET ${urlPath} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n`);
  return /^HTTP\/1\.1 200 /.test(answer ?? '');
}
