import { STATUS_CODES } from 'node:http';
const lines = new Map();
/** `200` → `200 OK`; an unknown status gets an empty reason phrase, which RFC 9112 §4 allows. */
export function statusLine(status) {
    let line = lines.get(status);
    if (line === undefined) {
        line = `${status} ${STATUS_CODES[status] ?? ''}`;
        lines.set(status, line);
    }
    return line;
}
//# sourceMappingURL=status.js.map