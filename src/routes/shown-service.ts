import type { Catalog } from '../catalog/catalog.ts';
import { chooseLanguage, languageHeaders } from '../catalog/languages.ts';
import type { Listing } from '../catalog/listing.ts';
import type { Shown as ShownListing } from '../catalog/listing-fields.ts';
import type { Operation } from '../catalog/operations/operation.ts';
import type { OperationsReader } from '../catalog/operations/operations-reader.ts';
import { fullItem } from '../catalog/present.ts';
import { selectLatestOperations } from '../catalog/sql.ts';
import type { ApiRequest, ApiResponse, ResponseDescription } from '../http/route.ts';
import { CACHE_CONTROL, LANGUAGE_HEADERS } from '../openapi/headers.ts';
import { json } from '../openapi/schemas.ts';
import type { Sql } from '../platform/postgres.ts';
import { selectFound } from '../watch/watch-sql.ts';
import { mayManage } from './named-service.ts';
import type { PriceNotice } from './price-notice.ts';
import { SERVICE, SERVICE_EXAMPLE } from './service-schemas.ts';

// A response that consists of one listing.

/** Finds out about services without calls of buyers. */
export type Watch = {
  /**
   * Starts to ask in the background whether a new endpoint and its health path answer, and returns at once.
   *
   * @param what 'health' asks the health path only
   */
  check(listing: Listing, what: 'all' | 'health'): void;
};

export type ShowDeps = {
  readonly catalog: Catalog;
  readonly sql: Sql;
  readonly operations: Pick<OperationsReader, 'read'>;
  readonly watch: Watch;
  readonly notice: Pick<PriceNotice, 'secondsFor' | 'foretold'>;
};

export type Shown = {
  readonly status: number;
  readonly lang?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  /** Fields that only this response has. */
  readonly once?: NonNullable<ShownListing['once']>;
  /** The operations that the provider wrote last, if Postgres does not have them yet. */
  readonly latest?: readonly Operation[];
};

/** No cache between gateway and caller may store a response that contains the only copy of a secret. */
const NO_STORE = { 'Cache-Control': 'no-store' };
export const NOT_STORED = { 'Cache-Control': { ...CACHE_CONTROL('no-store'), optional: true } } as const;

export const shows = (description: string, headers: ResponseDescription['headers'] = {}): ResponseDescription =>
  json(description, SERVICE, SERVICE_EXAMPLE, { ...LANGUAGE_HEADERS, ...headers });

export async function show(
  { catalog, operations, sql, notice }: ShowDeps,
  listing: Listing,
  request: ApiRequest,
  { status, lang, headers, once = {}, latest }: Shown,
): Promise<ApiResponse> {
  const language = chooseLanguage(lang, request.header('accept-language'));
  const isOwner = mayManage(request.caller, listing);
  const body = fullItem(isOwner ? 'owner' : 'anyone', {
    listing,
    ...catalog.besideOf(listing),
    language,
    once,
    operations: await operations.read(listing),
    ...(isOwner && {
      found: (await selectFound(sql, [listing.id])).get(listing.id),
      noticeSeconds: await notice.foretold(listing),
    }),
    ...(isOwner && hasAnnouncedOperations(listing)
      ? { announced: latest ?? (await selectLatestOperations(sql, listing.id)) }
      : {}),
  });
  const caching = 'signing_secret' in once ? NO_STORE : {};
  return { status, body, headers: { ...headers, ...languageHeaders(language), ...caching } };
}

/** Announcements contain only prices; somebody who edits operations needs all their fields. */
const hasAnnouncedOperations = ({ next, operationTerms }: Listing): boolean =>
  next !== null && next.operationTerms !== operationTerms;
