// What must be true of everything that reached the service, whatever callers sent.

import { readStrictly, type StrictRequest } from './strict-requests.ts';
import type { Witness } from './witness.ts';

/** All whole requests that the strict reader finds on all connections. Throws if a connection carries anything else. */
export function strictRequests({ connections }: Witness): StrictRequest[] {
  return connections.flatMap((pieces) => [...readStrictly(Buffer.concat(pieces)).requests]);
}

export const usageIdOf = ({ headers }: StrictRequest): string =>
  headers
    .filter(([name]) => name === 'x-acf-usage-id')
    .map(([, value]) => value)
    .join();

/** What both readers must agree on, in an order that does not depend on connections. */
export function agreed(
  requests: readonly { method: string; target: string; usageId: string; body: string }[],
): string[] {
  return requests.map(({ method, target, usageId, body }) => JSON.stringify([usageId, method, target, body])).sort();
}

/** Header fields that no service may ever see. */
export const NEVER_PASSED = [
  'authorization',
  'cookie',
  'x-api-key',
  'api-key',
  'connection',
  'te',
  'trailer',
  'upgrade',
  'expect',
  'keep-alive',
];
