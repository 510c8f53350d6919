// @ts-check
// A Redis of our own: on loopback, on a free port, durable unless told otherwise.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { askPort, portNear } from './ports.mjs';
import { findRecorded, killProcess, signalProcess, spawnOwned, stopProcess, waitUntilReady } from './processes.mjs';
import { findRedisServer } from './redis-install.mjs';

/**
 * @typedef {object} RedisOptions
 * @property {string} [dir] data folder; without it a temporary one, removed at stop()
 * @property {string} [runDir] where the process is written down; default: inside `dir`
 * @property {string} [name] name of that record
 * @property {string} [logFile]
 * @property {number} [port] taken when it is free, else another
 * @property {string} [password] asked of every client
 * @property {boolean} [appendonly] default true
 * @property {'always' | 'everysec' | 'no'} [appendfsync] default everysec
 * @property {readonly string[]} [args] more command-line options, e.g. ['--maxmemory', '100mb']
 *
 * @typedef {object} RunningRedis
 * @property {string} url
 * @property {number} port
 * @property {number} pid
 * @property {Promise<import('./processes.mjs').ExitStatus>} exited
 * @property {() => Promise<void>} stop orderly: the append-only file is complete on disk afterwards
 * @property {() => Promise<void>} kill SIGKILL, as a crash
 * @property {() => void} pause SIGSTOP: connections stay open, nobody answers
 * @property {() => void} resume
 */

const startAttempts = 5;
// A large append-only file is read back before the first answer.
const readyTimeoutMs = 60_000;

/**
 * Starts redis-server (or valkey-server) and waits until it answers. A Redis of the same record that was left over by
 * a killed launcher is stopped first.
 * @param {RedisOptions} [options]
 * @returns {Promise<RunningRedis>}
 */
export async function startRedis(options = {}) {
  const ownDir = options.dir === undefined ? mkdtempSync(path.join(tmpdir(), 'tollgate-redis-')) : undefined;
  const dir = options.dir ?? /** @type {string} */ (ownDir);
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const place = {
    dir,
    ownDir,
    runDir: options.runDir ?? path.join(dir, 'run'),
    name: options.name ?? 'redis',
    logFile: options.logFile ?? path.join(dir, 'redis.log'),
  };
  const leftover = findRecorded(place.runDir, place.name);
  if (leftover) await stopProcess(leftover);
  for (let attempt = 1; ; attempt += 1) {
    const port = await portNear(attempt === 1 ? options.port : undefined);
    try {
      return await startOn(port, place, options);
    } catch (error) {
      // Between choosing a port and listening on it, another program may take it.
      const lostPort = error instanceof Error && /address already in use/i.test(error.message);
      if (!lostPort || attempt === startAttempts) throw error;
    }
  }
}

/**
 * @param {number} port
 * @param {{ dir: string, ownDir: string | undefined, runDir: string, name: string, logFile: string }} place
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
 * In a file and not on the command line: everybody on the machine can read a command line.
 * @param {number} port
 * @param {RedisOptions} options
 */
function configuration(port, { appendonly = true, appendfsync = 'everysec', password }) {
  const lines = [
    'bind 127.0.0.1',
    `port ${port}`,
    'dir ./',
    'daemonize no',
    // Losing a key is losing money: never evict.
    'maxmemory-policy noeviction',
    `appendonly ${appendonly ? 'yes' : 'no'}`,
    `appendfsync ${appendfsync}`,
    // The append-only file is the durable copy; snapshots beside it would only cost time.
    'save ""',
    ...(password === undefined ? [] : [`requirepass ${password}`]),
  ];
  return `${lines.join('\n')}\n`;
}
