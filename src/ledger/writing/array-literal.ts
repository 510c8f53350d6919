const NEEDS_ESCAPE = /["\\]/;
const ESCAPED = /["\\]/g;

/** An element of a Postgres array literal. It is always quoted, because a bare `null` or an empty text means something else. */
export function quoted(text: string): string {
  return NEEDS_ESCAPE.test(text) ? `"${text.replace(ESCAPED, '\\$&')}"` : `"${text}"`;
}

/**
 * Turns rows into columns: one array literal for each.
 *
 * @param write adds the elements of a row, which must be quoted if they need quotes
 */
export function arrayLiterals<Row>(
  rows: readonly Row[],
  columns: number,
  write: (row: Row, add: (column: number, element: string | number) => void) => void,
): string[] {
  const texts = new Array<string>(columns).fill('{');
  let comma = '';
  const add = (column: number, element: string | number): void => {
    texts[column] += comma + element;
  };
  for (const row of rows) {
    write(row, add);
    comma = ',';
  }
  return texts.map((text) => `${text}}`);
}
