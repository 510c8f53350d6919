import { serveMetrics } from '../http/metrics-server.js';
import { refuseTakenPort } from '../http/port.js';
import { Metrics } from '../observability/metrics.js';
import { Child } from '../supervisor/child.js';
import { SUPERVISED } from '../supervisor/messages.js';
import { Slot } from '../supervisor/slot.js';
import { Supervisor } from '../supervisor/supervisor.js';
/** How long a process may take to stop, for settlements and connections, after its calls' deadline. Then it is killed. */
const STOP_MARGIN_MS = 10_000;
/**
 * Sets up the supervisor of one or more gateway processes on one port and, for the role `all`, of a writer process. The supervisor
 * itself takes no calls and has no connection to the stores.
 *
 * Tested by test/integration/workers-lifecycle.test.ts and default-start.test.ts.
 *
 * @param options.entry  the file that each process runs
 */
export function createSupervisor(options) {
    const { role, entry, config, uws, log } = options;
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
    let closeMetrics = () => { };
    const stop = async () => {
        await supervisor.stop();
        closeMetrics();
    };
    return {
        start: async () => {
            const page = { contentType: metrics.contentType, render: () => supervisor.renderMetrics() };
            // The metrics port comes first. It cannot be shared, so when two supervisors start together, one of them fails here.
            closeMetrics = await serveMetrics(uws, config.host, config.metricsPort, page);
            await refuseTakenPort(uws, config.host, config.port);
            try {
                await supervisor.start();
            }
            catch (error) {
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
//# sourceMappingURL=supervisor.js.map