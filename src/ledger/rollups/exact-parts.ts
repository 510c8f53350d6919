import type { UsageEvent } from '../usage-event.ts';

/** The most by which a call can increase any sum. */
type Bounded = Pick<UsageEvent, 'heldMicros' | 'latencyUs'>;

/**
 * Divides calls, in their order, into parts over which every sum is exact in a JavaScript number, because it cannot reach 2^53.
 * There is one part, unless an amount or a latency exceeds everything that occurs in practice. Postgres adds up the parts.
 */
export function exactParts<T>(calls: readonly T[], boundedOf: (call: T) => Bounded): T[][] {
  const parts: T[][] = [];
  let part: T[] = [];
  let bound = 0;
  for (const call of calls) {
    const { heldMicros, latencyUs } = boundedOf(call);
    bound += Math.max(heldMicros, latencyUs);
    if (part.length === 0 || !Number.isSafeInteger(bound)) {
      bound = Math.max(heldMicros, latencyUs);
      part = [];
      parts.push(part);
    }
    part.push(call);
  }
  return parts;
}
