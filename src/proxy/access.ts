import type { CallerStream, RequestHead } from '../gate/caller-io.ts';
import type { KeyRecord } from '../keys/caller.ts';

// What the access log says about calls. If the log is off, this costs a call one comparison.

/**
 * Without the id of the service: until the service is found, that part of the path could be any text. The record of the call has
 * the id.
 */
const ROUTE = '/api/v1/proxy/{service_id}';

/** The text for each method. A text joined for each call is slower to compare with that of the previous call. */
const ROUTES = new Map<string, string>();

function routeOf(method: string): string {
  const known = ROUTES.get(method);
  if (known !== undefined) return known;
  const route = `${method} ${ROUTE}`;
  ROUTES.set(method, route);
  return route;
}

export function describeCall({ accessEntry }: CallerStream, { method, fault }: RequestHead, usageId: string): void {
  if (accessEntry === undefined) return;
  accessEntry.requestId = usageId;
  // A method that the gateway does not know could be any text, too.
  accessEntry.route = fault === null ? routeOf(method) : ROUTE;
}

/** @param key the key that the caller has authenticated with; null: none */
export function describeCaller({ accessEntry }: CallerStream, key: KeyRecord | null): void {
  if (accessEntry !== undefined && key !== null) accessEntry.keyId = key.keyId;
}
