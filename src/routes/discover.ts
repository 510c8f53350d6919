import type { Catalog } from '../catalog/catalog.ts';
import type { DiscoverQuery, Discovery } from '../catalog/discovery/discovery.ts';
import type { Filter } from '../catalog/discovery/filter.ts';
import { MAX_CURSOR_LENGTH, SORTS } from '../catalog/discovery/sorts.ts';
import { wordsOf } from '../catalog/discovery/words.ts';
import { chooseLanguage, languageHeaders } from '../catalog/languages.ts';
import { CATEGORY_PATTERN, type Listing, MAX_CATEGORY_LENGTH } from '../catalog/listing.ts';
import { FOUND as FOUND_LISTING, type FoundName, foundNames } from '../catalog/listing-fields.ts';
import type { OperationsReader } from '../catalog/operations/operations-reader.ts';
import { agentItem } from '../catalog/present.ts';
import { ApiError, unavailableError } from '../errors.ts';
import { plainBaseUrl } from '../http/base-url.ts';
import { isKnown } from '../http/entity-tags.ts';
import { type ApiRequest, type ApiResponse, BodyInPieces, type FromSchema, type Route } from '../http/route.ts';
import type { KeyRecord } from '../keys/caller.ts';
import { ACCEPT_LANGUAGE, CACHE_CONTROL, LANGUAGE_HEADERS, VARY } from '../openapi/headers.ts';
import { COUNT, EXAMPLE, json, list, record, UUID } from '../openapi/schemas.ts';
import { usdToMicros } from '../platform/money.ts';
import type { StatsReader } from '../quality/stats-reader.ts';
import {
  CALLABLE_SERVICE,
  CALLABLE_SERVICE_EXAMPLE,
  LANG,
  LANG_QUERY,
  type LangQuery,
  LISTED_SERVICE,
} from './service-schemas.ts';
import { recentStats } from './stats.ts';

const QUERY = {
  type: 'object',
  additionalProperties: false,
  properties: {
    category: {
      type: 'string',
      maxLength: MAX_CATEGORY_LENGTH,
      pattern: CATEGORY_PATTERN,
      description: 'Only services of this category',
    },
    min_quality: { type: 'number', minimum: 0, maximum: 100, description: 'Only services of at least this quality' },
    min_success: {
      type: 'number',
      minimum: 0,
      maximum: 1,
      description:
        'Only services with at least this success_rate in their track record, which is rounded down; 0.99 is 99 %',
    },
    max_latency_ms: {
      type: 'number',
      minimum: 0,
      description: 'Only services with at most this latency_ms in their track record, which is rounded to two digits',
    },
    q: {
      type: 'string',
      maxLength: 200,
      description: 'Words that must all occur in name or description, also as parts of words',
    },
    free: {
      type: 'boolean',
      description: 'true: only services with a call that is free, or that their free calls serve; false: only others',
    },
    max_price: {
      type: 'number',
      minimum: 0,
      description: 'The highest price in USD of the cheapest call, at most 6 decimals',
    },
    sort: {
      type: 'string',
      enum: [...SORTS],
      description:
        'Best, cheapest, first name or newest first. If absent: with q, matches in names before those in descriptions, ' +
        'whole words before parts, then the best; otherwise the best',
    },
    limit: {
      anyOf: [
        { type: 'integer', minimum: 1, maximum: 1000 },
        { type: 'string', const: 'all' },
      ],
      description: 'Services on a page. If absent: all of up to 1000, otherwise 100',
    },
    cursor: {
      type: 'string',
      maxLength: MAX_CURSOR_LENGTH,
      description: 'next_cursor of the previous page, which had the same sort',
    },
    fields: {
      type: 'string',
      maxLength: 300,
      description: `Thins the answer: each service has only these fields, even if ListedService requires more. Joined by commas: ${FOUND_LISTING.names.join(', ')}`,
    },
    lang: LANG,
  },
} as const;
type Query = FromSchema<typeof QUERY>;

/** The request headers on which the page of one service depends: the language, and the caller. */
const OF_CALLER = 'Accept-Language, Authorization, X-Api-Key';

const FOUND = record(
  'FoundServices',
  {
    services: list(LISTED_SERVICE),
    categories: list(
      record('CategoryCount', { category: { type: 'string' }, services: COUNT }),
      'Of all that match, the largest first; the first 500, if there are more',
    ),
    total: { ...COUNT, description: 'How many services match, on all pages' },
    next_cursor: { type: 'string', description: 'Absent on the last page' },
  },
  { optional: ['next_cursor'] },
);
const HEADERS = {
  ETag: { description: 'For If-None-Match', schema: { type: 'string' }, example: '"en-mS3kq0VZ2b7Yw1Xc8Rd4Tg"' },
  'Cache-Control': CACHE_CONTROL('no-cache'),
  ...LANGUAGE_HEADERS,
};

/**
 * `GET /discover`: anybody may search for services. `total` and `categories` count all services that match the filters, not
 * only those on the page; `next_cursor` is present if more services follow. Sorting by name ignores case and goes by code unit.
 */
export function discoverRoutes(deps: {
  readonly catalog: Catalog;
  readonly discovery: Discovery;
  readonly operations: Pick<OperationsReader, 'read'>;
  readonly stats: Pick<StatsReader, 'readSoon'>;
  /** `readFreeLeft`. */
  readonly readFreeLeft: (key: KeyRecord, listing: Listing) => Promise<number | null>;
  readonly trustedProxyHops: number;
}): Route[] {
  const { catalog, discovery, operations, stats, trustedProxyHops } = deps;
  return [
    {
      method: 'GET',
      path: '/api/v1/discover',
      summary: 'Active services with prices and free calls, filtered, sorted, in the language of the caller',
      access: 'anyone',
      fromMemory: true,
      query: QUERY,
      requestHeaders: {
        ...ACCEPT_LANGUAGE,
        'If-None-Match': {
          description: 'ETag of an earlier response: if it still holds, the response is 304',
          schema: { type: 'string' },
          example: '"en-mS3kq0VZ2b7Yw1Xc8Rd4Tg"',
        },
      },
      responses: {
        200: json(
          'One page of the services that match',
          FOUND,
          { services: [FOUND_LISTING.example], categories: [{ category: 'language', services: 1 }], total: 1 },
          HEADERS,
        ),
        304: { description: 'What If-None-Match names still holds', headers: HEADERS },
      },
      handle: async (request: ApiRequest<undefined, Query>): Promise<ApiResponse> => {
        // Before the catalog is loaded the list would be empty, and callers would believe that.
        if (!catalog.ready()) throw unavailableError();
        const query = readQuery(request);
        const answer = await discovery.answer(query);
        if (answer === null) throw new ApiError('invalid_request', 'cursor: not issued by this list.');
        const headers = {
          ETag: answer.etag,
          // Caches may keep the answer but must revalidate it each time: a cache must not offer a paused service.
          'Cache-Control': 'no-cache',
          ...languageHeaders(query.language),
        };
        if (isKnown(answer.etag, request.header('if-none-match'))) return { status: 304, headers };
        return {
          status: 200,
          body: typeof answer.body === 'string' ? answer.body : new BodyInPieces(answer.body),
          headers: { 'Content-Type': 'application/json; charset=utf-8', ...headers },
        };
      },
    },
    {
      method: 'GET',
      path: '/api/v1/discover/:id',
      summary:
        'One active service as an agent needs it: whole description, a ready request, operations with schemas, examples and prices, statistics',
      access: 'anyone',
      query: LANG_QUERY,
      requestHeaders: ACCEPT_LANGUAGE,
      params: { id: { description: 'The service', schema: UUID, example: EXAMPLE.serviceId } },
      responses: {
        200: json('The service', CALLABLE_SERVICE, CALLABLE_SERVICE_EXAMPLE, {
          'Cache-Control': CACHE_CONTROL('private, no-cache'),
          ...LANGUAGE_HEADERS,
          Vary: VARY(OF_CALLER),
        }),
      },
      errors: ['service_not_found'],
      handle: async (request: ApiRequest<undefined, LangQuery>): Promise<ApiResponse> => {
        if (!catalog.ready()) throw unavailableError();
        const listing = catalog.get(request.params.id ?? '');
        if (listing === undefined || listing.status !== 'active') throw new ApiError('service_not_found');
        const language = chooseLanguage(request.query.lang, request.header('accept-language'));
        const { caller } = request;
        const [written, recent, freeLeft] = await Promise.all([
          operations.read(listing),
          recentStats(stats, listing.id),
          // Without this field the page is still true, so it is shown even while the wallet cannot be read.
          caller.kind === 'ip' ? null : deps.readFreeLeft(caller.key, listing).catch(nullIfUnavailable),
        ]);
        const baseUrl = plainBaseUrl(request, trustedProxyHops) ?? '';
        const item = agentItem({ listing, ...catalog.besideOf(listing), language, operations: written }, baseUrl);
        const body = {
          ...item,
          ...(recent === undefined ? {} : { stats: recent }),
          ...(freeLeft === null ? {} : { free_calls_left: freeLeft }),
        };
        // A cache shared by several callers must not give one of them the page of another.
        const cacheControl = caller.kind === 'ip' ? 'no-cache' : 'private, no-cache';
        const headers = { 'Cache-Control': cacheControl, ...languageHeaders(language), Vary: OF_CALLER };
        return { status: 200, body, headers };
      },
    },
  ];
}

function nullIfUnavailable(error: unknown): null {
  if (error instanceof ApiError && error.code === 'unavailable') return null;
  throw error;
}

function readQuery(request: ApiRequest<undefined, Query>): DiscoverQuery {
  const { sort, limit, cursor, lang, fields } = request.query;
  const filter = readFilter(request.query);
  return {
    filter,
    sort: sort ?? (filter.words.length > 0 ? 'relevance' : 'quality'),
    language: chooseLanguage(lang, request.header('accept-language')),
    ...(fields === undefined ? {} : { fields: readFields(fields) }),
    ...(limit === undefined ? {} : { limit }),
    ...(cursor === undefined ? {} : { cursor }),
  };
}

function readFields(text: string): readonly FoundName[] {
  const names = foundNames(text.split(',').map((name) => name.trim()));
  if (!('unknown' in names)) return names;
  const what = names.unknown === '' ? 'has an empty name' : `${names.unknown.slice(0, 50)} is not known`;
  throw new ApiError('invalid_request', `fields: ${what}. Searches show ${FOUND_LISTING.names.join(', ')}.`);
}

function readFilter({ category, q = '', free, max_price, ...bounds }: Query): Filter {
  const { min_quality, min_success, max_latency_ms } = bounds;
  const maxPriceMicros = max_price === undefined ? undefined : usdToMicros(max_price);
  if (maxPriceMicros === null) {
    throw new ApiError('invalid_request', 'max_price: must be a number of USD, 0 or more, with at most 6 decimals.');
  }
  return {
    words: wordsOf(q),
    ...(category === undefined ? {} : { category }),
    ...(min_quality === undefined ? {} : { minQuality: min_quality }),
    ...(min_success === undefined ? {} : { minSuccess: min_success }),
    ...(max_latency_ms === undefined ? {} : { maxLatencyMs: max_latency_ms }),
    ...(free === undefined ? {} : { free }),
    ...(maxPriceMicros === undefined ? {} : { maxPriceMicros }),
  };
}
