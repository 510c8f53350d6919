// @ts-check
// The peers that are Tollgate: the built program with a Redis and a database of its own, set up through the public API and `seed`
// as an operator would do it.

import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { Cluster, Redis } from 'ioredis';
import { request } from '../../scripts/local/api.mjs';
import { projectDir } from '../../scripts/local/dependencies.mjs';
import { childPids } from '../../scripts/local/identity.mjs';
import { freePort } from '../../scripts/local/ports.mjs';
import { pollUntil } from '../../scripts/local/processes.mjs';
import { commandOf, treeOf } from '../measure/proc.mjs';
import { insertServices } from '../stage/catalog.mjs';
import { readKeys, writeAuthFile } from '../stage/keys.mjs';
import { answers } from '../stage/stage.mjs';
import { plantTrees } from '../stage/trees.mjs';
import { listing } from './peer.mjs';

/**
 * @typedef {import('./peer.mjs').PeerKind} PeerKind
 * @typedef {import('../stage/stage.mjs').Stage} Stage
 * @typedef {import('../stage/keys.mjs').KeySets} KeySets
 * @typedef {import('../../scripts/local/api.mjs').Key} Key
 */

const program = path.join('dist', 'main.js');
const seedProgram = path.join('dist', 'seed.js');
export const shards = Number(process.env.BENCH_SHARDS ?? 16);
// The writer may be behind by all events of a measurement if it had no processor to itself. It gets this long to store them; after
// that the measurement fails.
const drainTimeoutMs = 60_000;

/** @typedef {import('../stage/stage.mjs').RedisForm} RedisForm */

/**
 * @param {Stage} stage @param {string} name @param {RedisForm} [form] default: one Redis
 * @param {string} [dir] the checkout whose programs run there; default: this one
 */
export async function environment(stage, name, form, dir = projectDir) {
  const database = await stage.database(`bench_${name.replaceAll('-', '_')}`);
  const redis = form ?? (await stage.oneRedis(name));
  const [port, metricsPort] = [await freePort(), await freePort()];
  const env = {
    ...process.env,
    NODE_ENV: 'production',
    DATABASE_URL: database.url,
    REDIS_URL: redis.url,
    REDIS_SHARDS: String(shards),
    HOST: '127.0.0.1',
    PORT: String(port),
    METRICS_PORT: String(metricsPort),
    // As in production, whatever the user's shell has set.
    LOG_LEVEL: 'info',
    WORKERS: '1',
    ONE_PROCESS: 'off',
    UPSTREAM_ALLOW_CIDRS: '127.0.0.0/8',
    // One scenario opens thousands of streams, and the other peers have no such bound.
    UPSTREAM_MAX_CONNECTIONS: '20000',
    ANONYMOUS_RATE_LIMIT: '1000000',
  };
  return { name, dir, database, redis, port, metricsPort, env };
}

/** @typedef {Awaited<ReturnType<typeof environment>>} Installed */

/**
 * @typedef {object} Shape how the gateway runs
 * @property {'all' | 'gateway'} role
 * @property {number} workers gateway processes. If there are two or more, or in the role `all`, a supervisor starts them
 * @property {boolean} [oneProcess] gateway and writer share one process, without a supervisor
 * @property {'replica' | 'cluster'} [redis] default: one Redis
 * @property {number} [waitReplicas] REDIS_WAIT_REPLICAS
 * @property {boolean} [accessLog] ACCESS_LOG=on
 *
 * @param {Stage} stage @param {string} name @param {Shape} shape @param {Installed} installed
 */
async function startGateway(stage, name, shape, { dir, port, env }) {
  const { role, workers, oneProcess = false, waitReplicas = 0, accessLog = false } = shape;
  const gateway = await stage.start({
    name,
    command: process.execPath,
    args: [path.join(dir, program), role],
    env: {
      ...env,
      WORKERS: String(workers),
      ONE_PROCESS: oneProcess ? 'on' : 'off',
      ACCESS_LOG: accessLog ? 'on' : 'off',
      REDIS_WAIT_REPLICAS: String(waitReplicas),
    },
    // Includes the supervisor and all workers.
    extent: 'tree',
    isReady: () => answers(port, '/readyz'),
  });
  // The first worker to serve says that it is ready, so wait for the others.
  const areThere = () => treeOf(gateway.pid).length > workers;
  if (workers > 1 && !(await pollUntil(areThere, { timeoutMs: 10_000, intervalMs: 100 }))) {
    throw new Error(`${name}: WORKERS=${workers} started ${treeOf(gateway.pid).length} processes`);
  }
  return gateway;
}

/** Gateway and writer under their supervisor. @param {Stage} stage @param {Installed} installed */
export const startAll = (stage, installed) =>
  startGateway(stage, installed.name, { role: 'all', workers: 1 }, installed);

/** @param {Stage} stage @param {Installed} installed @param {number} [number] of several writers */
export async function startWriter(stage, { name, dir, env }, number = 1) {
  const metricsPort = await freePort();
  return stage.start({
    name: `${name}-writer-${number}`,
    command: process.execPath,
    args: [path.join(dir, program), 'writer'],
    env: { ...env, METRICS_PORT: String(metricsPort) },
    isReady: () => answers(metricsPort, '/metrics'),
  });
}

/** Runs a program of the project and waits for its end. @param {string} what @param {string[]} args @param {Installed} installed */
function runToEnd(what, args, { dir, env }) {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: dir, env, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${what} failed:\n${stdout}${stderr}`);
}

/** @param {Installed} installed */
export const runMigrations = (installed) => runToEnd('migrate', [program, 'migrate'], installed);

/** Makes the sums of the calls in the database. @param {Installed} installed */
export const rebuildSums = (installed) => runToEnd('rebuild-sums', [program, 'rebuild-sums'], installed);

/** @param {string} baseUrl @param {string} apiPath @param {Key | undefined} key @param {unknown} body */
async function post(baseUrl, apiPath, key, body) {
  const answer = await request('POST', `${baseUrl}/api/v1${apiPath}`, { body, ...(key === undefined ? {} : { key }) });
  if (answer.status === 201) return answer.body;
  throw new Error(`POST ${apiPath} answered ${answer.status}: ${JSON.stringify(answer.body)}`);
}

/** @param {string} baseUrl @param {number} upstreamPort @param {object} [more] fields @returns {Promise<string>} the path of its calls */
async function listService(baseUrl, upstreamPort, more = {}) {
  const provider = await post(baseUrl, '/keys', undefined, { owner_id: 'bench', role: 'provider' });
  const service = await post(baseUrl, '/services', provider, {
    name: 'bench',
    description: 'The service behind every peer of the benchmark',
    endpoint: `http://127.0.0.1:${upstreamPort}/`,
    price: listing.price,
    free_calls: listing.freeCalls,
    category: 'data',
    timeout_seconds: 300,
    ...more,
  });
  return `/api/v1/proxy/${service.id}/`;
}

/** @param {Stage} stage @param {string} name @param {Installed} installed @param {KeySets} keySets */
export async function seed(stage, name, installed, keySets) {
  /** @type {Record<string, string>} */
  const authFiles = {};
  for (const [setName, { count, rateLimit, balanceUsd, levels = 0 }] of Object.entries(keySets)) {
    const out = stage.file(`${name}-${setName}.ndjson`);
    const numbers = ['--buyers', count, '--balance', balanceUsd, '--rate-limit', rateLimit].map(String);
    runToEnd('seed', [seedProgram, ...numbers, '--out', out], installed);
    const tree = { levels, rateLimit, balanceUsd };
    const keys = levels === 0 ? readKeys(out) : await plantTrees(installed.database.url, readKeys(out), tree);
    authFiles[setName] = writeAuthFile(stage.file(`${name}-${setName}.auth`), keys);
  }
  return authFiles;
}

/**
 * Waits until the writer has stored everything: the streams are empty only after the commit. What the writer does after the load
 * belongs to the load.
 * @param {Redis | Cluster} redis @param {readonly string[]} streams
 */
async function drained(redis, streams) {
  const isEmpty = async () => {
    const lengths = await Promise.all(streams.map((stream) => redis.xlen(stream)));
    return lengths.every((length) => length === 0);
  };
  if (await pollUntil(isEmpty, { timeoutMs: drainTimeoutMs, intervalMs: 50 })) return;
  throw new Error(`the writer did not store all usage events within ${drainTimeoutMs / 1000} s after the load`);
}

const failureCounter = /^tollgate_calls_(?:refused|refunded)_total\{.*\} [1-9]/;

/** The metrics of calls that were refused or refunded, by reason. @param {Installed} installed */
async function failures({ metricsPort }) {
  const { body } = await request('GET', `http://127.0.0.1:${metricsPort}/metrics`);
  return String(body)
    .split('\n')
    .filter((line) => failureCounter.test(line));
}

/**
 * Divides the processes of a default start: the writer on one side, all others, which are the proxy, on the other.
 * @param {import('../measure/proc.mjs').Watched} started
 * @returns {Pick<import('./peer.mjs').Peer['watched'], 'proxy' | 'writer'>}
 */
function partsOf(started) {
  const writer = childPids(started.pid).find((pid) => commandOf(pid).includes('writer'));
  if (writer === undefined) return { proxy: [started], writer: [] };
  const others = treeOf(started.pid).filter((pid) => pid !== writer);
  const each = (/** @type {number} */ pid) => ({ pid, extent: /** @type {const} */ ('process') });
  return { proxy: others.map(each), writer: [each(writer)] };
}

/** @param {Installed} installed @param {string} file */
function watchLoop(installed, file) {
  const preload = path.join(projectDir, 'bench', 'measure', 'loop-delay.mjs');
  Object.assign(installed.env, { NODE_OPTIONS: `--import ${preload}`, BENCH_LOOP_DELAY_FILE: file });
}

/** @param {Installed} installed @param {string} file */
function switchLog(installed, file) {
  const preload = path.join(projectDir, 'bench', 'measure', 'log-switch.mjs');
  Object.assign(installed.env, { NODE_OPTIONS: `--import ${preload}`, BENCH_LOG_SWITCH_FILE: file });
}

/** @typedef {Pick<Shape, 'redis' | 'waitReplicas'> & { dir?: string | undefined }} Stores */

/** Both peers with a cluster share one: two clusters would be twelve processes. @param {Stage} stage @param {string} name @param {Stores} how */
async function installedFor(stage, name, { redis, dir }) {
  if (redis === 'cluster') return environment(stage, 'tollgate-cluster', await stage.redisCluster('tollgate'));
  return environment(stage, name, redis === 'replica' ? await stage.redisWithReplica(name) : undefined, dir);
}

/** @param {Stores} how */
async function usageStreams({ redis }) {
  const { evenTags } = await import(pathToFileURL(path.join(projectDir, 'dist', 'platform/cluster/hash-tags.js')).href);
  const tags = redis === 'cluster' ? evenTags(shards) : Array.from({ length: shards }, (_, shard) => String(shard));
  return tags.map((/** @type {string} */ tag) => `usage:{${tag}}`);
}

/** When its server stops at the end of the scenario, this client gives up instead of connecting again for ever. @param {RedisForm} form */
function clientOf({ masterUrls }) {
  const [url = ''] = masterUrls;
  const options = { retryStrategy: () => null };
  const client =
    masterUrls.length === 1
      ? new Redis(url, options)
      : new Cluster([...masterUrls], { clusterRetryStrategy: () => null });
  client.on('error', () => {});
  return client;
}

/**
 * @param {string} kind
 * @param {Omit<Shape, 'workers'> & { workers?: number, dir?: string | undefined }} how workers: by default the number of the command line;
 *   dir: the checkout whose programs run, by default this one
 */
const startAs =
  (kind, { workers, ...how }) =>
  /** @type {PeerKind['start']} */
  async (stage, { keySets, services = 0, suffix = '', loopDelayFile, logSwitchFile, byUse = false }) => {
    const name = kind + suffix;
    const installed = await installedFor(stage, name, how);
    if (loopDelayFile !== undefined) watchLoop(installed, loopDelayFile);
    if (logSwitchFile !== undefined) switchLog(installed, logSwitchFile);
    if (services > 0) {
      runMigrations(installed);
      await insertServices(installed.database.url, services);
    }
    const upstream = await stage.upstream();
    const shape = { ...how, workers: workers ?? stage.options.workers };
    const started = await startGateway(stage, name, shape, installed);
    // Gateways on one cluster share its writer.
    const apart =
      how.role === 'all' ? null : await stage.once(`writer of ${installed.name}`, () => startWriter(stage, installed));
    const parts = apart === null ? partsOf(started) : { proxy: [started], writer: [apart] };
    const baseUrl = `http://127.0.0.1:${installed.port}`;
    const prefix = await listService(baseUrl, upstream.port);
    const max = { max_price: 4 * listing.price };
    const second = byUse ? { byUsePrefix: await listService(baseUrl, upstream.port, max) } : {};
    const authFiles = await seed(stage, name, installed, keySets);
    const { masterUrls, masters, replicas } = installed.redis;
    const streams = await usageStreams(how);
    const redis = clientOf(installed.redis);
    return {
      name,
      host: '127.0.0.1',
      port: installed.port,
      prefix,
      ...second,
      authFiles,
      redisUrls: masterUrls,
      watched: { ...parts, redis: masters, replicas, postgres: [installed.database.watched] },
      settled: () => drained(redis, streams),
      diagnose: () => failures(installed),
    };
  };

/** Only the gateway counts as the proxy; the writer is accounted for beside it. @type {PeerKind} */
export const tollgate = { title: 'Tollgate', missing: () => null, start: startAs('tollgate', { role: 'gateway' }) };

// A built checkout of another commit, which stands beside this one.
const before = process.env.BENCH_BEFORE;

/** @type {PeerKind} */
export const tollgateBefore = {
  title: 'Tollgate, before',
  missing: () => (before === undefined ? 'BENCH_BEFORE does not name a checkout' : null),
  start: startAs('tollgate-before', { role: 'gateway', dir: before }),
};

/** @type {PeerKind} */
export const tollgateAccessLog = {
  title: 'Tollgate, access log',
  missing: () => null,
  start: startAs('tollgate-access-log', { role: 'gateway', accessLog: true }),
};

/** As `npm start` and the image run it: a gateway and a writer under their supervisor. @type {PeerKind} */
export const tollgateDefault = {
  title: 'Tollgate, default start',
  missing: () => null,
  start: startAs('tollgate-default', { role: 'all' }),
};

/** Gateway and writer in one process. @type {PeerKind} */
export const tollgateAll = {
  title: 'Tollgate, one process',
  missing: () => null,
  start: startAs('tollgate-all', { role: 'all', workers: 1, oneProcess: true }),
};

/** Two workers on one port. @type {PeerKind} */
export const tollgateTwo = {
  title: 'Tollgate, two workers',
  missing: () => null,
  start: startAs('tollgate-two', { role: 'gateway', workers: 2 }),
};

/** Every trip waits until a replica has it. @type {PeerKind} */
export const tollgateReplica = {
  title: 'Tollgate, WAIT 1',
  missing: () => null,
  start: startAs('tollgate-replica', { role: 'gateway', redis: 'replica', waitReplicas: 1 }),
};

/** @type {PeerKind} */
export const tollgateCluster = {
  title: 'Tollgate, cluster',
  missing: () => null,
  start: startAs('tollgate-cluster', { role: 'gateway', redis: 'cluster' }),
};

/** @type {PeerKind} */
export const tollgateClusterReplica = {
  title: 'Tollgate, cluster, WAIT 1',
  missing: () => null,
  start: startAs('tollgate-cluster-replica', { role: 'gateway', redis: 'cluster', waitReplicas: 1 }),
};
