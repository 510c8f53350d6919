// @ts-check
// The settings that `npm start` itself reads from the environment. All others are passed on to the gateway unchanged.
// Tested by test/scripts/start.test.ts and test/scripts/redis-install.test.ts.

import path from 'node:path';
import { DRAIN_SECONDS } from '../../src/shared.mjs';
import { projectDir } from './dependencies.mjs';

/**
 * @typedef {object} Settings
 * @property {string} dataDir
 * @property {number} port
 * @property {number} metricsPort
 * @property {string | undefined} databaseUrl undefined: a local Postgres is started
 * @property {string | undefined} redisUrl undefined: a local Redis is started
 * @property {boolean} wantsCluster start a Redis Cluster in place of a single Redis
 * @property {boolean} wantsDemo
 * @property {number} drainSeconds how long the gateway may take to stop
 */

const usage = 'npm start has one option: npm start -- --cluster';

/**
 * @param {NodeJS.ProcessEnv} env
 * @param {readonly string[]} [args] the arguments of `npm start`
 * @returns {Settings}
 */
export function readSettings(env, args = []) {
  const wantsCluster = args.includes('--cluster');
  if (args.length > (wantsCluster ? 1 : 0)) throw new Error(usage);
  if (wantsCluster && env.REDIS_URL) throw new Error('REDIS_URL names a Redis, so --cluster has nothing to start');
  const port = readPort(env, 'PORT', 8080);
  const metricsPort = readPort(env, 'METRICS_PORT', 9464);
  if (port === metricsPort) throw new Error(`PORT and METRICS_PORT are both ${port}: they must differ`);
  const databaseUrl = env.DATABASE_URL || undefined;
  return {
    // Data in a cluster are laid out in another way, so they have a folder of their own.
    dataDir: wantsCluster && !env.DATA_DIR ? path.resolve(projectDir, '.data-cluster') : dataDirOf(env),
    wantsCluster,
    port,
    metricsPort,
    databaseUrl,
    redisUrl: env.REDIS_URL || undefined,
    wantsDemo: readDemo(env.DEMO, databaseUrl === undefined),
    // Not checked here, because the gateway checks it. The launcher only needs it to wait longer than the gateway does.
    drainSeconds: Number(env.DRAIN_SECONDS || DRAIN_SECONDS),
  };
}

/** @param {NodeJS.ProcessEnv} env */
export const dataDirOf = (env) => path.resolve(projectDir, env.DATA_DIR || '.data');

/** @param {NodeJS.ProcessEnv} env @param {string} name @param {number} fallback */
function readPort(env, name, fallback) {
  const text = env[name];
  if (text === undefined || text === '') return fallback;
  const port = Number(text);
  if (/^\d+$/.test(text) && port >= 1 && port <= 65_535) return port;
  throw new Error(`${name} must be a port from 1 to 65535, not '${text}'`);
}

/**
 * Whether to make a demo. By default only in a Postgres that `npm start` runs: no other database gets demo accounts unasked.
 * @param {string | undefined} text @param {boolean} databaseIsLocal
 */
function readDemo(text, databaseIsLocal) {
  if (text === undefined || text === '') return databaseIsLocal;
  if (text === 'on' || text === 'off') return text === 'on';
  throw new Error(`DEMO must be 'on' or 'off', not '${text}'`);
}

/**
 * The files below DATA_DIR.
 * @param {string} dataDir
 */
export const filesOf = (dataDir) => ({
  runDir: path.join(dataDir, 'run'),
  postgresDir: path.join(dataDir, 'postgres'),
  redisDir: path.join(dataDir, 'redis'),
  /** Ports and passwords that local stores keep from start to start. */
  stores: path.join(dataDir, 'stores.json'),
  /** Addresses and pids of the running stack. The file exists only while all of the stack can be used. */
  stack: path.join(dataDir, 'stack.json'),
  demo: path.join(dataDir, 'demo.json'),
  demoPartial: path.join(dataDir, 'demo.partial.json'),
  log: (/** @type {string} */ name) => path.join(dataDir, 'logs', `${name}.log`),
});
