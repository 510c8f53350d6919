/** The texts of 0.0 to 99.9 ms: most calls need no other, and to format a number costs as much as all the rest here. */
const TENTHS = Array.from({ length: 1_000 }, (_, tenths) => (tenths / 10).toFixed(1));
/**
 * Where the time of a call went (W3C Server Timing), as header lines with CRLF in front: the wait for its admission, then for the
 * service's response head. `Timing-Allow-Origin` lets a page read it in its Performance Timeline, too: CORS has already given it all
 * headers. The lines of a service's own pass beside these; both headers are lists. About 0.1 µs a call, so that no setting is needed.
 *
 * Tested by test/proxy/server-timing.test.ts.
 *
 * @param serviceUs  null when the service did not come into it, or the gateway gave up first
 */
export function serverTimingLines(admissionUs, serviceUs) {
    const service = serviceUs === null ? '' : `, service;dur=${milliseconds(serviceUs)}`;
    return `\r\nTiming-Allow-Origin: *\r\nServer-Timing: admission;dur=${milliseconds(admissionUs)}${service}`;
}
function milliseconds(us) {
    const tenths = Math.round(us / 100);
    return TENTHS[tenths] ?? (tenths / 10).toFixed(1);
}
//# sourceMappingURL=server-timing.js.map