import { Job } from './job.js';
import { readNodeInfo } from './redis-node.js';
/** Interval of the looks. A look is one INFO for each node, which takes Redis 0.1 ms. */
const LOOK_EVERY_MS = 10_000;
/**
 * Asks each Redis how it is set up, and how it is: its memory, its replicas. A start refuses a Redis that may evict keys. This finds
 * the nodes of a cluster that joined later, and a Redis that was set up anew while it ran. They are reported, not refused: nothing is
 * evicted before the memory is full, and refusing the calls of all their accounts would be worse.
 *
 * Tested by test/platform/node-watch.test.ts.
 */
export class NodeWatch extends Job {
    #nodes;
    #kind;
    #log;
    /** Null before the first look. */
    #infos = null;
    /** By node that was ever seen: its fault at the time. */
    #reported = new Map();
    constructor(options) {
        super({
            everyMs: LOOK_EVERY_MS,
            messages: { failing: 'cannot look at the redis nodes now', again: 'looks at the redis nodes again' },
            log: options.log,
        });
        this.#nodes = options.nodes;
        this.#kind = options.kind;
        this.#log = options.log;
    }
    /** What each node said at the last look. A node that did not answer is missing: its own log line says that it is away. */
    get infos() {
        return this.#infos ?? new Map();
    }
    round() {
        return this.look();
    }
    async look() {
        const nodes = this.#nodes();
        const replies = await Promise.allSettled(nodes.map(({ store }) => store.command('info', [])));
        const infos = new Map();
        for (const [at, reply] of replies.entries()) {
            if (reply.status === 'fulfilled')
                infos.set(nodes[at].address, readNodeInfo(String(reply.value), this.#kind));
        }
        for (const [address, info] of infos)
            this.#report(address, info);
        this.#infos = infos;
    }
    #report(node, { fault, warnings }) {
        const before = this.#reported.get(node);
        if (fault !== null && fault !== before)
            this.#log.error({ node }, fault);
        else if (fault === null && typeof before === 'string')
            this.#log.warn({ node }, 'this redis is set up as it must be');
        // The start has told the warnings of the nodes that were there.
        if (before === undefined && this.#infos !== null)
            for (const warning of warnings)
                this.#log.warn({ node }, warning);
        this.#reported.set(node, fault);
    }
}
//# sourceMappingURL=node-watch.js.map