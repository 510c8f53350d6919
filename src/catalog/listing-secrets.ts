/**
 * The text forms of a listing's secrets. Their secret parts are encrypted (src/secrets/). They are text, so that two readings of a
 * row can be compared. Every gateway keeps them in memory, so that the first call of a listing need not ask Postgres.
 */

type StoredPair = readonly [name: string, sealedValue: string];

export type StoredSigningKey = {
  readonly keyid: string;
  /** The sealed secret. */
  readonly secret: string;
  /** When the key stops signing, in milliseconds since the epoch; absent: it is the present key. */
  readonly until?: number;
};

/** @param text  `Listing.upstreamHeaders`, or `upstreamQuery` */
export const storedPairs = (text: string | null): readonly StoredPair[] =>
  text === null ? [] : (JSON.parse(text) as StoredPair[]);

/** @param text  `Listing.signingKeys`; the present key is the first */
export const storedSigningKeys = (text: string | null): readonly StoredSigningKey[] =>
  text === null ? [] : (JSON.parse(text) as StoredSigningKey[]);

/** The text of a list; null if it is empty. */
export const textOf = (list: readonly StoredPair[] | readonly StoredSigningKey[]): string | null =>
  list.length === 0 ? null : JSON.stringify(list);

/**
 * Scheme, host and port of an endpoint, in one spelling: the server for which secrets of the listing are meant. It is `Origin.key`
 * of the upstream client, which this folder may not import; a test compares the two.
 */
export function originOf(endpoint: string): string {
  const { protocol, hostname, port } = new URL(endpoint);
  return `${protocol}//${hostname.replace(/\.$/, '')}:${port || (protocol === 'http:' ? 80 : 443)}`;
}

/** Maximum length of a header name that a listing adds. */
const MAX_HEADER_NAME_LENGTH = 64;
export const MAX_UPSTREAM_HEADERS = 10;
/** Enough for a JWT with many claims; many servers take at most 8 KiB for one header. */
export const MAX_HEADER_VALUE_LENGTH = 4_096;
/** Bounds the memory that every gateway needs for a listing, and leaves room in the 16 KiB that Node services accept for a head. */
export const MAX_UPSTREAM_HEADERS_LENGTH = 8_192;

/**
 * Headers that usually carry credentials. A client library may find another company's key in its environment, and send it without
 * being told to. The key would then reach the provider of this service. So these headers stop at the gateway, unless the listing
 * asks for them and the call agrees.
 */
export const CREDENTIAL_HEADERS = [
  'authorization',
  'proxy-authorization',
  'cookie',
  'x-api-key',
  'api-key',
  'x-goog-api-key',
  'x-auth-token',
] as const;

/**
 * The gateway writes these itself, because they say where a message goes, where it ends, or what the gateway knows about the call.
 */
const OURS = [
  'host',
  'expect',
  'via',
  'content-length',
  'transfer-encoding',
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'upgrade',
  'http2-settings',
];
const OUR_PREFIXES = ['x-acf-', 'proxy-', 'signature'];

/** RFC 9110 §5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Visible ASCII, with spaces between. */
const VALUE = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;

/** What is wrong with the name of a header that a listing adds, or null. An underscore counts as a hyphen, as CGI reads it. */
export function headerNameFault(name: string): string | null {
  if (name.length > MAX_HEADER_NAME_LENGTH || !TOKEN.test(name)) {
    return `each name must be that of an HTTP header, of at most ${MAX_HEADER_NAME_LENGTH} characters`;
  }
  const folded = name.toLowerCase().replaceAll('_', '-');
  if (!OURS.includes(folded) && !OUR_PREFIXES.some((prefix) => folded.startsWith(prefix))) return null;
  return `${name} cannot be set: the gateway writes it itself`;
}

/** What is wrong with the value of such a header, or of a parameter, or null. Never says what the value is. */
export function secretValueFault(value: string): string | null {
  return VALUE.test(value) ? null : 'must be visible ASCII characters, with spaces only between them';
}

export const MAX_UPSTREAM_PARAMETERS = 5;
/**
 * Maximum characters of all parameters: percent-encoded, they still fit into the first line that services accept (8 KiB). A key in
 * a query is short.
 */
export const MAX_PARAMETER_VALUE_LENGTH = 512;
const PARAMETER = /^[A-Za-z0-9_.~$[\]-]{1,64}$/;

/** What is wrong with the name of a parameter that a listing adds, or null. */
export const parameterNameFault = (name: string): string | null =>
  PARAMETER.test(name) ? null : 'each name must have 1 to 64 characters: letters, digits, _ - . ~ $ [ and ]';

/**
 * The name of a parameter as servers may read it, so that a parameter of the caller cannot replace one of the gateway.
 * Percent-encoding is decoded, `%uXXXX` (ASP) too. Some servers do not distinguish upper and lower case. PHP drops leading spaces,
 * ends the name at NUL, treats a space or a dot as an underscore, and reads `key[]` as a value of `key`, as others do. Parsers drop
 * a second `?`.
 */
export function foldedParameter(name: string): string {
  return name
    .replaceAll('+', ' ')
    .replace(/%(?:u00)?([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replace(/^[\s?]+/, '')
    .replace(/(.)\[.*|\0.*/s, '$1')
    .replace(/[ .]/g, '_')
    .toLowerCase();
}
