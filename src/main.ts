import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { helpText, parseCommand } from './config/commands.ts';
import { type Config, ConfigError, loadConfig, type ProcessRole } from './config/config.ts';
import { serveMetrics } from './http/metrics-server.ts';
import { loadUws } from './http/uws.ts';
import type { AccessLog } from './observability/access-log.ts';
import { createLog, type Log } from './observability/log.ts';
import { Metrics } from './observability/metrics.ts';
import { ForeignRedis } from './platform/installation.ts';
import { type Migration, readMigrations } from './platform/migrate.ts';
import { StartRefused } from './platform/start-refused.ts';
import type { Gateway } from './roles/gateway.ts';
import { createSupervisor } from './roles/supervisor.ts';
import type { Writer } from './roles/writer.ts';
import { type StopReason, SupervisorLink } from './supervisor/link.ts';
import { SUPERVISED } from './supervisor/messages.ts';
import { StartFailure } from './supervisor/supervisor.ts';

/** Maximum connections to Postgres per process. Account pages need few, and calls need none. When all are busy, a query waits. */
const POSTGRES_CONNECTIONS = 10;
const STOP_SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/**
 * The program: `main.js [command]`; `helpText` has the commands. Tested by
 * test/integration/default-start.test.ts, single-process.test.ts, workers-lifecycle.test.ts and operators.test.ts.
 *
 * Each command loads only the modules that it needs: each start of a process pays for them in CPU and memory, and the supervisor
 * starts three processes or more.
 */
async function main(): Promise<void> {
  const [, entry, argument, supervised, worker] = process.argv;
  const command = parseCommand(argument);
  if (command === 'help') {
    process.stdout.write(`${helpText()}\n`);
    return;
  }
  if (command === 'create-admin') {
    const { createAdminKey } = await import('./roles/create-admin.ts');
    const text = await createAdminKey(process.env.DATABASE_URL, knownMigrations(), process.argv.slice(3));
    // Not followed by an exit, which could lose output that a pipe has not taken yet.
    process.stdout.write(`${text}\n`);
    return;
  }
  if (command === 'rebuild-sums') {
    const { rebuildAllSums } = await import('./roles/rebuild-sums.ts');
    return rebuildAllSums(process.env.DATABASE_URL, knownMigrations(), (line) => process.stdout.write(`${line}\n`));
  }
  if (command === 'reshard') return reshardInstallation(loadConfig(process.env), process.argv.slice(3));
  if (command === 'accept-postgres') return acceptOlderPostgres(loadConfig(process.env), process.argv.slice(3));
  const role: ProcessRole = command;
  const config = loadConfig(process.env);
  if (supervised === SUPERVISED) {
    const fields = worker === undefined ? { role } : { role, worker: Number(worker) };
    const log = createLog(config.logLevel, fields);
    const link = new SupervisorLink(process, { obeysSigterm: role === 'gateway' });
    await run({ role, config, log, fields, link, worker: Number(worker ?? 1) }, link.stopped);
  } else if (isSupervised(role, config)) {
    await supervise(role, config, entry as string);
  } else {
    // SIGHUP also ends this process: it has no children to replace, and a closed terminal must end what was started in it.
    const stopped = untilSignal([...STOP_SIGNALS, 'SIGHUP'], () => process.exit(1)).then((): StopReason => 'asked');
    await run(
      { role, config, log: createLog(config.logLevel, { role }), fields: { role }, link: null, worker: 1 },
      stopped,
    );
  }
  process.exit(0);
}

async function reshardInstallation(config: Config, options: readonly string[]): Promise<void> {
  const isTakenBack = options.join() === '--take-back';
  if (options.length > 0 && !isTakenBack) throw new ConfigError(['the only option of reshard is --take-back']);
  const [{ reshard, takeBackReshard }, { openStores }] = await Promise.all([
    import('./roles/reshard.ts'),
    import('./roles/stores.ts'),
  ]);
  const log = createLog(config.logLevel, { role: 'reshard' });
  const migrations = knownMigrations();
  const stores = await openStores(config, { name: 'reshard', maxConnections: 4, migrations, mayBeMoving: true, log });
  try {
    const text = isTakenBack ? await takeBackReshard(stores) : await reshard(stores, config);
    process.stdout.write(`${text}\n`);
  } finally {
    await stores.close();
  }
}

async function acceptOlderPostgres(config: Config, options: readonly string[]): Promise<void> {
  const [name, digest] = options;
  const isScript = name === '--yes' && /^[0-9a-f]+$/.test(digest ?? '') && options.length === 2;
  if (options.length > 0 && !isScript) {
    throw new ConfigError(['the only option of accept-postgres is --yes DIGEST, with the digest that it has printed']);
  }
  const [{ acceptPostgres }, { openStores }] = await Promise.all([
    import('./roles/accept-postgres.ts'),
    import('./roles/stores.ts'),
  ]);
  const log = createLog(config.logLevel, { role: 'accept-postgres' });
  const migrations = knownMigrations();
  const stores = await openStores(config, { name: 'accept-postgres', maxConnections: 4, migrations, log });
  const print = (text: string): void => {
    process.stdout.write(`${text}\n`);
  };
  try {
    print(await acceptPostgres(stores, { print, answer: async () => (isScript ? `yes ${digest}` : firstLine()) }));
  } finally {
    await stores.close();
  }
}

/** The first line of standard input; '' if it ends before. */
async function firstLine(): Promise<string> {
  for await (const line of createInterface({ input: process.stdin })) return line;
  return '';
}

/**
 * Whether the role runs as several processes under a supervisor. Gateway and writer are separate processes, because on one event
 * loop each flush to Postgres delays the calls: at 1 000 calls/s, the p99 of calls was 19 to 42 ms instead of 4 to 6.
 */
function isSupervised(role: ProcessRole, { workers, oneProcess }: Config): role is 'all' | 'gateway' {
  return (role === 'all' && !oneProcess) || (role === 'gateway' && workers > 1);
}

type Job = {
  readonly role: ProcessRole;
  readonly config: Config;
  readonly log: Log;
  /** The beginning of each line of the log. */
  readonly fields: Readonly<Record<string, string | number>>;
  /** The link to the supervisor; null if none has started this process. */
  readonly link: SupervisorLink | null;
  /** This gateway's number among those on its port, from 1. */
  readonly worker: number;
};

/** Starts the job's role, waits until `told` resolves, then drains and stops. */
async function run(job: Job, told: Promise<StopReason>): Promise<void> {
  const { log } = job;
  exitOnProgrammerError(log);
  // A process that is told to stop during its start ends at once. `told` listens for signals from the beginning: as process 1 of
  // a container, this process would never receive a signal that it does not listen for.
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

/** Starts everything that the role needs. @returns a function that stops all of it, in reverse order */
async function start({ role, config, log, fields, link, worker }: Job): Promise<(reason: StopReason) => Promise<void>> {
  const { openStores } = await import('./roles/stores.ts');
  const migrations = knownMigrations();
  const stores = await openStores(config, { name: role, maxConnections: POSTGRES_CONNECTIONS, migrations, log });
  if (role === 'migrate') {
    await stores.close();
    process.exit(0);
  }
  const metrics = new Metrics();
  // Opened before any call is accepted: if the metrics port is in use, this process ends here. Under a supervisor, only the
  // supervisor serves metrics.
  const closeMetrics = link === null ? await serveMetrics(config.host, config.metricsPort, metrics) : () => {};
  let writer: Writer | null = null;
  if (role !== 'gateway') {
    const { startWriter } = await import('./roles/writer.ts');
    writer = await startWriter({ config, stores, metrics, log });
  }
  let gateway: Gateway | null = null;
  let accessLog: AccessLog | null = null;
  if (role !== 'writer') {
    const uws = loadUws(process.env);
    log.info({ variant: uws.variant, reason: uws.reason }, 'uWebSockets.js loaded');
    const { startGateway } = await import('./roles/gateway.ts');
    accessLog = config.accessLog ? await startAccessLog(fields, log) : null;
    const sharesPort = link !== null;
    gateway = await startGateway({ config, stores, uws, sharesPort, worker, metrics, log, accessLog });
  }
  link?.ready(metrics);
  // `instance` names this gateway's leases and holds in Redis, `pid` names the process in the system.
  const names = { pid: process.pid, ...(gateway === null ? {} : { port: gateway.port, instance: gateway.instance }) };
  log.info({ ...names, ...(link === null ? { metrics_port: config.metricsPort } : {}) }, 'ready');
  return async (reason) => {
    if (gateway !== null) log.info(await gateway.stop({ handOver: reason === 'replaced' }), 'gateway drained');
    await accessLog?.stop();
    // The writer stops last, to store in Postgres what the gateway settled while it stopped.
    await writer?.stop();
    closeMetrics();
    await stores.close();
  };
}

async function startAccessLog(fields: Job['fields'], log: Log): Promise<AccessLog> {
  const { AccessLog } = await import('./observability/access-log.ts');
  return new AccessLog({ fields, log });
}

const knownMigrations = (): Migration[] => readMigrations(fileURLToPath(new URL('./migrations', import.meta.url)));

/** Runs the role as several processes until a signal comes, then stops them. */
async function supervise(role: 'all' | 'gateway', config: Config, entry: string): Promise<void> {
  // With port 0, each process would get its own free port, and another one after each restart.
  if (config.port === 0) throw new ConfigError(['PORT must not be 0, unless ONE_PROCESS is on']);
  const log = createLog(config.logLevel, { role: 'supervisor' });
  exitOnProgrammerError(log);
  const supervisor = createSupervisor({ role, entry, config, log });
  // In a terminal, SIGHUP means that the terminal was closed, so everything that was started in it must end. Without a terminal, an
  // operator sends it to have the processes replaced.
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

/**
 * Signals within this time of the first one count as the same signal. When a terminal is closed, both the shell and the kernel
 * send SIGHUP; for a Ctrl-C, both npm and the terminal send SIGINT.
 */
const SAME_SIGNAL_MS = 500;

/**
 * Resolves at the first of these signals.
 *
 * @param onAgain  called at a later signal, if that does not count as the same one; it has to end the process at once
 */
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

/**
 * Ends the process at an exception or a rejection that nobody caught: its state cannot be trusted with money any more. The sweep,
 * which the writer runs, refunds the calls that were open here.
 */
function exitOnProgrammerError(log: Log): void {
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
    process.on(event, (error: unknown) => {
      log.fatal({ err: error }, event);
      process.exit(1);
    });
  }
}

main().catch((error: unknown) => {
  // An error that an operator can fix is printed without its stack.
  const isMendable = [ConfigError, ForeignRedis, StartRefused, StartFailure].some((kind) => error instanceof kind);
  if (isMendable && error instanceof Error) process.stderr.write(`tollgate: ${error.message}\n`);
  else process.stderr.write(`tollgate: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  process.exit(1);
});
