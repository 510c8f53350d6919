/**
 * The text forms of a listing's secrets. What is secret in them is encrypted (src/secrets/). They are text, so that two readings of
 * a row can be compared, and every gateway keeps them in memory, so that the first call of a listing need not ask Postgres.
 */
/** @param text  `Listing.upstreamHeaders` */
export const storedHeaders = (text) => text === null ? [] : JSON.parse(text);
/** @param text  `Listing.signingKeys`; the present key is the first */
export const storedSigningKeys = (text) => text === null ? [] : JSON.parse(text);
/** The text of a list; null if it is empty. */
export const textOf = (list) => list.length === 0 ? null : JSON.stringify(list);
/**
 * Scheme, host and port of an endpoint, in one spelling: the server that secrets of the listing are for. It is `Origin.key` of the
 * upstream client, which this folder may not import; a test compares the two.
 */
export function originOf(endpoint) {
    const { protocol, hostname, port } = new URL(endpoint);
    return `${protocol}//${hostname.replace(/\.$/, '')}:${port || (protocol === 'http:' ? 80 : 443)}`;
}
/** Header names of the listing's own are at most this long. */
const MAX_HEADER_NAME_LENGTH = 64;
export const MAX_UPSTREAM_HEADERS = 10;
/** Enough for a JWT with many claims; many servers take at most 8 KiB for one header. */
export const MAX_HEADER_VALUE_LENGTH = 4_096;
/** Bounds what every gateway keeps in memory for a listing, and leaves room in the 16 KiB that Node services take for a head. */
export const MAX_UPSTREAM_HEADERS_LENGTH = 8_192;
/**
 * Headers that usually carry credentials. A client library may find a key for another company in its environment, and send it
 * without being told to. The key would then reach the provider of this service. So they stop at the gateway, unless the listing asks
 * for them and the call agrees.
 */
export const CREDENTIAL_HEADERS = [
    'authorization',
    'proxy-authorization',
    'cookie',
    'x-api-key',
    'api-key',
    'x-goog-api-key',
    'x-auth-token',
];
/** The gateway writes these itself, because they say where a message goes, where it ends, or what it knows of the call. */
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
export function headerNameFault(name) {
    if (name.length > MAX_HEADER_NAME_LENGTH || !TOKEN.test(name)) {
        return `each name must be that of an HTTP header, of at most ${MAX_HEADER_NAME_LENGTH} characters`;
    }
    const folded = name.toLowerCase().replaceAll('_', '-');
    if (!OURS.includes(folded) && !OUR_PREFIXES.some((prefix) => folded.startsWith(prefix)))
        return null;
    return `${name} cannot be set: the gateway writes it itself`;
}
/** What is wrong with the value of such a header, or null. Never says what the value is. */
export function headerValueFault(value) {
    return VALUE.test(value) ? null : 'must be visible ASCII characters, with spaces only between them';
}
//# sourceMappingURL=listing-secrets.js.map