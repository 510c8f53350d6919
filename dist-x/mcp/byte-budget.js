/**
 * Counts the bytes that all requests to `/mcp` together may keep in memory. Calls through the proxy stream, and keep next to
 * nothing; a tool's arguments and its result are whole in memory.
 */
export class ByteBudget {
    #left;
    constructor(bytes) {
        this.#left = bytes;
    }
    /** @returns false, and reserves nothing, if the bytes are not left */
    reserve(bytes) {
        if (bytes > this.#left)
            return false;
        this.#left -= bytes;
        return true;
    }
    release(bytes) {
        this.#left += bytes;
    }
}
/**
 * A text of `{},{},…` takes 22 times its length when it is parsed. Measured for each mark: 34 bytes
 * for empty objects, 56 for nested arrays, 65 for objects that each have a member of another name, 8 for numbers.
 */
const BYTES_PER_MARK = 65;
/** `[`, `{`, `,` and `:`, by character code. */
const MARKS = new Uint8Array(256);
for (const mark of '[{,:')
    MARKS[mark.charCodeAt(0)] = 1;
/** How much memory the value of a JSON text takes beside its strings, at most. Marks within strings are counted as well. */
export function parsedBytes(text) {
    let marks = 0;
    for (let at = 0; at < text.length; at++)
        marks += MARKS[text[at]];
    return marks * BYTES_PER_MARK;
}
//# sourceMappingURL=byte-budget.js.map