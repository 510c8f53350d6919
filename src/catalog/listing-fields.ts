import { type Audience, type Fields, view } from '../platform/fields.ts';
import { timeOfId } from '../platform/ids.ts';
import { microsToUsd } from '../platform/money.ts';
import { EXAMPLE, type JsonSchema, list, TEXT, TIME, UUID, usd } from '../platform/schemas.ts';
import type { Beside } from './beside.ts';
import { blockedBuyersIn } from './blocked-buyers.ts';
import { type CheapestCall, cheapestCall } from './cheapest-call.ts';
import { freeCallsLabel, priceLabel } from './labels.ts';
import type { Language } from './languages.ts';
import { healthUrl } from './links.ts';
import type { Listing } from './listing.ts';
import {
  HEALTH_FOUND,
  NEXT_PRICE,
  OPERATION,
  OPERATION_EXAMPLE,
  PROVIDER,
  PROVIDER_EXAMPLE,
  TRACK_RECORD,
  UPTIME,
} from './listing-schemas.ts';
import { storedPairs, storedSigningKeys } from './listing-secrets.ts';
import { nextPrice, nextPriceWithOperations } from './notice/next-price.ts';
import type { Operation } from './operations/operation.ts';
import type { Quality } from './quality.ts';

/** A listing, and what else a response shows about it. */
export type Shown = Beside & {
  readonly listing: Listing;
  readonly language: Language;
  /** Of the listing, if it is known already. */
  readonly cheapest?: CheapestCall;
  /** Whether it is shown in a search, where long fields would make the list long. */
  readonly isShort?: true;
  /** What the gateway found out by asking the endpoint and the health path; only in what the provider and admins see. */
  readonly found?: Found | undefined;
  /** The operations as the provider wrote them; absent in lists. */
  readonly operations?: readonly Operation[];
  /** How long before it takes effect a change that may make calls more expensive is announced. */
  readonly noticeSeconds?: number;
  /** The announced operations, as the provider wrote them. */
  readonly announced?: readonly Operation[];
  /** Fields that only the response to a change has. */
  readonly once?: {
    readonly signing_secret?: string;
    readonly forgotten_upstream_headers?: readonly string[];
    readonly forgotten_upstream_query?: readonly string[];
  };
  /** The label of the provider's account. */
  readonly providerLabel?: string;
};

/** What the gateway found out when it asked the service. */
type Found = {
  /** Null: the endpoint was not asked yet. */
  readonly reachable: boolean | null;
  /** Why the endpoint gave no answer. */
  readonly reason: string | undefined;
  readonly checkedAt: Date | null;
  /** For the present health path; absent: not asked yet. */
  readonly health?: {
    readonly up: boolean;
    readonly status: number | null;
    /** Why the service does not count as up. */
    readonly reason: string | undefined;
    readonly askedAt: Date;
  };
};

/** Maximum number of characters (code points) of a description in /discover; a longer one is cut there and gets an ellipsis. */
const SHORT_DESCRIPTION = 200;

/** The first 200 characters and '…', or the whole text if it is not longer. Never splits a surrogate pair. */
export function shorten(text: string): string {
  let end = 0;
  // A loop, because `[...text]` took 4.7 µs for 400 characters and this takes 1.0 µs.
  for (let points = 0; points < SHORT_DESCRIPTION && end < text.length; points++) {
    end += (text.codePointAt(end) as number) > 0xffff ? 2 : 1;
  }
  return end === text.length ? text : `${text.slice(0, end)}…`;
}

/**
 * @param column  the columns that the field comes from; null: none. Only test/integration/who-sees-what.test.ts reads it: sql.ts names
 *                what it selects
 * @param from    where its value is in `Listing`, or what makes it. Null and undefined: the record does not have the field
 */
const row =
  <By extends Audience>(audience: By) =>
  (
    column: string | null,
    schema: JsonSchema,
    from: keyof Listing | ((shown: Shown) => unknown),
    example?: unknown,
  ) => ({
    audience,
    schema,
    example,
    ...(column === null ? {} : { column }),
    json: typeof from === 'string' ? ({ listing }: Shown): unknown => listing[from] : from,
  });
const [anyone, owner, admin] = [row('anyone'), row('owner'), row('admin')];
/** Whether searches show it, too. */
const searched = (...field: Parameters<typeof anyone>) => ({ ...anyone(...field), isSearched: true });
/** Whether records may lack it. */
const maybe = <Row>(field: Row) => ({ ...field, isOptional: true });

const is = (type: string, description: string, more: JsonSchema = {}) => ({ type, ...more, description });
const from1 = (description: string) => is('integer', description, { minimum: 1 });
const oneOf = (...values: string[]) => ({ type: 'string', enum: values });
const names = (description: string) => list(TEXT, description);
const SCORE = { type: 'number', minimum: 0, maximum: 100 };
const FREE = 'Per buyer account; absent when there are none';
const PATH = 'Calls go to this path, and below it';
const TIMEOUT = 'How long a call may wait for the response head';
const IDLE = 'The longest silence within a response, if it is set';
const ONLY = 'Calls that match no operation are refused';
const OPERATIONS = 'As the provider wrote them; absent in lists';
const ENDPOINT = "Shown to keys of its provider's account and to admins only";
const CHECKED = 'When it was asked; shown to its provider and to admins only';
const HEADERS = 'Names of the headers that the gateway adds to calls; shown to its provider and to admins only';
const QUERY =
  'Names of the parameters that the gateway adds to the query of calls; shown to its provider and to admins only';
const BLOCKED = 'Pseudonyms of buyers whose calls are refused; shown to its provider and to admins only';
const SIGNED = 'Whether calls are signed; shown to its provider and to admins only';
const ONCE = 'Only in the response to the request that made it';
const LABEL = "The label of the provider's account";
const TREND = 'The quality less that of seven days before; absent when too little was known then';
const RATED = 'Whether calls went into the quality. What nobody has called yet is not rated, and has 50';
const MAX = 'The highest amount that the service may report for a call; absent: calls cost the price';
const NEXT = 'next_from, next_price, next_max_price, next_free_calls, next_only_operations, next_operation_terms';
const FORWARD = 'Credential headers that the service asks callers for, if any; see X-ACF-Forward';
const ASKED = 'Whether a new endpoint answered when it was asked once; shown to its provider and to admins only';
const UNANSWERED = 'Why it gave no answer, if it did not; shown to its provider and to admins only';
const NOTICE =
  'How long a change is announced after which a call may cost more; shown to its provider and to admins only, absent in lists';
const ANNOUNCED =
  'The operations of next_price as the provider wrote them, if these change; shown to its provider and to admins only, absent in lists';
const FORGOTTEN = 'Only in the response to a change of the endpoint that removed these headers';
const FORGOTTEN_QUERY = 'The same of the query';

/**
 * Where a listing is called. Clients append a path to the address of an HTTP service. The address of an MCP server is complete:
 * many servers redirect a message whose path has an additional slash, and clients of the protocol do not follow redirects.
 */
const proxyPath = ({ id, protocol }: Pick<Listing, 'id' | 'protocol'>): string =>
  `/api/v1/proxy/${id}${protocol === 'mcp' ? '' : '/'}`;
const EXAMPLE_PATH = proxyPath({ id: EXAMPLE.serviceId, protocol: 'http' });
const descriptionOf = ({ listing: { description }, isShort }: Shown) => (isShort ? shorten(description) : description);
const maxPrice = ({ listing: { maxPriceMicros } }: Shown) =>
  maxPriceMicros === null ? null : microsToUsd(maxPriceMicros);
const priceLabelOf = ({ listing, cheapest, language }: Shown) =>
  priceLabel(cheapest ?? cheapestCall(listing), language);
const freeLabel = ({ listing: { freeCalls }, language }: Shown) => freeCalls > 0 && freeCallsLabel(freeCalls, language);
const next = ({ listing, isShort }: Shown) =>
  listing.next && (isShort ? nextPrice : nextPriceWithOperations)(listing, listing.next);
const namesOf = (text: string | null) => storedPairs(text).map(([name]) => name);
const keyid = ({ listing }: Shown) => storedSigningKeys(listing.signingKeys)[0]?.keyid;
function healthOf({ listing: { endpoint, healthPath }, found }: Shown): object | null {
  if (healthPath === null) return null;
  const { up, status, reason, askedAt } = found?.health ?? {};
  return {
    url: healthUrl(endpoint, healthPath),
    ...(up === undefined ? {} : { up }),
    ...(status == null ? {} : { status }),
    ...(reason === undefined ? {} : { reason }),
    ...(askedAt === undefined ? {} : { asked_at: askedAt.toISOString() }),
  };
}
/** In a search only the name, so that a list is short, and does not change with each new listing of the same provider. */
function providerOf({ listing: { providerId }, profile, services, isShort }: Shown): object | null {
  const name = profile?.displayName == null ? {} : { display_name: profile.displayName };
  if (isShort) return profile?.displayName == null ? null : name;
  return {
    ...name,
    ...(profile?.contact == null ? {} : { contact: profile.contact }),
    ...(profile?.url == null ? {} : { url: profile.url }),
    since: iso(timeOfId(providerId)),
    services,
  };
}
function trackRecord({ record }: Quality): object | null {
  if (record === null) return null;
  const { calls, buyers, successRate, latencyMs } = record;
  return { calls, success_rate: successRate, buyers, ...(latencyMs === null ? {} : { latency_ms: latencyMs }) };
}
const iso = (ms: number): string => new Date(Math.trunc(ms)).toISOString();

/** A listing. Its owner is its provider's account. Only the names of its secrets are shown, and only to the owner. */
export const LISTING = {
  id: searched('id', UUID, 'id', EXAMPLE.serviceId),
  name: searched('name', TEXT, 'name', 'Translate'),
  description: searched('description', TEXT, descriptionOf, 'Translates text into 30 languages.'),
  price: searched('price', usd('Price of a call'), ({ listing }) => microsToUsd(listing.priceMicros), 0.002),
  max_price: maybe(searched('max_price', usd(MAX), maxPrice)),
  price_label: searched(null, TEXT, priceLabelOf, '$0.002 per call'),
  free_calls: maybe(searched('free_calls', from1(FREE), ({ listing }) => listing.freeCalls || null, 100)),
  free_calls_label: maybe(searched(null, TEXT, (shown) => freeLabel(shown) || null, '100 free calls')),
  category: searched('category', TEXT, 'category', 'language'),
  quality: searched(null, SCORE, ({ quality }) => quality.value, 50),
  quality_trend: maybe(
    searched(null, is('number', TREND, { minimum: -100, maximum: 100 }), ({ quality }) => quality.trend),
  ),
  rated: searched(null, is('boolean', RATED), ({ quality }) => quality.record !== null, false),
  track_record: maybe(searched(null, TRACK_RECORD, ({ quality }) => trackRecord(quality))),
  proxy_path: searched(null, is('string', PATH), ({ listing }) => proxyPath(listing), EXAMPLE_PATH),
  next_price: maybe(searched(NEXT, NEXT_PRICE, next)),
  uptime: maybe(searched(null, UPTIME, ({ uptime }) => uptime)),
  provider: maybe(searched('display_name, contact, url', PROVIDER, providerOf, PROVIDER_EXAMPLE)),
  docs_url: maybe(anyone('docs_url', is('string', 'A page about the service, for people'), 'docsUrl')),
  status: anyone('status', oneOf('active', 'paused', 'removed'), 'status', 'active'),
  protocol: anyone('protocol', oneOf('http', 'mcp'), 'protocol', 'http'),
  timeout_seconds: anyone('timeout_seconds', from1(TIMEOUT), 'timeoutSeconds', 60),
  idle_seconds: maybe(anyone('idle_seconds', from1(IDLE), 'idleSeconds')),
  only_operations: anyone('only_operations', is('boolean', ONLY), 'onlyOperations', false),
  forward_headers: maybe(anyone('forward_headers', names(FORWARD), (at) => at.listing.forwardHeaders?.split(','))),
  operations: maybe(anyone('operations', list(OPERATION, OPERATIONS), (at) => at.operations, [OPERATION_EXAMPLE])),
  provider_id: anyone('provider_id', UUID, 'providerId', EXAMPLE.providerId),
  endpoint: owner('endpoint', is('string', ENDPOINT), 'endpoint', 'https://translate.example.com/v1'),
  health_path: owner(
    'health_path',
    is('string', 'Asked every minute; shown to its provider and to admins only'),
    'healthPath',
  ),
  health: owner(null, HEALTH_FOUND, healthOf),
  reachable: owner(null, is('boolean', ASKED), (shown) => shown.found?.reachable),
  reachable_reason: owner(null, is('string', UNANSWERED), (shown) => shown.found?.reason),
  checked_at: owner(null, { ...TIME, description: CHECKED }, (shown) => shown.found?.checkedAt?.toISOString()),
  upstream_headers: owner('upstream_headers', names(HEADERS), ({ listing }) => namesOf(listing.upstreamHeaders), [
    'x-api-key',
  ]),
  upstream_query: owner('upstream_query', names(QUERY), ({ listing }) => namesOf(listing.upstreamQuery), []),
  blocked_buyers: owner('blocked_buyers', names(BLOCKED), ({ listing }) => blockedBuyersIn(listing.blockedBuyers), []),
  signed: owner(null, is('boolean', SIGNED), (shown) => keyid(shown) !== undefined, false),
  signing_keyid: owner(null, is('string', 'The keyid of signatures by the present secret'), keyid),
  price_notice_seconds: owner(null, is('integer', NOTICE, { minimum: 0 }), ({ noticeSeconds }) => noticeSeconds),
  announced_operations: owner('next_operations', list(OPERATION, ANNOUNCED), ({ announced }) => announced),
  signing_secret: owner(null, is('string', ONCE), ({ once }) => once?.signing_secret),
  forgotten_upstream_headers: owner(null, names(FORGOTTEN), ({ once }) => once?.forgotten_upstream_headers),
  forgotten_upstream_query: owner(null, names(FORGOTTEN_QUERY), ({ once }) => once?.forgotten_upstream_query),
  created_at: anyone('created_at', TIME, ({ listing }) => iso(listing.createdAtMs), EXAMPLE.time),
  updated_at: anyone('updated_at', TIME, ({ listing }) => iso(listing.updatedAtMicros / 1_000), EXAMPLE.time),
  provider_owner_id: admin(null, { ...TEXT, description: LABEL }, (shown) => shown.providerLabel, 'translators'),
} satisfies Fields;

type Name = keyof typeof LISTING;
type SearchedName = { [N in Name]: (typeof LISTING)[N] extends { readonly isSearched: boolean } ? N : never }[Name];
const NAMES = Object.keys(LISTING) as Name[];

/** What everybody, its provider, and an admin in the list of all, see of a listing. */
export const VIEWS = { anyone: view(LISTING, 'anyone'), owner: view(LISTING, 'owner'), admin: view(LISTING, 'admin') };
/** In a search. */
export const FOUND = view(
  LISTING,
  'anyone',
  NAMES.filter((name): name is Exclude<Name, SearchedName> => !('isSearched' in LISTING[name])),
);
/** The name of a field that searches show. */
export type FoundName = SearchedName;

/** The fields that searches show of those named, in the order in which they show them; or the first name that is none of these. */
export function foundNames(asked: readonly string[]): readonly FoundName[] | { readonly unknown: string } {
  const unknown = asked.find((name) => !FOUND.names.some((known) => known === name));
  return unknown === undefined ? FOUND.names.filter((name) => asked.includes(name)) : { unknown };
}

/** A listing as an agent needs it to make a call; its operations are added, with the price of each. */
export const CALLABLE = view(LISTING, 'anyone', ['status', 'operations', 'provider_id', 'created_at', 'updated_at']);
/** Fields that a record may lack: because nothing is set, or because of who asks. */
export const OPTIONAL = NAMES.filter((name) => 'isOptional' in LISTING[name] || LISTING[name].audience === 'owner');

/** The fields with these names that the listing has. */
export function writeListing(names: readonly Name[], shown: Shown): Record<string, unknown> {
  const written: Record<string, unknown> = {};
  for (const name of names) {
    const value = LISTING[name].json(shown);
    if (value !== undefined && value !== null) written[name] = value;
  }
  return written;
}
