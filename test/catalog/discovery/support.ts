import { BesideListings } from '../../../src/catalog/beside.ts';
import { type DiscoverQuery, Discovery } from '../../../src/catalog/discovery/discovery.ts';
import { wordsOf } from '../../../src/catalog/discovery/words.ts';
import type { Listing } from '../../../src/catalog/listing.ts';
import { Snapshot } from '../../../src/catalog/snapshot.ts';

type Service = { readonly id: string; readonly name: string; readonly price: number; readonly quality: number };
type Answer = {
  readonly services: readonly Service[];
  readonly categories: readonly { readonly category: string; readonly services: number }[];
  readonly total: number;
  readonly next_cursor?: string;
};
export type Asked = Partial<Omit<DiscoverQuery, 'filter'>> & {
  readonly filter?: Partial<DiscoverQuery['filter']>;
  readonly q?: string;
};

/** A catalog without a database, and discovery over it. */
export class Market {
  /** What discovery has logged. */
  readonly faults: unknown[] = [];
  /** Called whenever discovery reads a listing. */
  onRead: (id: string) => void = () => {};
  readonly #listeners: ((id: string) => void)[] = [];
  readonly snapshot = new Snapshot((id) => this.#tell(id));
  readonly beside = new BesideListings(
    (id) => this.#tell(id),
    (providerId) => this.snapshot.activeOf(providerId),
  );
  readonly discovery: Discovery;

  /** @param minRebuildMs  as of `Discovery` */
  constructor(minRebuildMs?: number) {
    const source = {
      get: (id: string) => {
        this.onRead(id);
        return this.snapshot.get(id);
      },
      besideOf: (listing: Listing) => this.beside.of(listing),
      listings: () => this.snapshot.values(),
      onChange: (listener: (id: string) => void) => void this.#listeners.push(listener),
    };
    this.discovery = new Discovery(source, { error: (fields) => void this.faults.push(fields) }, minRebuildMs);
  }

  put(...listings: readonly Listing[]): void {
    for (const listing of listings) this.snapshot.put(listing);
  }

  /** Puts a newer version of a listing. */
  change(listing: Listing, fields: Partial<Listing>): Listing {
    const changed = { ...(this.snapshot.get(listing.id) ?? listing), ...fields };
    const newer = { ...changed, updatedAtMicros: changed.updatedAtMicros + 1 };
    this.snapshot.put(newer);
    return newer;
  }

  /** As the route asks: by relevance if there are words and no sort. */
  answer({ q, filter, ...query }: Asked = {}) {
    const words = q === undefined ? (filter?.words ?? []) : wordsOf(q);
    const sort = query.sort ?? (words.length > 0 ? 'relevance' : 'quality');
    return this.discovery.answer({ language: 'en', ...query, sort, filter: { ...filter, words } });
  }

  async body(asked: Asked = {}): Promise<string> {
    const answer = await this.answer(asked);
    if (answer === null) throw new Error('the cursor was refused');
    return textOf(answer.body);
  }

  async ask(asked: Asked = {}): Promise<Answer> {
    return JSON.parse(await this.body(asked));
  }

  async names(asked: Asked = {}): Promise<string[]> {
    return (await this.ask(asked)).services.map(({ name }) => name);
  }

  async etag(asked: Asked = {}): Promise<string> {
    return (await this.answer(asked))?.etag ?? '';
  }

  #tell(id: string): void {
    for (const listener of this.#listeners) listener(id);
  }
}

export async function textOf(body: string | AsyncIterable<Uint8Array>): Promise<string> {
  if (typeof body === 'string') return body;
  const pieces: Uint8Array[] = [];
  for await (const piece of body) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}
