import type { CallerStream, RequestHead } from '../gate/caller-io.ts';
import type { KeyRecord } from '../keys/caller.ts';

// What the access log says of calls. Without it, each costs a call one comparison.

/** Not the id of the service: until it is found, that part of the path is any text. The record of the call has it. */
const ROUTE = '/api/v1/proxy/{service_id}';

/** By method. A text that is joined for each call is slower to compare with that of the call before. */
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
  // A method that the gateway does not know is any text, too.
  accessEntry.route = fault === null ? routeOf(method) : ROUTE;
}

/** @param key  that the caller has proved to have; null: none */
export function describeCaller({ accessEntry }: CallerStream, key: KeyRecord | null): void {
  if (accessEntry !== undefined && key !== null) accessEntry.keyId = key.keyId;
}
