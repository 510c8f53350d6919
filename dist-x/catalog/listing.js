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
export function endpointFault(endpoint) {
    if (endpoint.length > MAX_ENDPOINT_LENGTH)
        return `must be at most ${MAX_ENDPOINT_LENGTH} characters`;
    if (/[\p{Cc}\s\\]/u.test(endpoint))
        return 'must not contain spaces, control characters or backslashes';
    if (!/^https?:\/\/[^/]/i.test(endpoint))
        return 'must be an absolute http or https URL';
    if (endpoint.includes('?'))
        return 'must not have a query';
    if (endpoint.includes('#'))
        return 'must not have a fragment';
    if (endpoint.split('/', 3)[2]?.includes('@'))
        return 'must not contain a user name or password';
    const url = parseUrl(endpoint);
    return url === null ? 'must be a valid URL' : hostFault(url);
}
/** Not `URL.canParse`: once V8 has optimised it, Node 20.20 reads Latin-1 as UTF-8 there and refuses `http://bücher.example`. */
export function parseUrl(text) {
    try {
        return new URL(text);
    }
    catch {
        return null;
    }
}
function hostFault(url) {
    if (url.port === '0')
        return 'must have a port between 1 and 65535';
    const host = url.hostname.replace(/\.$/, '');
    // The parser has checked the address in brackets (IPv6), and writes every IPv4 address in dotted form.
    const isName = host.startsWith('[') || /^[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*$/.test(host);
    return isName && host.length <= 253 ? null : 'must have a domain name or an address as its host';
}
/** What is wrong with a name, or null. The caller must trim it first. */
export function nameFault(name) {
    const length = [...name].length;
    if (length < 1 || length > 100)
        return 'must have 1 to 100 characters, not counting spaces around it';
    if (/\p{Cc}/u.test(name))
        return 'must not contain control characters';
    return null;
}
export const MAX_DESCRIPTION_LENGTH = 2_000;
/** What is wrong with a description, or null. Text in any language is good, with line breaks and tabs. */
export function descriptionFault(description) {
    if (/[^\P{Cc}\t\n\r]/u.test(description))
        return 'must not contain control characters other than line breaks and tabs';
    return null;
}
//# sourceMappingURL=listing.js.map