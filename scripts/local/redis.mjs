// @ts-check
// Starts and stops a local Redis: on loopback, on a free port, with an append-only file unless the options say otherwise.
// Tested by test/scripts/stores.test.ts.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { askPort, portNear } from './ports.mjs';
import { findRecorded, killProcess, signalProcess, spawnOwned, stopProcess, waitUntilReady } from './processes.mjs';
import { findRedisServer } from './redis-install.mjs';

/**
 * @typedef {object} RedisOptions
 * @property {string} [dir] data folder; without it a temporary one, which stop() removes
 * @property {string} [runDir] the folder for the record of the process; default: inside `dir`
 * @property {string} [name] name of that record
 * @property {string} [logFile]
 * @property {number} [port] the wanted port; if it is taken, any free one
 * @property {string} [password] every client needs it
 * @property {boolean} [appendonly] default true
 * @property {'always' | 'everysec' | 'no'} [appendfsync] default everysec
 * @property {readonly string[]} [args] further command-line options, e.g. ['--maxmemory', '100mb']
 * @property {Readonly<Record<string, string>>} [env] further environment variables
 *
 * @typedef {object} RunningRedis
 * @property {string} url
 * @property {number} port
 * @property {number} pid
 * @property {Promise<import('./processes.mjs').ExitStatus>} exited
 * @property {() => Promise<void>} stop an orderly end, after which the append-only file is complete on disk
 * @property {() => Promise<void>} kill SIGKILL, as a crash
 * @property {() => void} pause SIGSTOP: connections stay open, and get no replies
 * @property {() => void} resume
 */

const startAttempts = 5;
// Redis reads its append-only file before it answers, and that file may be large.
const readyTimeoutMs = 60_000;

/**
 * Starts redis-server (or valkey-server) and waits until it answers. If a killed launcher has left a Redis running that has
 * the same record, that Redis is stopped first.
 * @param {RedisOptions} [options]
 * @returns {Promise<RunningRedis>}
 */
export async function startRedis(options = {}) {
  const ownDir = options.dir === undefined ? mkdtempSync(path.join(tmpdir(), 'tollgate-redis-')) : undefined;
  const dir = options.dir ?? /** @type {string} */ (ownDir);
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const site = {
    dir,
    ownDir,
    runDir: options.runDir ?? path.join(dir, 'run'),
    name: options.name ?? 'redis',
    logFile: options.logFile ?? path.join(dir, 'redis.log'),
  };
  const leftover = findRecorded(site.runDir, site.name);
  if (leftover) await stopProcess(leftover);
  for (let attempt = 1; ; attempt += 1) {
    const port = await portNear(attempt === 1 ? options.port : undefined);
    try {
      return await startOn(port, site, options);
    } catch (error) {
      // Another program may have taken the port since it was chosen.
      const lostPort = error instanceof Error && /address already in use/i.test(error.message);
      if (!lostPort || attempt === startAttempts) throw error;
    }
  }
}

/**
 * @param {number} port
 * @param {{ dir: string, ownDir: string | undefined, runDir: string, name: string, logFile: string }} site
 * @param {RedisOptions} options
 * @returns {Promise<RunningRedis>}
 */
async function startOn(port, { dir, ownDir, runDir, name, logFile }, options) {
  const configFile = path.join(dir, 'redis.conf');
  writeFileSync(configFile, configuration(port, options), { mode: 0o600 });
  const child = spawnOwned({
    runDir,
    name,
    command: findRedisServer(),
    args: [configFile, ...(options.args ?? [])],
    cwd: dir,
    logFile,
    env: { ...process.env, ...options.env },
  });
  const authentication = options.password === undefined ? '' : `AUTH ${options.password}\r\n`;
  const isReady = async () => ((await askPort(port, `${authentication}PING\r\nQUIT\r\n`)) ?? '').includes('+PONG');
  try {
    await waitUntilReady(child, isReady, { timeoutMs: readyTimeoutMs, logFile });
  } catch (error) {
    await killProcess(child.record);
    child.forget();
    throw error;
  }
  const credentials = options.password === undefined ? '' : `:${options.password}@`;
  const cleanUp = () => {
    child.forget();
    if (ownDir !== undefined) rmSync(ownDir, { recursive: true, force: true });
  };
  return {
    url: `redis://${credentials}127.0.0.1:${port}`,
    port,
    pid: child.pid,
    exited: child.exited,
    stop: async () => {
      await stopProcess(child.record);
      cleanUp();
    },
    kill: async () => {
      await killProcess(child.record);
      cleanUp();
    },
    pause: () => signalProcess(child.record, 'SIGSTOP'),
    resume: () => signalProcess(child.record, 'SIGCONT'),
  };
}

/**
 * The text of the configuration file. The password is in a file and not on the command line, because every user of the machine
 * can read command lines.
 * @param {number} port
 * @param {RedisOptions} options
 */
function configuration(port, { appendonly = true, appendfsync = 'everysec', password }) {
  const lines = [
    'bind 127.0.0.1',
    `port ${port}`,
    'dir ./',
    'daemonize no',
    // A full Redis must not evict keys: an evicted wallet would be loaded again without what open calls have taken from it.
    'maxmemory-policy noeviction',
    `appendonly ${appendonly ? 'yes' : 'no'}`,
    `appendfsync ${appendfsync}`,
    // The append-only file is the durable copy, so snapshots would only cost time.
    'save ""',
    // A replica in a cluster needs the password of its master.
    ...(password === undefined ? [] : [`requirepass ${password}`, `masterauth ${password}`]),
  ];
  return `${lines.join('\n')}\n`;
}
