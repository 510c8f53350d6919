import { fileURLToPath } from 'node:url';
import { type Config, ConfigError, loadConfig, type ProcessRole, parseRole } from './config/config.ts';
import { serveMetrics } from './http/metrics-server.ts';
import { loadUws } from './http/uws.ts';
import { createLog, type Log } from './observability/log.ts';
import { Metrics } from './observability/metrics.ts';
import { ForeignRedis } from './platform/installation.ts';
import { readMigrations } from './platform/migrate.ts';
import { startGateway } from './roles/gateway.ts';
import { openStores } from './roles/stores.ts';
import { createSupervisor } from './roles/supervisor.ts';
import { startWriter } from './roles/writer.ts';
import { type StopReason, SupervisorLink } from './supervisor/link.ts';
import { SUPERVISED } from './supervisor/messages.ts';
import { StartFailure } from './supervisor/supervisor.ts';

/** Connections to Postgres: account pages need few, calls none. */
const POSTGRES_CONNECTIONS = 10;
const STOP_SIGNALS = ['SIGINT', 'SIGTERM'] as const;

async function main(): Promise<void> {
  const [, entry, argument, supervised, worker] = process.argv;
  const role = parseRole(argument);
  const config = loadConfig(process.env);
  if (supervised === SUPERVISED) {
    const log = createLog(config.logLevel, worker === undefined ? { role } : { role, worker: Number(worker) });
    const link = new SupervisorLink(process, { obeysSigterm: role === 'gateway' });
    await run({ role, config, log, link, worker: Number(worker ?? 1) }, link.stopped);
  } else if (isSupervised(role, config)) {
    await supervise(role, config, entry as string);
  } else {
    // There is nothing to replace: a terminal that has gone ends what was started from it.
    const stopped = untilSignal([...STOP_SIGNALS, 'SIGHUP'], () => process.exit(1)).then((): StopReason => 'asked');
    await run({ role, config, log: createLog(config.logLevel, { role }), link: null, worker: 1 }, stopped);
  }
  process.exit(0);
}

/**
 * Gateway and writer are processes of their own. On one event loop, each flush to Postgres holds up the calls: at 1 000
 * calls/s an audit saw a p99 of 19 to 42 ms instead of 4 to 6.
 */
function isSupervised(role: ProcessRole, { workers, oneProcess }: Config): role is 'all' | 'gateway' {
  return (role === 'all' && !oneProcess) || (role === 'gateway' && workers > 1);
}

type Job = {
  readonly role: ProcessRole;
  readonly config: Config;
  readonly log: Log;
  /** null without a supervisor. */
  readonly link: SupervisorLink | null;
  /** The number of a gateway among those on its port, from 1. */
  readonly worker: number;
};

/** Works until it is told to stop, and stops. */
async function run(job: Job, told: Promise<StopReason>): Promise<void> {
  const { log } = job;
  exitOnProgrammerError(log);
  // Before anything is started: Node as process 1 of a container ignores signals nobody listens for.
  let isReady = false;
  const stopping = told.then((reason) => {
    if (!isReady) process.exit(0);
    return reason;
  });
  const stop = await start(job);
  isReady = true;
  const reason = await stopping;
  log.info({ reason }, 'draining');
  await stop(reason);
  log.info({}, 'stopped');
}

/** @returns what undoes it, in reverse order */
async function start({ role, config, log, link, worker }: Job): Promise<(reason: StopReason) => Promise<void>> {
  const migrations = readMigrations(fileURLToPath(new URL('./migrations', import.meta.url)));
  const stores = await openStores(config, { name: role, maxConnections: POSTGRES_CONNECTIONS, migrations, log });
  if (role === 'migrate') {
    await stores.close();
    process.exit(0);
  }
  const uws = loadUws(process.env);
  log.info({ variant: uws.variant, reason: uws.reason }, 'uWebSockets.js loaded');
  const metrics = new Metrics();
  // Before any call is taken: a port that somebody has ends this process here. Of several processes the supervisor answers
  // the scrapes.
  const closeMetrics = link === null ? await serveMetrics(uws, config.host, config.metricsPort, metrics) : () => {};
  const writer = role === 'gateway' ? null : await startWriter({ config, stores, metrics, log });
  const sharesPort = link !== null;
  const gateway =
    role === 'writer' ? null : await startGateway({ config, stores, uws, sharesPort, worker, metrics, log });
  link?.ready(metrics);
  // The instance is how its leases and holds are named in Redis, and `pid` how the system calls it.
  const names = { pid: process.pid, ...(gateway === null ? {} : { port: gateway.port, instance: gateway.instance }) };
  log.info({ ...names, ...(link === null ? { metrics_port: config.metricsPort } : {}) }, 'ready');
  return async (reason) => {
    if (gateway !== null) log.info(await gateway.stop({ handOver: reason === 'replaced' }), 'gateway drained');
    // The writer last: what the gateway settled on its way out is in Postgres before the process ends.
    await writer?.stop();
    closeMetrics();
    await stores.close();
  };
}

/** Several processes on one port, until a signal. */
async function supervise(role: 'all' | 'gateway', config: Config, entry: string): Promise<void> {
  // Each process would get a free port of its own, and another one after every restart.
  if (config.port === 0) throw new ConfigError(['PORT must be a fixed one, unless ONE_PROCESS is on']);
  const log = createLog(config.logLevel, { role: 'supervisor' });
  exitOnProgrammerError(log);
  const supervisor = createSupervisor({ role, entry, config, uws: loadUws(process.env), log });
  // In a terminal it says that the terminal was closed, and what was started there has to end.
  const stopsAtHangup = process.stdin.isTTY || process.stdout.isTTY;
  const signalled = untilSignal(stopsAtHangup ? [...STOP_SIGNALS, 'SIGHUP'] : STOP_SIGNALS, () => {
    supervisor.kill();
    process.exit(1);
  });
  if (!stopsAtHangup) process.on('SIGHUP', () => void supervisor.roll());
  await Promise.race([supervisor.start(), signalled]);
  await signalled;
  log.info({}, 'draining');
  await supervisor.stop();
  log.info({}, 'stopped');
}

/** A shell and the kernel both report a terminal that was closed, npm and the terminal a Ctrl-C: two within a moment are one. */
const SAME_SIGNAL_MS = 500;

/** @param onAgain called at a second signal of any of these, which has to end the process at once */
function untilSignal(signals: readonly NodeJS.Signals[], onAgain: () => void): Promise<void> {
  return new Promise((resolve) => {
    let askedAt = Number.POSITIVE_INFINITY;
    for (const signal of signals) {
      process.on(signal, () => {
        if (performance.now() - askedAt > SAME_SIGNAL_MS) onAgain();
        askedAt = Math.min(askedAt, performance.now());
        resolve();
      });
    }
  });
}

/** State after an exception nobody expected cannot be trusted with money: end, and let the sweep refund what is open. */
function exitOnProgrammerError(log: Log): void {
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
    process.on(event, (error: unknown) => {
      log.fatal({ err: error }, event);
      process.exit(1);
    });
  }
}

main().catch((error: unknown) => {
  // What an operator can mend by the message alone needs no stack.
  if (error instanceof ConfigError || error instanceof ForeignRedis || error instanceof StartFailure)
    process.stderr.write(`tollgate: ${error.message}\n`);
  else process.stderr.write(`tollgate: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  process.exit(1);
});
