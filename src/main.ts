import { fileURLToPath } from 'node:url';
import { type Config, ConfigError, loadConfig, type ProcessRole, parseRole } from './config/config.ts';
import { serveMetrics } from './http/metrics-server.ts';
import { loadUws } from './http/uws.ts';
import { createLog, type Log } from './observability/log.ts';
import { Metrics } from './observability/metrics.ts';
import { readMigrations } from './platform/migrate.ts';
import { startGateway } from './roles/gateway.ts';
import { openStores } from './roles/stores.ts';
import { startWriter } from './roles/writer.ts';

/** Connections to Postgres: account pages need few, calls none. */
const POSTGRES_CONNECTIONS = 10;

async function main(): Promise<void> {
  const role = parseRole(process.argv[2]);
  const config = loadConfig(process.env);
  const log = createLog(config.logLevel, { role });
  exitOnProgrammerError(log);
  // Before anything is started: Node as process 1 of a container ignores signals nobody listens for.
  let isReady = false;
  const signalled = untilSignal().then(() => {
    if (!isReady) process.exit(0);
  });
  const stop = await start(role, config, log);
  isReady = true;
  await signalled;
  log.info({}, 'draining');
  await stop();
  log.info({}, 'stopped');
  process.exit(0);
}

/** @returns what undoes it, in reverse order */
async function start(role: ProcessRole, config: Config, log: Log): Promise<() => Promise<void>> {
  const migrations = readMigrations(fileURLToPath(new URL('./migrations', import.meta.url)));
  const stores = await openStores(config, { name: role, maxConnections: POSTGRES_CONNECTIONS, migrations, log });
  if (role === 'migrate') {
    await stores.close();
    process.exit(0);
  }
  const uws = loadUws(process.env);
  log.info({ variant: uws.variant, reason: uws.reason }, 'uWebSockets.js loaded');
  const metrics = new Metrics();
  const writer = role === 'gateway' ? null : await startWriter({ config, stores, metrics, log });
  const gateway = role === 'writer' ? null : await startGateway({ config, stores, uws, metrics, log });
  const closeMetrics = await serveMetrics(uws, config.host, config.metricsPort, metrics);
  log.info({ port: gateway?.port, metrics_port: config.metricsPort }, 'ready');
  return async () => {
    if (gateway !== null) log.info(await gateway.stop(), 'gateway drained');
    // The writer last: what the gateway settled on its way out is in Postgres before the process ends.
    await writer?.stop();
    closeMetrics();
    await stores.close();
  };
}

/** A second signal ends the process at once. */
function untilSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.once(signal, () => {
        resolve();
        process.once(signal, () => process.exit(1));
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
  if (error instanceof ConfigError) process.stderr.write(`tollgate: ${error.message}\n`);
  else process.stderr.write(`tollgate: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  process.exit(1);
});
