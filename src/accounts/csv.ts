/** A cell. Numbers and booleans are written as they are; text is made safe. */
export type CsvCell = string | number | boolean;

/** RFC 4180: a cell with one of these characters must be quoted. */
const NEEDS_QUOTES = /[",\r\n]/;
/** A spreadsheet runs a cell that begins with one of these as a formula (OWASP, 'CSV Injection'). A leading ' makes it text. */
const FORMULA = /^[=+\-@\t\r]/;

function formatCell(cell: CsvCell): string {
  if (typeof cell !== 'string') return String(cell);
  const text = FORMULA.test(cell) ? `'${cell}` : cell;
  return NEEDS_QUOTES.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** A CSV file with a header line (RFC 4180: each line ends in CRLF). */
export function formatCsv(header: readonly string[], rows: Iterable<readonly CsvCell[]>): string {
  let csv = `${header.join(',')}\r\n`;
  for (const row of rows) csv += `${row.map(formatCell).join(',')}\r\n`;
  return csv;
}
