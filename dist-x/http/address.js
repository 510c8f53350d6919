import { networkOf } from '../platform/addresses.js';
/**
 * The caller's address for rate limits, shortened to the /64 if it is IPv6. Behind trusted proxies it is the address that the
 * outermost of them wrote into `X-Forwarded-For`. Without trusted proxies, or if that is no address, it is the peer of the
 * connection.
 */
export function addressOf(response, headers, trustedProxyHops) {
    if (trustedProxyHops > 0) {
        const forwarded = forwardedFor(headers);
        const network = networkOf(forwarded[forwarded.length - trustedProxyHops]?.trim() ?? '');
        if (network !== null)
            return network;
    }
    const peer = Buffer.from(response.getRemoteAddressAsText()).toString('latin1');
    return networkOf(peer) ?? peer;
}
/**
 * All addresses in `X-Forwarded-For`, in order. Several header lines count as one list (RFC 9110 §5.3): a proxy may add a line of
 * its own instead of extending the line it received.
 */
function forwardedFor(headers) {
    const addresses = [];
    for (let i = 0; i < headers.length; i += 2) {
        if (headers[i] === 'x-forwarded-for')
            addresses.push(...headers[i + 1].split(','));
    }
    return addresses;
}
//# sourceMappingURL=address.js.map