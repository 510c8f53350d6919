import type { Schemas } from '../api/client.ts';

type Listed = Schemas['ListedService'];

/** More services than anybody looks through; beyond it the first ones are forgotten. */
const MAX_SEEN = 500;
const seen = new Map<string, Listed>();

/** Services that a list has shown: their pages begin with this known data. */
export function remember(services: readonly Listed[]): void {
  for (const service of services) seen.set(service.id, service);
  for (const id of seen.keys()) {
    if (seen.size <= MAX_SEEN) break;
    seen.delete(id);
  }
}

export const seenService = (id: string): Listed | null => seen.get(id) ?? null;
