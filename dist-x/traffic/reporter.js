import { performance } from 'node:perf_hooks';
import { SHARED_TAG } from '../platform/redis-keys.js';
import { LoadMeter } from './process-load.js';
import { RecentCallsWindow } from './recent-calls.js';
import { encodeReport } from './report.js';
/** Interval of the reports while somebody looks. */
export const REPORT_EVERY_MS = 1_000;
/** How long a process reports after the last look. */
export const LOOKED_AT_MS = 10_000;
/** A report is gone after this time: then its process has missed two in a row. */
const REPORT_LIVES_MS = 3_500;
/** Set of the instances that reported. */
export const REPORTING_KEY = `{${SHARED_TAG}}`;
export const reportKey = (instance) => `{${SHARED_TAG}}:${instance}`;
/**
 * Tells Redis once a second what this process does, as long as somebody looks: until LOOKED_AT_MS after the last look.
 *
 *   silent ──looked()──► reports each second ──nobody looked for 10 s──► silent
 *
 * A silent reporter has no timer and writes nothing.
 *
 * Tested by test/traffic/traffic.test.ts.
 */
export class Reporter {
    #options;
    #load = new LoadMeter();
    #recent;
    #timer = null;
    #until = 0;
    #since = 0;
    #isStopped = false;
    constructor(options) {
        this.#options = options;
        this.#recent = options.calls === undefined ? null : new RecentCallsWindow(options.calls.latencies);
    }
    /** Since when it reports, on the clock of `performance.now()`; null while it is silent. */
    get since() {
        return this.#timer === null ? null : this.#since;
    }
    /** Somebody looks, here or at another gateway. */
    looked() {
        if (this.#isStopped)
            return;
        this.#until = performance.now() + LOOKED_AT_MS;
        if (this.#timer !== null)
            return;
        this.#since = performance.now();
        this.#load.start();
        this.#recent?.start(performance.now());
        this.#timer = setInterval(this.#onTick, REPORT_EVERY_MS);
        this.#timer.unref();
        void this.#report();
    }
    /** The process ends: its report goes with it. */
    async stop() {
        this.#isStopped = true;
        if (this.#timer === null)
            return;
        this.#rest();
        await this.#quietly('del', [reportKey(this.#options.name.instance)]);
    }
    #onTick = () => {
        if (performance.now() >= this.#until)
            this.#rest();
        else
            void this.#report();
    };
    #rest() {
        if (this.#timer !== null)
            clearInterval(this.#timer);
        this.#timer = null;
        this.#load.stop();
    }
    async #report() {
        const { name, calls, shards } = this.#options;
        const text = encodeReport({
            ...name,
            load: this.#load.read(),
            calls: calls?.counts() ?? null,
            recent: this.#recent?.read(performance.now()) ?? null,
            shards: shards?.() ?? null,
        });
        await Promise.all([
            this.#quietly('set', [reportKey(name.instance), text, 'PX', String(REPORT_LIVES_MS)]),
            this.#quietly('sadd', [REPORTING_KEY, name.instance]),
            this.#quietly('pexpire', [REPORTING_KEY, String(REPORT_LIVES_MS)]),
        ]);
    }
    /** A report that is lost is replaced in a second. That Redis is away is logged by its connection. */
    #quietly(command, args) {
        return this.#options.redis.command(command, args).catch(() => { });
    }
}
//# sourceMappingURL=reporter.js.map