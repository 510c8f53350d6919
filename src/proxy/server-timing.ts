/** The texts of 0.0 to 99.9 ms. Most calls need only these, and formatting a number costs as much as everything else here. */
const TENTHS = Array.from({ length: 1_000 }, (_, tenths) => (tenths / 10).toFixed(1));

/**
 * Where the time of a call went (W3C Server Timing), as header lines preceded by CRLF: the wait for its admission, then for the
 * service's response head. `Timing-Allow-Origin` also lets a page read it in its Performance Timeline; CORS already gives the page
 * all headers. The lines of the service itself pass in addition; both headers are lists. It takes about 0.1 µs a call, so that no
 * setting is needed.
 *
 * Tested by test/proxy/server-timing.test.ts.
 *
 * @param serviceUs null when the service was not involved, or the gateway gave up first
 */
export function serverTimingLines(admissionUs: number, serviceUs: number | null): string {
  const service = serviceUs === null ? '' : `, service;dur=${milliseconds(serviceUs)}`;
  return `\r\nTiming-Allow-Origin: *\r\nServer-Timing: admission;dur=${milliseconds(admissionUs)}${service}`;
}

function milliseconds(us: number): string {
  const tenths = Math.round(us / 100);
  return TENTHS[tenths] ?? (tenths / 10).toFixed(1);
}
