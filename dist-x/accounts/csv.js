/** RFC 4180: a cell with one of these characters must be quoted. */
const NEEDS_QUOTES = /[",\r\n]/;
/** A spreadsheet runs a cell that begins with one of these as a formula (OWASP, 'CSV Injection'). A ' before it makes it text. */
const FORMULA = /^[=+\-@\t\r]/;
function formatCell(cell) {
    if (typeof cell !== 'string')
        return String(cell);
    const text = FORMULA.test(cell) ? `'${cell}` : cell;
    return NEEDS_QUOTES.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
/** A CSV file with a header line (RFC 4180: each line ends in CRLF). */
export function formatCsv(header, rows) {
    let csv = `${header.join(',')}\r\n`;
    for (const row of rows)
        csv += `${row.map(formatCell).join(',')}\r\n`;
    return csv;
}
//# sourceMappingURL=csv.js.map