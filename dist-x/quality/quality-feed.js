import { Job } from '../platform/job.js';
import { selectChangedQualities } from './quality-sql.js';
/** How often a gateway asks for changed qualities: one query by an index. */
const EVERY_MS = 10_000;
const PAGE = 2_000;
/** Carries qualities from Postgres into the catalog of a gateway. While Postgres is away, the last values stay in use. */
export class QualityFeed extends Job {
    #options;
    /** All changes up to this one were taken over. */
    #settled = null;
    constructor(options) {
        super({
            everyMs: options.everyMs ?? EVERY_MS,
            messages: {
                failing: 'quality: cannot read from Postgres; the last values stay in use',
                again: 'quality: reads from Postgres again',
            },
            log: options.log,
        });
        this.#options = options;
    }
    async round() {
        const { sql, take } = this.#options;
        let after = this.#settled;
        let page;
        do {
            page = await selectChangedQualities(sql, after, PAGE);
            await take(new Map(page.map(({ serviceId, value, trend, rated }) => [serviceId, { value, trend, rated }])));
            after = page.at(-1) ?? after;
            this.#settled = page.findLast(({ isSettled }) => isSettled) ?? this.#settled;
        } while (page.length === PAGE && !this.stopping.aborted);
    }
}
//# sourceMappingURL=quality-feed.js.map