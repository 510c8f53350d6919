/**
 * Maximum bytes of kept pieces. All services in one language take 45 MB at 100 000 listings; at the bound, the pieces used least
 * recently are dropped, and made again when somebody asks.
 */
const MAX_BYTES = 67_108_864;
/**
 * The services of a chunk as JSON, one text for all callers in a language. A change of a listing makes a new chunk, so a piece is
 * right for ever.
 */
export class PieceCache {
    /** Writes services, with a comma before the first. */
    #write;
    /** Least recently used first. */
    #pieces = new Map();
    #bytes = 0;
    constructor(write) {
        this.#write = write;
    }
    /**
     * The services, with a comma before the first.
     *
     * @param keep  false if the entries are not a chunk of an order: nobody else will ask for just these
     */
    get(entries, language, keep) {
        if (!keep)
            return Buffer.from(this.#write(entries, language));
        const byLanguage = this.#pieces.get(entries) ?? new Map();
        this.#pieces.delete(entries);
        this.#pieces.set(entries, byLanguage);
        let piece = byLanguage.get(language);
        if (piece === undefined) {
            piece = Buffer.from(this.#write(entries, language));
            byLanguage.set(language, piece);
            this.#bytes += piece.length;
            this.#shrink();
        }
        return piece;
    }
    #shrink() {
        for (const [oldest, byLanguage] of this.#pieces) {
            if (this.#bytes <= MAX_BYTES)
                return;
            this.#pieces.delete(oldest);
            for (const { length } of byLanguage.values())
                this.#bytes -= length;
        }
    }
}
//# sourceMappingURL=piece-cache.js.map