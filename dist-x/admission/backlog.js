import { byStore, isWrongType } from '../platform/redis.js';
/** Interval of the readings. The bounds protect Redis's memory, and the calls of one second more do not matter there. */
const READ_EVERY_MS = 1_000;
/** Share of `maxmemory` above which no new call is admitted. Open calls are still settled beyond it (see batch.lua). */
const MAX_MEMORY_SHARE = 0.9;
/**
 * Watches how many usage events wait in Redis for Postgres, and how much memory Redis uses. Reads both once a second: reading
 * them in the admission script would be exact, but would cost every batch.
 *
 * Tested by test/integration/backlog.test.ts.
 */
export class Backlog {
    #redis;
    #keys;
    #maxEvents;
    #events = 0;
    /** Events that wait in each shard. */
    #lengths;
    #memoryFull = false;
    /** Whether a call has asked for `full` since the timer last ticked. */
    #wasAsked = false;
    #isStarted = false;
    #timer = null;
    constructor(options) {
        this.#redis = options.redis;
        this.#keys = options.keys;
        this.#maxEvents = options.maxEvents;
        this.#lengths = options.keys.usage.map(() => 0);
    }
    start() {
        this.#isStarted = true;
        this.#watch();
    }
    #watch() {
        this.#timer = setInterval(this.#onTick, READ_EVERY_MS);
        this.#timer.unref();
    }
    #rest() {
        if (this.#timer !== null)
            clearInterval(this.#timer);
        this.#timer = null;
    }
    /** Stops the timer when no call has asked since the last tick and no event waits: then the numbers do not change. */
    #onTick = () => {
        if (this.#wasAsked || this.#events > 0 || this.#memoryFull)
            void this.read();
        else
            this.#rest();
        this.#wasAsked = false;
    };
    stop() {
        this.#isStarted = false;
        this.#rest();
    }
    /** Usage events waiting for Postgres, as read at most a second ago. */
    get events() {
        return this.#events;
    }
    /** Whether Redis was close to its `maxmemory` when it was last asked. */
    get memoryFull() {
        return this.#memoryFull;
    }
    /** Whether new calls must be refused: too many events wait, or Redis is close to its `maxmemory`, where it refuses writes. */
    get full() {
        this.#wasAsked = true;
        if (this.#timer === null && this.#isStarted)
            this.#watch();
        return this.#events >= this.#maxEvents || this.#memoryFull;
    }
    /**
     * Never rejects. While a Redis is away its last known numbers stay, and no call of its accounts is admitted anyway. The
     * connection's own log line says that it is away.
     */
    async read() {
        const lengths = await Promise.allSettled(this.#keys.usage.map((stream) => this.#lengthOf(stream)));
        for (const [shard, length] of lengths.entries()) {
            if (length.status === 'fulfilled')
                this.#lengths[shard] = length.value;
        }
        this.#events = this.#lengths.reduce((sum, length) => sum + length, 0);
        const full = await Promise.allSettled(this.#nodes().map(isNodeFull));
        if (full.every(({ status }) => status === 'rejected'))
            return;
        this.#memoryFull = full.some((node) => node.status === 'fulfilled' && node.value);
    }
    /** Each Redis once. In a cluster several shards may share a node; to ask for each is cheaper than to find out. */
    #nodes() {
        return Array.from(byStore(this.#redis, Array.from(this.#keys.usage.keys())).keys());
    }
    /** A key of another type holds no events: it counts as 0, and the writer reports it. */
    async #lengthOf(stream) {
        try {
            return (await this.#redis.command('xlen', [stream]));
        }
        catch (error) {
            if (isWrongType(error))
                return 0;
            throw error;
        }
    }
}
async function isNodeFull(node) {
    return isMemoryFull(String(await node.command('info', ['memory'])));
}
function isMemoryFull(info) {
    const field = (name) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0);
    const max = field('maxmemory');
    return max > 0 && field('used_memory') > max * MAX_MEMORY_SHARE;
}
//# sourceMappingURL=backlog.js.map