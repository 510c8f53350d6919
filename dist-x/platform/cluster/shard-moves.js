/** The shards of a node move one by one, within this time: each as a command or a look at the slots finds it elsewhere. */
const TOGETHER_MS = 1_000;
/** Counts the shards that got another node, and logs them: one line for all that went from one node to another. */
export class ShardMoves {
    #log;
    #unlogged = new Map();
    #count = 0;
    constructor(log) {
        this.#log = log;
    }
    get count() {
        return this.#count;
    }
    /** @param shard  its number; -1: the keys that belong to none */
    add(shard, from, to) {
        if (shard < 0)
            return;
        this.#count++;
        if (this.#unlogged.size === 0)
            setTimeout(() => this.#write(), TOGETHER_MS).unref();
        const way = `${from} ${to}`;
        const known = this.#unlogged.get(way);
        if (known === undefined)
            this.#unlogged.set(way, { from, to, shards: [shard] });
        else
            known.shards.push(shard);
    }
    #write() {
        const ways = Array.from(this.#unlogged.values());
        this.#unlogged.clear();
        for (const { from, to, shards } of ways)
            this.#log.warn({ from, to, shards }, 'shards are at another redis node');
    }
}
//# sourceMappingURL=shard-moves.js.map