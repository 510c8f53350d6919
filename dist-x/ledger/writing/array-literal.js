const NEEDS_ESCAPE = /["\\]/;
const ESCAPED = /["\\]/g;
/** An element of a Postgres array literal. It is always quoted, because a bare `null` or an empty text means something else. */
export function quoted(text) {
    return NEEDS_ESCAPE.test(text) ? `"${text.replace(ESCAPED, '\\$&')}"` : `"${text}"`;
}
/**
 * Turns rows into columns: one array literal for each.
 *
 * @param write adds the elements of a row. They must need no quotes, or have them
 */
export function arrayLiterals(rows, columns, write) {
    const texts = new Array(columns).fill('{');
    let comma = '';
    const add = (column, element) => {
        texts[column] += comma + element;
    };
    for (const row of rows) {
        write(row, add);
        comma = ',';
    }
    return texts.map((text) => `${text}}`);
}
//# sourceMappingURL=array-literal.js.map