/** A cell: numbers as they are, text made safe. */
export type CsvCell = string | number | boolean;

/** RFC 4180: these make a cell need quotes. */
const NEEDS_QUOTES = /[",\r\n]/;
/** A spreadsheet runs a cell that starts so as a formula (OWASP, 'CSV Injection'): a quote in front makes it text. */
const FORMULA = /^[=+\-@\t\r]/;

function formatCell(cell: CsvCell): string {
  if (typeof cell !== 'string') return String(cell);
  const text = FORMULA.test(cell) ? `'${cell}` : cell;
  return NEEDS_QUOTES.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** A CSV file (RFC 4180: CRLF after every line) with a header line. */
export function formatCsv(header: readonly string[], rows: Iterable<readonly CsvCell[]>): string {
  let csv = `${header.join(',')}\r\n`;
  for (const row of rows) csv += `${row.map(formatCell).join(',')}\r\n`;
  return csv;
}
