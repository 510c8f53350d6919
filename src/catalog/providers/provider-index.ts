import type { Listing } from '../listing.ts';

/** The active listings of each provider. Arrays, because most providers have one listing, and a Set takes three times the memory. */
export class ProviderIndex {
  readonly #ids = new Map<string, string[]>();

  add({ id, providerId, status }: Listing): void {
    if (status !== 'active') return;
    const ids = this.#ids.get(providerId);
    if (ids === undefined) this.#ids.set(providerId, [id]);
    else ids.push(id);
  }

  /** @param listing the same object that was added */
  remove({ id, providerId, status }: Listing): void {
    if (status !== 'active') return;
    const ids = this.#ids.get(providerId) ?? [];
    const at = ids.indexOf(id);
    if (at !== -1) ids.splice(at, 1);
    if (ids.length === 0) this.#ids.delete(providerId);
  }

  idsOf(providerId: string): readonly string[] {
    return this.#ids.get(providerId) ?? [];
  }
}
