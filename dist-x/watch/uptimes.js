import { Job } from '../platform/job.js';
import { selectUptimes } from './watch-sql.js';
/** How often they are read again. A check is a minute old at most before it is written, so this need not be sooner. */
const READ_MS = 30_000;
/** The uptimes of all services with a health path, in memory: anybody may look at a listing, as often as the rate limit allows. */
export class Uptimes extends Job {
    #sql;
    #byService = new Map();
    constructor(options) {
        super({
            everyMs: options.readMs ?? READ_MS,
            messages: {
                failing: 'watch: uptimes cannot be read; the last ones stay in use',
                again: 'watch: uptimes are read again',
            },
            log: options.log,
        });
        this.#sql = options.sql;
    }
    /** Undefined for a service without a health path, or before its first check. */
    of(serviceId) {
        return this.#byService.get(serviceId);
    }
    async round() {
        this.#byService = await selectUptimes(this.#sql);
    }
}
//# sourceMappingURL=uptimes.js.map