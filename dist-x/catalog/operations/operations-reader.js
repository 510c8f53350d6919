import { selectOperationsText } from '../sql.js';
/**
 * Maximum characters of all cached texts: those of 128 listings with as many operations as there may be. In memory a character has
 * one octet, or two if its text is not Latin-1.
 */
const MAX_CACHED_LENGTH = 33_554_432;
/**
 * Reads the operations of a listing with their schemas and examples. The catalog in memory has only their prices. Anybody may ask,
 * so what was read is kept until the listing changes; beyond `MAX_CACHED_LENGTH`, what was used least recently is dropped.
 *
 * Their text is kept, and not the objects: those can take twenty times its memory, and strangers choose them.
 *
 * Tested by test/catalog/operations/operations-reader.test.ts.
 */
export class OperationsReader {
    #sql;
    /** By listing id, least recently used first. */
    #cached = new Map();
    #length = 0;
    constructor(sql) {
        this.#sql = sql;
    }
    async read({ id, operationTerms, updatedAtMicros, termsFromMs }) {
        if (operationTerms === null)
            return [];
        const cached = this.#cached.get(id);
        const isFresh = cached !== undefined && cached.version === updatedAtMicros && cached.termsFromMs === termsFromMs;
        const text = isFresh ? cached.text : await selectOperationsText(this.#sql, id);
        this.#forget(id);
        this.#cached.set(id, { version: updatedAtMicros, termsFromMs, text });
        this.#length += text.length;
        for (const oldest of this.#cached.keys()) {
            if (this.#length <= MAX_CACHED_LENGTH)
                break;
            this.#forget(oldest);
        }
        return JSON.parse(text);
    }
    #forget(id) {
        this.#length -= this.#cached.get(id)?.text.length ?? 0;
        this.#cached.delete(id);
    }
}
//# sourceMappingURL=operations-reader.js.map