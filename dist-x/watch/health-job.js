import { Job } from '../platform/job.js';
import { ask } from './ask.js';
import { deleteOldHours, takeDue, writeChecks } from './watch-sql.js';
/** How often a service is asked. */
const INTERVAL_MS = 60_000;
/** How long this process waits before it looks again for services whose time has come, after it has found none. */
const LOOK_MS = 5_000;
/**
 * Maximum services asked at a time. Each takes 5 s at most, so 768 hanging services are asked in a minute, and many more that answer.
 * With more than that the time between two checks grows.
 */
const MAX_ASKING = 64;
/** Of one account. */
const MAX_ASKING_PER_ACCOUNT = 8;
const DELETE_MS = 3_600_000;
/**
 * Asks the health path of every active listing that has one, once a minute. Any number of processes may run it: a service is asked by
 * the one that takes it in Postgres. `stop` gives up the questions under way: their services are asked again a minute after they were
 * taken.
 *
 * Tested by test/integration/watched-services.test.ts.
 */
export class HealthJob extends Job {
    #options;
    #deletedAt = Number.NEGATIVE_INFINITY;
    constructor(options) {
        const { lookMs = LOOK_MS, log } = options;
        super({
            everyMs: lookMs,
            firstMs: lookMs,
            messages: {
                failing: 'watch: the health of services cannot be checked now',
                again: 'watch: the health of services is checked again',
            },
            log,
        });
        this.#options = options;
    }
    async round() {
        const { sql, intervalMs = INTERVAL_MS } = this.#options;
        const due = await takeDue(sql, intervalMs, MAX_ASKING, MAX_ASKING_PER_ACCOUNT);
        if (due.length > 0) {
            this.nextIn(0);
            await this.#askAll(due);
        }
        if (!this.stopping.aborted)
            await this.#deleteOld();
    }
    async #askAll(due) {
        const up = await Promise.all(due.map((service) => this.#isUp(service)));
        if (this.stopping.aborted)
            return;
        await writeChecks(this.#options.sql, due.map(({ id }) => id), up);
    }
    async #isUp({ id, endpoint, healthPath }) {
        const question = { serviceId: id, endpoint, method: 'GET', path: healthPath };
        const status = await ask(this.#options.client, question, this.stopping);
        return status !== null && status >= 200 && status < 400;
    }
    async #deleteOld() {
        if (performance.now() - this.#deletedAt < DELETE_MS)
            return;
        this.#deletedAt = performance.now();
        await deleteOldHours(this.#options.sql);
    }
}
//# sourceMappingURL=health-job.js.map