import { isIP } from 'node:net';
import { EndpointError } from './upstream-error.js';
/** Maximum length of an endpoint in characters; a longer one is refused. */
const MAX_ENDPOINT_LENGTH = 2048;
/**
 * Parses a listing's endpoint. This is slow, so keep the result.
 *
 * WHATWG URL normalises the spelling: numeric hosts (`0x7f.1`, `2130706433`, `0177.0.0.1`) become dotted, dot segments are
 * resolved, names become punycode. Whatever it would silently drop or repair is refused here instead.
 *
 * @param url absolute http(s) URL; `basePath` is its path without a trailing slash ('' for '/').
 * @throws EndpointError with a message for the provider.
 */
export function parseEndpoint(url) {
    if (url.length > MAX_ENDPOINT_LENGTH)
        throw new EndpointError(`longer than ${MAX_ENDPOINT_LENGTH} characters`);
    // URL strips tabs, line breaks and outer spaces, and reads '\' as '/'. Nobody writes these on purpose.
    if (/[\p{Cc}\s\\]/u.test(url))
        throw new EndpointError('must not contain spaces, backslashes or control characters');
    const parsed = parseUrl(url);
    if (parsed.protocol !== 'http:' && parsed.protocol !== 'https:')
        throw new EndpointError('must be an http or https URL');
    if (parsed.username !== '' || parsed.password !== '' || /^[a-z]+:\/*[^/?#]*@/i.test(url)) {
        throw new EndpointError('must not contain a user name or password');
    }
    if (url.includes('?'))
        throw new EndpointError('must not have a query');
    if (url.includes('#'))
        throw new EndpointError('must not have a fragment');
    return { origin: originOf(parsed), basePath: parsed.pathname.replace(/\/+$/, '') };
}
function parseUrl(url) {
    // URL also accepts 'https:example.com' and 'https:///example.com'.
    if (!/^https?:\/\/[^/]/i.test(url))
        throw new EndpointError('must be an absolute http or https URL');
    try {
        return new URL(url);
    }
    catch {
        throw new EndpointError('is not a valid URL');
    }
}
function originOf(url) {
    const protocol = url.protocol;
    const defaultPort = protocol === 'http:' ? 80 : 443;
    const port = url.port === '' ? defaultPort : Number(url.port);
    if (port === 0)
        throw new EndpointError('must not use port 0');
    // 'example.com.' is the same host, but a name in TLS has no dot at its end (RFC 6066, section 3).
    const host = url.hostname.replace(/\.$/, '');
    const hostname = host.startsWith('[') ? host.slice(1, -1) : host;
    if (hostname === '' || hostname.length > 253)
        throw new EndpointError('has no usable host name');
    if (isIP(hostname) === 0 && !/^[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*$/.test(hostname)) {
        throw new EndpointError('has a host name that is not a domain name');
    }
    const hostHeader = port === defaultPort ? host : `${host}:${port}`;
    return { protocol, hostname, port, key: `${protocol}//${host}:${port}`, hostHeader };
}
//# sourceMappingURL=endpoint.js.map