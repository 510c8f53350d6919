import { isUuid } from '../../platform/ids.ts';
import type { Entry } from './entry.ts';
import { MAX_RANK } from './words.ts';

export const SORTS = ['quality', 'price', 'name', 'newest'] as const;
export type Sort = (typeof SORTS)[number];
/** `relevance`: by the rank of the words, then by quality. */
export type AnySort = Sort | 'relevance';

/**
 * Position of a listing in a sort: by ascending value, then by id, so that no two listings have the same position. Names are folded
 * and compared by UTF-16 code unit, not by the rules of a language, so that a cursor means the same on every gateway.
 */
export type Position = { readonly value: number | string; readonly id: string };
/** Only the sort by relevance has ranks; in others the rank is 0. */
export type RankedPosition = Position & { readonly rank: number };

/** Maximum length of a cursor. The longest that `cursorAfter` makes is shorter, so a longer one is refused. */
export const MAX_CURSOR_LENGTH = 1_000;

function sortValue(entry: Entry, sort: AnySort): number | string {
  switch (sort) {
    case 'quality':
    case 'relevance':
      return -entry.quality.lowerBound;
    case 'price':
      return entry.cheapest.priceMicros;
    case 'name':
      return entry.name;
    case 'newest':
      return -entry.listing.createdAtMs;
  }
}

/** Negative if the entry comes before the position in this sort, 0 if it is at it. */
export function compareTo(entry: Entry, position: Position, sort: AnySort): number {
  const value = sortValue(entry, sort);
  if (value !== position.value) return value < position.value ? -1 : 1;
  const { id } = entry.listing;
  if (id === position.id) return 0;
  return id < position.id ? -1 : 1;
}

export function compareEntries(a: Entry, b: Entry, sort: AnySort): number {
  const [left, right] = [sortValue(a, sort), sortValue(b, sort)];
  if (left !== right) return left < right ? -1 : 1;
  return a.listing.id < b.listing.id ? -1 : 1;
}

export const positionOf = (entry: Entry, sort: AnySort): Position => ({
  value: sortValue(entry, sort),
  id: entry.listing.id,
});

/** A cursor for the page that begins after this entry. Opaque to clients: base64url of `[sort, value, id]`, or with the rank. */
export function cursorAfter(entry: Entry, sort: AnySort, rank: number): string {
  const parts = [sort, sortValue(entry, sort), entry.listing.id, ...(sort === 'relevance' ? [rank] : [])];
  return Buffer.from(JSON.stringify(parts)).toString('base64url');
}

/**
 * The position after which the cursor's page begins, or null when the text is not a cursor of this sort. The listing from which the
 * cursor was made may have changed or be gone: the cursor marks a position in the order, not a listing.
 */
export function parseCursor(cursor: string, sort: AnySort): RankedPosition | null {
  let parts: unknown;
  try {
    parts = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'));
  } catch {
    return null;
  }
  if (!Array.isArray(parts) || parts.length !== (sort === 'relevance' ? 4 : 3) || parts[0] !== sort) return null;
  const [, value, id, rank = 0] = parts as unknown[];
  if (typeof id !== 'string' || !isUuid(id)) return null;
  if (!Number.isInteger(rank) || (rank as number) < 0 || (rank as number) > MAX_RANK) return null;
  const isRight = sort === 'name' ? typeof value === 'string' : typeof value === 'number';
  return isRight ? { value: value as number | string, id, rank: rank as number } : null;
}
