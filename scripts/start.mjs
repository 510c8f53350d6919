// @ts-check
// `npm start`: from a bare clone to a running marketplace. It installs packages, builds, starts a local Postgres and Redis where
// none are configured, serves, and makes a demo on the first start. Ctrl-C stops everything that it started.

import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { demoCommands, demoKeys } from './demo/commands.mjs';
import { checkNodeVersion, ensureBuilt, ensureDependencies } from './local/dependencies.mjs';
import { readJson } from './local/files.mjs';
import { takeLock } from './local/lock.mjs';
import { freePort, isPortFree } from './local/ports.mjs';
import { lastLines } from './local/processes.mjs';
import { ensureRedisServer } from './local/redis-install.mjs';
import { filesOf, readSettings } from './local/settings.mjs';
import { Stack, stopLeftovers } from './local/stack.mjs';

/** @typedef {import('./local/settings.mjs').Settings} Settings */

/** @param {string} line */
const say = (line) => console.log(line);

// If the reader of our output leaves (`npm start | head`), the stack goes on. Without a listener the write error would end it.
process.stdout.on('error', () => {});

// At a Ctrl-C both the terminal and npm send us the signal. Signals within this time after the first count as the same keystroke.
// A later signal means that the user presses Ctrl-C again, to cut the calls under way.
const sameKeystrokeMs = 500;

class Stopped extends Error {}

/**
 * Listens for signals that ask for a stop. The first one resolves `requested`. Those after `sameKeystrokeMs` call `onAgain`.
 * @param {() => void} onAgain
 */
function listenForStop(onAgain) {
  let requestedAt = 0;
  let isRequested = false;
  /** @type {(value: undefined) => void} */
  let resolve;
  /** @type {Promise<undefined>} */
  const requested = new Promise((resolve_) => {
    resolve = resolve_;
  });
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
    process.on(signal, () => {
      if (!isRequested) {
        isRequested = true;
        requestedAt = performance.now();
        resolve(undefined);
      } else if (performance.now() - requestedAt > sameKeystrokeMs) onAgain();
    });
  }
  const throwIfRequested = () => {
    if (isRequested) throw new Stopped();
  };
  return { requested, throwIfRequested };
}

/** @param {Settings} settings */
async function prepare(settings) {
  // Mode 711: other users may pass through the folder, because Postgres may run as another user and its data are in there. Each
  // file that contains a secret is closed to other users.
  mkdirSync(settings.dataDir, { recursive: true, mode: 0o711 });
  const { runDir, stack } = filesOf(settings.dataDir);
  const unlock = await takeLock(runDir, (pid) => {
    const running = readJson(stack);
    const where = running === null ? 'it is starting or stopping' : `it serves ${running.base_url}`;
    return `Tollgate already runs with the data in ${settings.dataDir} (process ${pid}, ${where})`;
  });
  try {
    await stopLeftovers(settings.dataDir, say);
    await refuseBusyPort('PORT', settings.port);
    await refuseBusyPort('METRICS_PORT', settings.metricsPort);
    ensureDependencies(say);
    ensureBuilt(say);
    if (settings.redisUrl === undefined) ensureRedisServer(say);
  } catch (error) {
    unlock();
    throw error;
  }
  return unlock;
}

/** @param {string} name @param {number} port */
async function refuseBusyPort(name, port) {
  if (await isPortFree(port)) return;
  throw new Error(`Port ${port} is taken by another program. Choose a free one: ${name}=${await freePort()} npm start`);
}

/**
 * @param {Stack} stack
 * @param {Settings} settings
 * @param {() => void} throwIfStopped called between the steps
 */
async function startAll(stack, settings, throwIfStopped) {
  say(`Starting with the data in ${settings.dataDir}`);
  const { databaseUrl, redisUrl } = await stack.startStores();
  throwIfStopped();
  const { bootstrapToken, env } = gatewayEnvironment(settings, databaseUrl, redisUrl, stack.hasDemo);
  if (settings.databaseUrl === undefined) env.SECRETS_KEY ||= stack.secretsKey();
  const gateway = await stack.startGateway(env, throwIfStopped);
  if (settings.wantsDemo) await showDemo(stack, bootstrapToken);
  else say(`\nTollgate serves ${stack.baseUrl}`);
  throwIfStopped();
  stack.announce(databaseUrl, redisUrl);
  say(
    `\nLogs: ${stack.logFile('*')}\nCtrl-C waits for calls under way, then stops everything. The data stay for the next start.`,
  );
  return gateway;
}

/** @param {Settings} settings @param {string} databaseUrl @param {string} redisUrl @param {boolean} hasDemo */
function gatewayEnvironment(settings, databaseUrl, redisUrl, hasDemo) {
  /** @type {NodeJS.ProcessEnv} */
  const env = {
    ...process.env,
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    PORT: String(settings.port),
    METRICS_PORT: String(settings.metricsPort),
  };
  // The demo's services, and others that are tried out here, listen on loopback. By default no listing may point there, so
  // this allows it. Then everybody who reaches the gateway's port can reach all of this machine's loopback through it. So the gateway
  // itself listens on loopback only, unless HOST says otherwise.
  if (env.UPSTREAM_ALLOW_CIDRS === undefined && (settings.databaseUrl === undefined || settings.wantsDemo)) {
    env.UPSTREAM_ALLOW_CIDRS = '127.0.0.0/8';
    env.HOST ||= '127.0.0.1';
  }
  // Who tries out the demo waits a minute for an announced price, and not a day.
  if (settings.wantsDemo) env.PRICE_NOTICE_SECONDS ||= '60';
  // With a token nobody else on this machine can become the first admin while the demo is being made. And if an earlier start was
  // interrupted before it saved the admin's secret, the token allows this start to make another admin.
  if (settings.wantsDemo && !hasDemo) env.ADMIN_BOOTSTRAP_TOKEN ||= randomBytes(24).toString('base64url');
  return { env, bootstrapToken: env.ADMIN_BOOTSTRAP_TOKEN };
}

/** @param {Stack} stack @param {string | undefined} bootstrapToken */
async function showDemo(stack, bootstrapToken) {
  try {
    const demo = await stack.startDemo(bootstrapToken);
    say(
      `\nTollgate serves ${stack.baseUrl}\n\nOpen it in a browser. To sign in to its console, use one of these keys:\n\n` +
        `${demoKeys(demo)}\n\nOr paste these commands into a shell:\n\n${demoCommands(demo)}`,
    );
  } catch (error) {
    // The marketplace works without its demo, and the next start tries again to make it.
    say(`\nTollgate serves ${stack.baseUrl}, but without its demo: ${messageOf(error)}`);
  }
}

/** @param {unknown} error */
const messageOf = (error) => (error instanceof Error ? error.message : String(error));

/** @param {string} name of a process that ended by itself */
const afterwards = (name) =>
  /^redis-\d+$/.test(name)
    ? 'If it was a master, its replica takes over in a few seconds. The next npm start starts it again'
    : 'Stop, and run npm start again';

/** @param {Stack} stack @param {import('./local/processes.mjs').OwnedProcess} gateway @param {Promise<undefined>} stop */
async function serveUntilStopped(stack, gateway, stop) {
  let stopping = false;
  stack.onExit((name, { code, signal }) => {
    if (!stopping && name !== 'gateway')
      say(`${name} has ended (${signal ?? `exit code ${code}`}). ${afterwards(name)}`);
  });
  const ended = await Promise.race([stop, gateway.exited]);
  stopping = true;
  if (ended === undefined) return say('\nStopping: waiting for calls under way (press Ctrl-C again to cut them)');
  const logFile = stack.logFile('gateway');
  throw new Error(`The gateway ended by itself (${ended.signal ?? `exit code ${ended.code}`}).\n${lastLines(logFile)}`);
}

async function main() {
  checkNodeVersion();
  const settings = readSettings(process.env, process.argv.slice(2));
  const unlock = await prepare(settings);
  const stack = new Stack(settings);
  const { requested, throwIfRequested } = listenForStop(() => {
    say('Stopping at once: calls under way are cut');
    stack.hurry();
  });
  try {
    const gateway = await startAll(stack, settings, throwIfRequested);
    await serveUntilStopped(stack, gateway, requested);
  } catch (error) {
    if (!(error instanceof Stopped)) throw error;
  } finally {
    await stack.stop();
    unlock();
  }
  say('Stopped');
}

main().catch((error) => {
  console.error(messageOf(error));
  process.exitCode = 1;
});
