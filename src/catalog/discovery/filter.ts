import type { Entry } from './entry.ts';
import { gramsOf, type Signatures } from './signatures.ts';
import { NO_MATCH, rankOf, searchedText } from './words.ts';

/** What a listing must have to match. An absent field matches everything. */
export type Filter = {
  readonly category?: string;
  readonly minQuality?: number;
  /** Minimum share of calls that succeeded, from 0 to 1. A service without calls has none. */
  readonly minSuccess?: number;
  /** Maximum typical latency. */
  readonly maxLatencyMs?: number;
  /** Folded words (see `wordsOf`), each of which must occur in the name or the description. */
  readonly words: readonly string[];
  /** Whether some call must be free. A call priced by use is not free, even at a price of 0. */
  readonly free?: boolean;
  /** Some call must cost at most this, unless the service reports more. */
  readonly maxPriceMicros?: number;
};

/** The same text for filters that ask for the same thing. */
export function keyOfFilter({
  category,
  minQuality,
  minSuccess,
  maxLatencyMs,
  words,
  free,
  maxPriceMicros,
}: Filter): string {
  return JSON.stringify([category, minQuality, minSuccess, maxLatencyMs, free, maxPriceMicros, words]);
}

/** Judges entries. The conditions on the text are separate from all others, because texts seldom change, and cost more. */
export type Matcher = {
  /** Whether everything except the words matches. */
  hasTerms(entry: Entry): boolean;
  /** The rank of the words (0 if the filter has none), or NO_MATCH. */
  rankOf(entry: Entry): number;
};

export const MATCHES_ALL: Matcher = { hasTerms: () => true, rankOf: () => 0 };

export function matcherOf(filter: Filter, signatures: Pick<Signatures, 'mayContain'>): Matcher {
  // A long word is rare, and a listing without it need not be searched for the others.
  const words = filter.words.toSorted((a, b) => b.length - a.length);
  const grams = gramsOf(words);
  return {
    hasTerms: (entry) => hasTerms(entry, filter),
    rankOf: ({ listing, signature, searched }) => {
      if (words.length === 0) return 0;
      if (!signatures.mayContain(signature, grams)) return NO_MATCH;
      return rankOf(searched ?? searchedText(listing.name, listing.description), words);
    },
  };
}

function hasTerms({ listing, quality, cheapest }: Entry, filter: Filter): boolean {
  if (filter.category !== undefined && listing.category !== filter.category) return false;
  if (filter.minQuality !== undefined && quality.value < filter.minQuality) return false;
  const { record } = quality;
  if (filter.minSuccess !== undefined && (record?.successRate ?? -1) < filter.minSuccess) return false;
  if (filter.maxLatencyMs !== undefined && (record?.latencyMs ?? Infinity) > filter.maxLatencyMs) return false;
  if (filter.maxPriceMicros !== undefined && cheapest.priceMicros > filter.maxPriceMicros) return false;
  return filter.free === undefined || filter.free === cheapest.canBeFree;
}
