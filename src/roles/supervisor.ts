import type { Config, ProcessRole } from '../config/config.ts';
import { serveMetrics } from '../http/metrics-server.ts';
import { refuseTakenPort } from '../http/port.ts';
import type { Log } from '../observability/log.ts';
import { Metrics } from '../observability/metrics.ts';
import { Child } from '../supervisor/child.ts';
import { SUPERVISED } from '../supervisor/messages.ts';
import { Slot } from '../supervisor/slot.ts';
import { Supervisor } from '../supervisor/supervisor.ts';

/** How long a process may take to stop, for settlements and connections, after its calls' deadline. Then it is killed. */
const STOP_MARGIN_MS = 10_000;

type SupervisorRole = {
  /** Resolves when all processes serve. Rejects when a process cannot be started; then none is left running. */
  start(): Promise<void>;
  /** Drains the workers, then stops the writer. May be called in the middle of a start. */
  stop(): Promise<void>;
  /** Kills all processes at once. */
  kill(): void;
  /** Replaces all processes one by one. */
  roll(): Promise<void>;
};

/**
 * Sets up the supervisor of one or more gateway processes on one port and, for the role `all`, of a writer process. The supervisor
 * itself takes no calls and has no connection to the stores.
 *
 * Tested by test/integration/workers-lifecycle.test.ts and default-start.test.ts.
 *
 * @param options.entry  the file that each process runs
 */
export function createSupervisor(options: {
  readonly role: Extract<ProcessRole, 'all' | 'gateway'>;
  readonly entry: string;
  readonly config: Config;
  readonly log: Log;
}): SupervisorRole {
  const { role, entry, config, log } = options;
  const workers = Array.from({ length: config.workers }, (_, i) => {
    const name = String(i + 1);
    const stopTimeoutMs = config.drainSeconds * 1000 + STOP_MARGIN_MS;
    return new Slot({ name, fork: () => new Child(entry, ['gateway', SUPERVISED, name]), stopTimeoutMs, log });
  });
  const writer = new Slot({
    name: 'writer',
    fork: () => new Child(entry, ['writer', SUPERVISED]),
    stopTimeoutMs: STOP_MARGIN_MS,
    log,
  });
  const metrics = new Metrics();
  const supervisor = new Supervisor({ workers, writer: role === 'all' ? writer : null, metrics, log });
  let closeMetrics = (): void => {};
  const stop = async (): Promise<void> => {
    await supervisor.stop();
    closeMetrics();
  };
  return {
    start: async () => {
      const page = { contentType: metrics.contentType, render: () => supervisor.renderMetrics() };
      // The metrics port comes first. It cannot be shared, so when two supervisors start together, one of them fails here.
      closeMetrics = await serveMetrics(config.host, config.metricsPort, page);
      await refuseTakenPort(config.host, config.port);
      try {
        await supervisor.start();
      } catch (error) {
        await stop();
        throw error;
      }
      log.info({ port: config.port, metrics_port: config.metricsPort, workers: config.workers }, 'ready');
    },
    stop,
    kill: () => supervisor.kill(),
    roll: () => supervisor.roll(),
  };
}
