const NEEDS_ESCAPE = /["\\]/;
const ESCAPED = /["\\]/g;

/** An element of a Postgres array literal. It is always quoted, because a bare `null` or an empty text means something else. */
export function quoted(text: string): string {
  return NEEDS_ESCAPE.test(text) ? `"${text.replace(ESCAPED, '\\$&')}"` : `"${text}"`;
}

/**
 * Turns rows into columns, one text for each. A text is the column's elements, separated by commas and without braces, so that
 * texts of several pages can be joined to one array literal. The elements must need no quotes, or have them.
 */
export function transposed(rows: readonly (readonly (string | number)[])[], columns: number): string[] {
  return Array.from({ length: columns }, (_, column) => rows.map((row) => row[column]).join(','));
}
