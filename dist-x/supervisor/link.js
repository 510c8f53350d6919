/**
 * The supervisor, as a process that it started sees it.
 *
 * A terminal's Ctrl-C and an init system's SIGTERM reach all processes of the group at once, but the writer has to end last. So
 * only the supervisor acts on these signals, and tells each process when to end. There is one exception: a worker that gets a
 * SIGTERM drains and ends; if that SIGTERM was for the worker alone, the supervisor starts it again.
 */
export class SupervisorLink {
    #channel;
    #metrics = null;
    /** Resolves when this process has to end. */
    stopped;
    /** @param obeysSigterm whether a SIGTERM makes this process drain and end; true for workers */
    constructor(channel, { obeysSigterm }) {
        if (channel.send === undefined)
            throw new Error('a supervised process must be started by a supervisor');
        this.#channel = channel;
        for (const signal of ['SIGINT', 'SIGHUP'])
            channel.on(signal, () => { });
        this.stopped = new Promise((resolve) => {
            // The supervisor died before this process listened for its end.
            if (!channel.connected)
                resolve('supervisor gone');
            channel.on('SIGTERM', () => {
                if (obeysSigterm)
                    resolve('SIGTERM');
            });
            channel.on('disconnect', () => resolve('supervisor gone'));
            channel.on('message', (message) => {
                if (message.type === 'stop')
                    resolve(message.replaced ? 'replaced' : 'asked');
                else
                    void this.#sendMetrics(message.request);
            });
        });
    }
    /** Tells the supervisor that this process serves from now on. */
    ready(metrics) {
        this.#metrics = metrics;
        this.#tell({ type: 'ready' });
    }
    async #sendMetrics(request) {
        if (this.#metrics === null)
            return;
        this.#tell({ type: 'metrics', request, families: await this.#metrics.families() });
    }
    #tell(message) {
        // If the supervisor is gone, this process is about to end, and nobody needs the message.
        if (this.#channel.connected)
            this.#channel.send?.(message, undefined, {}, () => { });
    }
}
//# sourceMappingURL=link.js.map