import { createHash } from 'node:crypto';
import { ApiError, unavailableError } from '../../errors.ts';
import { Steps, stepEnd, turns } from '../../platform/turns.ts';
import { VERSION } from '../../version.ts';
import type { Language } from '../languages.ts';
import type { FoundName } from '../listing-fields.ts';
import { DiscoverWriter } from '../present.ts';
import { AnswerCache, type Page } from './answer-cache.ts';
import type { Entry } from './entry.ts';
import { type Filter, keyOfFilter } from './filter.ts';
import { type IndexSource, ListingIndex } from './listing-index.ts';
import type { Matches } from './matches.ts';
import { PieceCache } from './piece-cache.ts';
import { type AnySort, cursorAfter, parseCursor, type RankedPosition } from './sorts.ts';
import { View } from './view.ts';

export type DiscoverQuery = {
  readonly filter: Filter;
  readonly sort: AnySort;
  readonly language: Language;
  /** The fields shown of each service, as `foundNames` gives them; absent: everything. */
  readonly fields?: readonly FoundName[];
  /** Maximum number of services on the page; absent: all of them if they are at most MAX_UNLIMITED, otherwise a page of PAGE. */
  readonly limit?: number | 'all';
  readonly cursor?: string;
};

/** Maximum services in an answer when the request states no number: about 400 KB of JSON. Longer answers are sent in pieces. */
const MAX_UNLIMITED = 1_000;
const PAGE = 100;
/**
 * Minimum time between building an index and replacing it after a fault. A fault that returns at once must not keep the loop busy.
 */
const MIN_REBUILD_MS = 60_000;

/**
 * The body of a /discover response: a text, or pieces of one, each made when it is asked for. `etag` is strong: it is the same for
 * two answers only if language and bytes are the same.
 */
type DiscoverAnswer = { readonly etag: string; readonly body: string | AsyncIterable<Uint8Array> };

/** The source that discovery follows. */
type DiscoverySource = IndexSource & {
  listings(): Iterable<{ readonly id: string }>;
  /** @param listener called with the id of each listing that is added, changed or dropped, or whose `beside` changes */
  onChange(listener: (id: string) => void): void;
};

/**
 * Finds services and writes the answer. Anybody may ask, without a key and for the whole catalog. So nothing here takes longer than
 * a step of a millisecond at any number of listings, and the memory for all callers together is bounded.
 *
 *     catalog ──► listing index ──► view (what matches, of this moment) ──► page, kept until something on it changes
 *                                                                       └─► pieces, kept until a listing in them changes
 *
 * Tested by test/catalog/discovery/.
 */
export class Discovery {
  readonly #source: DiscoverySource;
  readonly #log: { error(fields: object, message: string): void };
  /** Null after a fault, until a new index is built. There are no answers meanwhile. */
  #index: ListingIndex | null;
  #builtAtMs = 0;
  readonly #minRebuildMs: number;
  readonly #writer = new DiscoverWriter();
  readonly #answers = new AnswerCache();
  readonly #pieces = new PieceCache((entries, language) => `,${this.#write(entries, language)}`);
  /** Pages that are being made, by query and version of the matches. */
  readonly #underWay = new Map<string, Promise<Page>>();

  /** @param log logs faults, after which everything is read from the source again */
  constructor(
    source: DiscoverySource,
    log: { error(fields: object, message: string): void },
    minRebuildMs: number = MIN_REBUILD_MS,
  ) {
    this.#source = source;
    this.#minRebuildMs = minRebuildMs;
    this.#log = log;
    this.#index = this.#build();
    source.onChange((id) => this.#index?.changed(id));
  }

  /**
   * Resolves when everything that the catalog contained at the call can be found, or after a fault, which is logged. At a start
   * with 100 000 listings, that takes 2 s of CPU.
   */
  async current(): Promise<void> {
    const index = this.#index;
    await index?.current().catch((error: unknown) => this.#replace(index, error));
  }

  /**
   * The answer, or null when the cursor was not issued for this sort. Rejects only with `unavailable`: at a bound, or while the
   * index is being replaced after a fault.
   */
  async answer(query: DiscoverQuery): Promise<DiscoverAnswer | null> {
    const after = query.cursor === undefined ? null : parseCursor(query.cursor, query.sort);
    if (after === null && query.cursor !== undefined) return null;
    const index = this.#index;
    if (index === null) throw unavailableError();
    try {
      return await this.#answer(index, query, after);
    } catch (error) {
      if (error instanceof ApiError) throw error;
      this.#replace(index, error);
      throw unavailableError();
    }
  }

  #build(): ListingIndex {
    const index = new ListingIndex(this.#source, (error) => this.#replace(index, error));
    for (const { id } of this.#source.listings()) index.changed(id);
    this.#builtAtMs = performance.now();
    return index;
  }

  #replace(index: ListingIndex, error: unknown): void {
    if (index !== this.#index) return;
    this.#index = null;
    const waitMs = Math.max(0, this.#builtAtMs + this.#minRebuildMs - performance.now());
    this.#log.error(
      { err: error, wait_ms: Math.round(waitMs) },
      'discovery: the index has failed; it will be built again',
    );
    setTimeout(() => {
      this.#index = this.#build();
    }, waitMs).unref();
  }

  async #answer(index: ListingIndex, query: DiscoverQuery, after: RankedPosition | null): Promise<DiscoverAnswer> {
    await index.current();
    const key = keyOf(query);
    const order = query.sort === 'relevance' ? null : index.order(query.sort);
    for (let isMyTurn = false; ; isMyTurn = true) {
      const matches = await index.matches(query.filter);
      const limit = query.limit ?? (matches.total > MAX_UNLIMITED ? PAGE : 'all');
      const isLong = limit === 'all' && matches.total > MAX_UNLIMITED;
      const name = `${matches.version} ${key}`;
      const known = isLong ? undefined : (this.#answers.get(key, matches, order, after) ?? this.#underWay.get(name));
      if (known !== undefined) return known;
      if (isMyTurn && isLong) return this.#streamed(index, query, after, matches);
      if (isMyTurn) {
        const page = this.#page(index, query, after, matches, limit).finally(() => this.#underWay.delete(name));
        this.#underWay.set(name, page);
        this.#answers.keep(key, await page);
        return page;
      }
      // At most one answer that is not kept is begun per turn, because a view may sort its matches.
      await turns.next();
    }
  }

  async #page(
    index: ListingIndex,
    query: DiscoverQuery,
    after: RankedPosition | null,
    matches: Matches,
    limit: number | 'all',
  ): Promise<Page> {
    const { version, countsVersion } = matches;
    const steps = new Steps();
    const view = viewOf(index, query, matches);
    const counts = countsText(matches);
    if (steps.isOver) await steps.next();
    const { entries, more, batches } = await collect(view, after, limit === 'all' ? MAX_UNLIMITED : limit, steps);
    const texts: string[] = [];
    for (let i = 0; i < entries.length; i += 50) {
      if (steps.isOver) await steps.next();
      texts.push(this.#write(entries.slice(i, i + 50), query.language, query.fields));
    }
    const last = entries.at(-1);
    const cursor =
      more && last !== undefined ? `,"next_cursor":"${cursorAfter(last, query.sort, view.rankOf(last))}"` : '';
    const body = `{"services":[${texts.join(',')}],${counts}${cursor}}`;
    // A listing added after the last page must be noticed, so that page depends on its matches.
    const chunks = more ? (view.chunksAfter(after)?.slice(0, batches) ?? null) : null;
    return { body, etag: etagOf(query.language, body), version, countsVersion, chunks };
  }

  #streamed(index: ListingIndex, query: DiscoverQuery, after: RankedPosition | null, matches: Matches): DiscoverAnswer {
    const { filter, sort, language, fields, cursor } = query;
    // The body depends only on these. So its tag is known before it is made, and is the same on every gateway.
    const source = JSON.stringify([VERSION, keyOfFilter(filter), sort, cursor, matches.digest(), fields]);
    const view = viewOf(index, query, matches);
    const areChunks = after === null && index.isEverything(filter);
    const piece = (entries: readonly Entry[]): Uint8Array =>
      fields === undefined
        ? this.#pieces.get(entries, language, areChunks)
        : Buffer.from(`,${this.#write(entries, language, fields)}`);
    return { etag: etagOf(language, source), body: streamedPieces(view, after, piece, countsText(matches)) };
  }

  #write(entries: readonly Entry[], language: Language, fields?: readonly FoundName[]): string {
    return entries.map((entry) => this.#writer.write(entry, language, fields)).join(',');
  }
}

/** @param piece  services with a comma before the first */
async function* streamedPieces(
  view: View,
  after: RankedPosition | null,
  piece: (entries: readonly Entry[]) => Uint8Array,
  counts: string,
): AsyncGenerator<Uint8Array> {
  yield Buffer.from('{"services":[');
  let isFirst = true;
  let isOver = stepEnd();
  for (const entries of view.batches(after)) {
    if (isOver()) {
      await turns.next();
      isOver = stepEnd();
    }
    if (entries.length === 0) continue;
    const bytes = piece(entries);
    // Kept pieces are sent uncopied: copies would make 46 MB of garbage for each caller at 100 000 listings.
    yield isFirst ? bytes.subarray(1) : bytes;
    isFirst = false;
    // A caller that reads fast must not cause several steps in one turn.
    await turns.next();
    isOver = stepEnd();
  }
  yield Buffer.from(`],${counts}}`);
}

/** Up to `limit` matches after the position, whether more follow, and how many batches were read. */
async function collect(
  view: View,
  after: RankedPosition | null,
  limit: number,
  steps: Steps,
): Promise<{ readonly entries: readonly Entry[]; readonly more: boolean; readonly batches: number }> {
  const entries: Entry[] = [];
  let batches = 0;
  for (const batch of view.batches(after)) {
    batches++;
    entries.push(...batch.slice(0, limit + 1 - entries.length));
    if (entries.length > limit) break;
    if (steps.isOver) await steps.next();
  }
  return { entries: entries.slice(0, limit), more: entries.length > limit, batches };
}

const viewOf = (index: ListingIndex, { filter, sort }: DiscoverQuery, matches: Matches): View =>
  new View(index, matches, index.isEverything(filter), sort);

const countsText = (matches: Matches): string =>
  JSON.stringify({ categories: matches.categories(), total: matches.total }).slice(1, -1);

/** The same text for queries that ask for the same thing. */
const keyOf = ({ filter, sort, language, fields, limit, cursor }: DiscoverQuery): string =>
  JSON.stringify([language, sort, limit, cursor, fields]) + keyOfFilter(filter);

const etagOf = (language: Language, source: string): string =>
  `"${language}-${createHash('sha256').update(source).digest('base64url').slice(0, 22)}"`;
