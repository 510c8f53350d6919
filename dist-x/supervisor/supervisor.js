import { labelled, renderFamilies } from '../observability/metrics.js';
/** A process could not be started: it ended, or was killed as too slow, before it was ready. Its own log says why. */
export class StartFailure extends Error {
}
/** Keeps the processes of one gateway running: starts them, restarts those that end by themselves, and stops them in order. */
export class Supervisor {
    #options;
    #slots;
    /** How many replacements of all processes were asked for, the one under way included; at most 2. */
    #rollsWanted = 0;
    #stopping = false;
    constructor(options) {
        this.#options = options;
        this.#slots = options.writer === null ? options.workers : [options.writer, ...options.workers];
        options.metrics.add(sources(this.#slots));
    }
    /** Resolves when all processes are ready. Rejects as soon as one cannot be started, because a gateway needs all of them. */
    async start() {
        const [first, ...others] = this.#slots;
        // The first process starts alone: it migrates the database, and a fault of the configuration is reported only once.
        await started(first);
        await Promise.all(others.map(started));
    }
    /** Stops the writer last, so that it stores in Postgres what the workers settle while they stop. */
    async stop() {
        this.#stopping = true;
        await Promise.all(this.#options.workers.map((slot) => slot.stop()));
        await this.#options.writer?.stop();
    }
    kill() {
        this.#stopping = true;
        for (const slot of this.#slots)
            slot.kill();
    }
    /**
     * Replaces all processes, one after the other, each by a new one that is ready. If it is called again before it has finished,
     * it then replaces all of them once more, because the code on disk may have changed again. Never rejects.
     */
    async roll() {
        this.#rollsWanted = Math.min(this.#rollsWanted + 1, 2);
        if (this.#rollsWanted > 1)
            return;
        for (; this.#rollsWanted > 0; this.#rollsWanted--)
            await this.#rollOnce();
    }
    async #rollOnce() {
        const { log } = this.#options;
        log.info({}, 'replacing all processes');
        for (const slot of this.#slots) {
            if (this.#stopping)
                return;
            try {
                await slot.replace();
            }
            catch (error) {
                // If one replacement does not start, those of the next slots would not start either.
                if (!this.#stopping)
                    log.error({ process: slot.name, err: error }, 'process could not be replaced; the remaining processes are kept too');
                return;
            }
        }
        log.info({}, 'replaced all processes');
    }
    /** One page with the metrics of all processes; the label `worker` tells them apart. */
    async renderMetrics() {
        const { metrics } = this.#options;
        const pages = [labelled(await metrics.families(), 'worker', 'supervisor')];
        const answers = await Promise.all(this.#slots.map(async (slot) => [slot.name, await slot.metrics()]));
        for (const [name, families] of answers)
            if (families !== null)
                pages.push(labelled(families, 'worker', name));
        return renderFamilies(pages.flat());
    }
}
async function started(slot) {
    try {
        await slot.start();
    }
    catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        throw new StartFailure(`process ${slot.name} could not be started: ${reason}`, { cause: error });
    }
}
function sources(slots) {
    const each = (read) => () => new Map(slots.map((slot) => [slot.name, read(slot)]));
    return [
        {
            name: 'tollgate_worker_up',
            help: 'Whether the process is ready',
            type: 'gauge',
            label: 'worker',
            read: each((slot) => (slot.isFilled ? 1 : 0)),
        },
        {
            name: 'tollgate_worker_restarts_total',
            help: 'How often the process was started again after it had ended by itself, failed attempts included',
            type: 'counter',
            label: 'worker',
            read: each((slot) => slot.restarts),
        },
    ];
}
//# sourceMappingURL=supervisor.js.map