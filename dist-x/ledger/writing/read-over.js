const BEGINNING = { id: null, newer: 0 };
/**
 * After this time a stream is read from its beginning again. A newer writer may have stored the skipped events by then, or Redis
 * may have been replaced.
 */
const FORGET_MS = 60_000;
/**
 * Remembers, for each stream that begins with events of a newer version, the last of these events. They stay in the stream until
 * a newer writer comes. Each look at the stream skips them; otherwise it would have to read all of them again.
 */
export class ReadOver {
    #heads = new Map();
    /**
     * Where to begin to read the stream.
     *
     * @param length of the stream, if known. If it has fewer entries than were skipped, those are gone: read from the beginning.
     */
    head(shard, length = Number.POSITIVE_INFINITY) {
        const head = this.#heads.get(shard);
        if (head === undefined)
            return BEGINNING;
        if (length >= head.position.newer && performance.now() - head.sinceMs < FORGET_MS)
            return head.position;
        this.#heads.delete(shard);
        return BEGINNING;
    }
    remember(shard, position) {
        if (position.newer === 0)
            return;
        this.#heads.set(shard, { position, sinceMs: this.#heads.get(shard)?.sinceMs ?? performance.now() });
    }
}
//# sourceMappingURL=read-over.js.map