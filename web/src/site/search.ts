/** Parameters of the page that are those of `GET /discover`. */
export const FILTERS = ['q', 'category', 'min_quality', 'max_price', 'free', 'sort'] as const;

export type Search = {
  readonly q?: string;
  readonly category?: string;
  readonly min_quality?: number;
  readonly max_price?: number;
  readonly free?: boolean;
  readonly sort?: 'quality' | 'price' | 'name' | 'newest';
  readonly cursor?: string;
};

/** The search in an address. It is passed to the gateway unchanged, which reports what is wrong in it. */
export function searchOf(query: URLSearchParams): Search {
  const search: Record<string, string> = {};
  for (const name of [...FILTERS, 'cursor']) {
    const value = query.get(name);
    if (value !== null && value !== '') search[name] = value;
  }
  return search as Search;
}
