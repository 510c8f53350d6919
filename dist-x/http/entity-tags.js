/**
 * Whether If-None-Match, a list of entity tags or `*` (RFC 9110 §13.1.2), names this entity tag. The comparison is weak, because
 * compressing proxies add `W/`.
 */
export function isKnown(etag, ifNoneMatch) {
    if (ifNoneMatch === undefined)
        return false;
    if (ifNoneMatch.trim() === '*')
        return true;
    const opaque = etag.replace(/^W\//, '');
    for (const [, tag] of ifNoneMatch.matchAll(/(?:W\/)?("[^"]*")/g)) {
        if (tag === opaque)
            return true;
    }
    return false;
}
//# sourceMappingURL=entity-tags.js.map