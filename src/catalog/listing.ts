import type { Protocol, StoredOperations } from './operations/operation.ts';

export type ListingStatus = 'active' | 'paused' | 'removed';

/** A catalogued service. Records are immutable, and a change makes a new record: caches may use the record as their key. */
export type Listing = {
  readonly id: string;
  /** The account that sells the service. */
  readonly providerId: string;
  readonly name: string;
  readonly description: string;
  /** Where the service lives, as the provider wrote it; passes `endpointFault`. */
  readonly endpoint: string;
  /** Price of one call in micro-USD; 0 = free. */
  readonly priceMicros: number;
  /** The highest amount in micro-USD that the service may report for a call; null: calls are not priced by use. */
  readonly maxPriceMicros: number | null;
  /** Free calls per buyer; 0 = none. */
  readonly freeCalls: number;
  readonly category: string;
  /** How long a call may wait for the response head. */
  readonly timeoutSeconds: number;
  /** The longest silence within a response of the service; null: the gateway's default (`IDLE_BODY_SECONDS`). */
  readonly idleSeconds: number | null;
  readonly protocol: Protocol;
  /** Whether calls that match no operation are refused. */
  readonly onlyOperations: boolean;
  /**
   * JSON text of `OperationTerms`, or null if the listing has no operations. Text, so that two readings of a row can be compared.
   * `selectOperations` reads the operations themselves.
   */
  readonly operationTerms: string | null;
  /** Announced terms by which a call may cost more. `Catalog.get` gives a listing without the terms that do not apply yet. */
  readonly next: NextTerms | null;
  /** When the present terms began to count, if they were announced; distinguishes them from earlier terms of the same row. */
  readonly termsFromMs: number | null;
  /** The address of a page about the service, for people. `docsUrlFault` has checked it. */
  readonly docsUrl: string | null;
  /** The path below the endpoint that is asked every minute to find out whether the service is up; passes `healthPathFault`. */
  readonly healthPath: string | null;
  /** Headers that the gateway adds to calls: text that `storedPairs` reads, with encrypted values; null if there are none. */
  readonly upstreamHeaders: string | null;
  /** Parameters that the gateway adds to the query of calls; as `upstreamHeaders`. */
  readonly upstreamQuery: string | null;
  /** Keys that sign calls: text that `storedSigningKeys` reads, with encrypted secrets; null if calls are not signed. */
  readonly signingKeys: string | null;
  /** Names of the credential headers that the service asks callers for, joined by commas; null if it asks for none. */
  readonly forwardHeaders: string | null;
  /** Pseudonyms of buyers whose calls are refused: text that `blockedBuyersIn` reads; null if there are none. */
  readonly blockedBuyers: string | null;
  readonly status: ListingStatus;
  /** Whether the provider's account is suspended: its services are then offered to nobody, whatever their status. */
  readonly isSuspended: boolean;
  readonly createdAtMs: number;
  /** Increases with every change of the row or of `isSuspended` by Tollgate: of two readings, the higher value is the newer. */
  readonly updatedAtMicros: number;
  /** Hash of the row's id and of the transaction that wrote it (`selectBucketSums`): it differs after any change, even by hand. */
  readonly rowHash: number;
};

/** Everything that decides what a call of a listing costs. */
export type Terms = Pick<Listing, 'priceMicros' | 'maxPriceMicros' | 'freeCalls' | 'onlyOperations' | 'operationTerms'>;

/** Terms by which a call may cost more than today, and the time from which they count. */
export type NextTerms = Terms & {
  /** By the clock of Postgres. */
  readonly fromMs: number;
};

/** What a provider states about a service. */
export type ListingFields = Pick<
  Listing,
  | 'name'
  | 'description'
  | 'endpoint'
  | 'priceMicros'
  | 'maxPriceMicros'
  | 'freeCalls'
  | 'category'
  | 'timeoutSeconds'
  | 'idleSeconds'
  | 'onlyOperations'
  | 'docsUrl'
  | 'healthPath'
  | 'upstreamHeaders'
  | 'upstreamQuery'
  | 'signingKeys'
  | 'forwardHeaders'
> & { readonly operations: StoredOperations | null };

/**
 * A partial change. The status `removed` cannot be set this way: `removeListing` does it. The protocol never changes, because all
 * callers of the service would have to change with it.
 */
export type ListingPatch = Partial<ListingFields & Pick<Listing, 'blockedBuyers'>> & {
  readonly status?: 'active' | 'paused';
};

export const DEFAULT_TIMEOUT_SECONDS = 60;
export const MAX_IDLE_SECONDS = 3_600;
export const MAX_ENDPOINT_LENGTH = 2048;
export const MAX_FREE_CALLS = 1_000_000_000;
/** A category: lower-case words joined by single hyphens, at most 50 characters. */
export const CATEGORY_PATTERN = '^[a-z0-9]+(-[a-z0-9]+)*$';
export const MAX_CATEGORY_LENGTH = 50;

/**
 * What is wrong with an endpoint, or null when it is good: an absolute http(s) URL to which the proxy can append a path.
 * A query or a fragment would swallow the appended path, and credentials do not belong in a public catalog.
 *
 * The URL parser silently repairs many faults, such as tabs, backslashes and spaces around the URL. A URL with such a fault is
 * refused, because the provider and the upstream client must read the same URL. This accepts exactly what the upstream client
 * accepts; a test compares the two, since neither may import the other.
 */
export function endpointFault(endpoint: string): string | null {
  if (endpoint.length > MAX_ENDPOINT_LENGTH) return `must be at most ${MAX_ENDPOINT_LENGTH} characters`;
  if (/[\p{Cc}\s\\]/u.test(endpoint)) return 'must not contain spaces, control characters or backslashes';
  if (!/^https?:\/\/[^/]/i.test(endpoint)) return 'must be an absolute http or https URL';
  if (endpoint.includes('?')) return 'must not have a query';
  if (endpoint.includes('#')) return 'must not have a fragment';
  if (endpoint.split('/', 3)[2]?.includes('@')) return 'must not contain a user name or password';
  const url = parseUrl(endpoint);
  return url === null ? 'must be a valid URL' : hostFault(url);
}

/** Not `URL.canParse`: once V8 has optimised it, Node 20.20 reads Latin-1 as UTF-8 there and refuses `http://bücher.example`. */
export function parseUrl(text: string): URL | null {
  try {
    return new URL(text);
  } catch {
    return null;
  }
}

function hostFault(url: URL): string | null {
  if (url.port === '0') return 'must have a port between 1 and 65535';
  const host = url.hostname.replace(/\.$/, '');
  // The parser has checked the address in brackets (IPv6), and writes every IPv4 address in dotted form.
  const isName = host.startsWith('[') || /^[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*$/.test(host);
  return isName && host.length <= 253 ? null : 'must have a domain name or an address as its host';
}

/** What is wrong with a name, or null. The caller must trim it first. */
export function nameFault(name: string): string | null {
  const length = [...name].length;
  if (length < 1 || length > 100) return 'must have 1 to 100 characters, not counting spaces around it';
  if (/\p{Cc}/u.test(name)) return 'must not contain control characters';
  return null;
}

export const MAX_DESCRIPTION_LENGTH = 2_000;

/** What is wrong with a description, or null. Text in any language is good, with line breaks and tabs. */
export function descriptionFault(description: string): string | null {
  if (/[^\P{Cc}\t\n\r]/u.test(description))
    return 'must not contain control characters other than line breaks and tabs';
  return null;
}
