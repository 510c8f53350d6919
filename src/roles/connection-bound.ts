import type { Log } from '../observability/log.ts';

/** Files and sockets that a gateway has open in addition to calls: the program, its stores, logs, nameservers. Measured: 60. */
const OTHER_FILES = 256;

/**
 * How many connections to services this process may have. Each call has two sockets, the caller's and the service's. If no files
 * are left, the gateway can accept nobody, and loses the connections to its stores as soon as they are made again.
 *
 * Tested by test/roles/connection-bound.test.ts.
 *
 * @param wanted  the operator's setting
 * @param maxFiles  the operating system's limit
 */
export function connectionBound(wanted: number, maxFiles: number, log: Pick<Log, 'warn'>): number {
  const possible = Math.max(1, Math.floor((maxFiles - OTHER_FILES) / 2));
  if (possible >= wanted) return wanted;
  log.warn(
    { max_open_files: maxFiles, connections: possible },
    `this process may open ${maxFiles} files, enough for ${possible} connections to services and as many callers. Raise ulimit -n to ${2 * wanted + OTHER_FILES} for UPSTREAM_MAX_TOTAL_CONNECTIONS=${wanted}`,
  );
  return possible;
}
