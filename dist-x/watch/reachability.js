import { ask } from './ask.js';
import { writeReachable } from './watch-sql.js';
/** Maximum questions under way in this process, one for each account: nobody makes the gateway scan networks faster than by calls. */
const MAX_ASKING = 8;
/** Maximum endpoints that wait to be asked. Beyond it, a new endpoint is not asked: its `reachable` stays absent. */
const MAX_WAITING = 1_000;
/**
 * Asks each new endpoint once whether it answers, and writes that down for its provider. Nothing waits for it, and no listing is
 * refused by it: a service may be started after it is listed.
 *
 * Tested by test/integration/watched-services.test.ts.
 */
export class Reachability {
    #client;
    #sql;
    #log;
    #stopping = new AbortController();
    #asking = new Set();
    /** By service: only its last endpoint is of interest. */
    #waiting = new Map();
    constructor(options) {
        this.#client = options.client;
        this.#sql = options.sql;
        this.#log = options.log;
    }
    /** Returns at once. */
    check({ id, providerId, endpoint }) {
        if (this.#waiting.size >= MAX_WAITING || this.#stopping.signal.aborted)
            return;
        this.#waiting.set(id, { id, providerId, endpoint });
        this.#askNext();
    }
    /** What waits and what is under way is given up: those endpoints stay without a result. */
    stop() {
        this.#waiting.clear();
        this.#stopping.abort();
    }
    #askNext() {
        for (const next of this.#waiting.values()) {
            if (this.#asking.size >= MAX_ASKING)
                return;
            if (this.#asking.has(next.providerId))
                continue;
            this.#waiting.delete(next.id);
            this.#asking.add(next.providerId);
            void this.#ask(next).finally(() => {
                this.#asking.delete(next.providerId);
                this.#askNext();
            });
        }
    }
    async #ask({ id, endpoint }) {
        try {
            const { signal } = this.#stopping;
            const status = await ask(this.#client, { serviceId: id, endpoint, method: 'HEAD', path: '' }, signal);
            if (signal.aborted)
                return;
            await writeReachable(this.#sql, id, endpoint, status !== null);
        }
        catch (error) {
            this.#log.warn({ err: error, service_id: id }, 'watch: cannot write down whether an endpoint is reachable');
        }
    }
}
//# sourceMappingURL=reachability.js.map