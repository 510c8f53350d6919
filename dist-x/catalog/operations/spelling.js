/**
 * Different spellings of a path that some server reads as the same path. A gateway that compared paths byte for byte only would let
 * a caller reach an expensive operation through a cheaper one that also matches: `/{name}` matches `/REPORT` and `/%72eport`, and many
 * servers take both for `/report`.
 */
/** A segment that is one segment for every server: most are, so they are told apart first. */
const ORDINARY = /^[A-Za-z0-9\-_~][A-Za-z0-9\-._~]*$/;
/** A segment that is loose already. */
const LOOSE = /^[a-z0-9\-_~]+$/;
/** A segment that a server may split, shorten or decode twice: `{name}` does not match it. */
const SPLITTABLE = /[;\\]|%(?:2f|5c|3b|25|[01][0-9a-f]|7f)|%(?![0-9a-f]{2})/i;
/** The same in compatibility form (NFKC): `／` is a slash there. A server that drops leading dots or spaces may see no segment at all. */
const SPLITTABLE_TEXT = /^[.\s]|[/\\;%]/;
/** What web frameworks take for the format of the answer and cut off: `/report.json` is `/report`. */
const EXTENSION = /^\.[a-z][a-z0-9]{0,9}$/;
/** How often a path is decoded. Servers behind servers decode twice; one more is allowed for. */
const MAX_DECODINGS = 3;
/** Maximum segments of a path that servers may split differently. It bounds the time of `mayMean`; a longer one may mean anything. */
const MAX_UNSTEADY_SEGMENTS = 64;
/** Whether `{name}` may stand for this segment. */
export function isOneSegment(segment) {
    if (ORDINARY.test(segment))
        return true;
    if (SPLITTABLE.test(segment))
        return false;
    const text = decoded(segment);
    return text !== null && !SPLITTABLE_TEXT.test(text) && looseSegment(text) !== '';
}
/** The percent-decoded text in compatibility form, or null when it is not valid UTF-8: servers disagree on what such bytes mean. */
function decoded(text) {
    try {
        return decodeURIComponent(text).normalize('NFKC');
    }
    catch {
        return null;
    }
}
/** One segment as the most generous server reads it: in one letter case, without spaces around it and dots behind it. */
function looseSegment(segment) {
    if (LOOSE.test(segment))
        return segment;
    let end = segment.length;
    // A loop: an expression that ends in `$` tries from each of the dots of `a....b`, 0.2 s for a path of 15 000.
    while (end > 0 && /[\s.\p{Cc}]/u.test(segment[end - 1]))
        end--;
    // To upper case first: some servers compare the letters `ı` and `i`, or `ß` and `ss`, that way. The dot is what is left of `İ`.
    const folded = segment.slice(0, end).toUpperCase().toLowerCase().replaceAll('\u0307', '');
    return folded.replace(/^[\s\p{Cc}]+/u, '');
}
export function readingsOf(path) {
    const all = looseReadings(path);
    const endsInSlash = path.endsWith('/');
    const segments = (endsInSlash ? path.slice(1, -1) : path.slice(1)).split('/');
    const isSteady = all?.[0]?.length === segments.length && segments.every(isOneSegment);
    return { all, isSteady, endsInSlash };
}
/**
 * Null for bytes that are not UTF-8, for `;` and NUL (servers cut off what follows them, some before they decode the path and some
 * after), and for dot segments that show only when the path is decoded twice. What follows `?` or `#` is cut off by servers that
 * decode the path before they read it.
 */
function looseReadings(path) {
    let text = path;
    for (let i = 0; i < MAX_DECODINGS; i++) {
        const next = decoded(text);
        if (next === null)
            return null;
        if (next === text)
            break;
        text = next;
    }
    if (/[;\0]/.test(text))
        return null;
    const cut = text.search(/[?#]/);
    const readings = (cut === -1 ? [text] : [text, text.slice(0, cut)]).map((read) => read.replaceAll('\\', '/').split('/'));
    if (readings.some((segments) => segments.some(isDots)))
        return null;
    return readings.map((segments) => segments.map(looseSegment).filter((segment) => segment !== ''));
}
const isDots = (segment) => segment[0] !== undefined && /^[\s\p{Cc}]*\.{1,2}[\s\p{Cc}]*$/u.test(segment);
export function looseTemplate(template) {
    return template.flatMap((segment) => {
        if (segment.kind !== 'literal' || LOOSE.test(segment.text))
            return segment;
        const texts = looseReadings(segment.text)?.[0] ?? [segment.text];
        // Most literals are loose already: the same object again saves memory.
        return texts.length === 1 && texts[0] === segment.text ? segment : texts.map((text) => ({ kind: 'literal', text }));
    });
}
/** Whether every server takes the path, which the template matches byte for byte, for one that it matches. */
export function surelyMatches({ all }, template) {
    // `/*` matches whatever a server may see.
    if (template[0]?.kind === 'rest')
        return true;
    return all?.every((segments) => matchesSteadily(segments, template, 1)) ?? false;
}
/** Whether a server might take a path for one that the template matches. */
export function mayMean({ all, isSteady, endsInSlash }, template) {
    if (all === null)
        return true;
    if (!isSteady)
        return all.some((segments) => matchesSomehow(segments, template));
    // Behind a last slash, some server may see an empty segment. A path that is cut short may end in one.
    const mayEndEmpty = endsInSlash || all.length > 1;
    return all.some((segments) => matchesSteadily(segments, template, 1) || (mayEndEmpty && matchesSteadily([...segments, ''], template, 0)));
}
/** `{name}` stands for exactly one segment, and `*` for at least `minRest`. */
function matchesSteadily(segments, template, minRest) {
    for (const [at, segment] of template.entries()) {
        if (segment.kind === 'rest')
            return segments.length - at >= minRest;
        const text = segments[at];
        if (text === undefined)
            return false;
        if (segment.kind === 'literal' && !mayBe(text, segment.text, at === segments.length - 1))
            return false;
    }
    return template.length === segments.length;
}
/** `{name}` and `*` stand for any number of segments: a server may split or drop what the gateway sees as one. */
function matchesSomehow(segments, template) {
    const { length } = segments;
    if (length > MAX_UNSTEADY_SEGMENTS)
        return true;
    // A server may drop a last segment that is nothing but an extension, and then reads the one before as the last.
    const end = segments.at(-1)?.startsWith('.') ? length - 1 : length;
    // Which positions in `segments` the template's segments so far can reach. The time is bounded by the product of the lengths.
    let reached = [true];
    for (const segment of template) {
        const first = reached.indexOf(true);
        if (first === -1)
            return false;
        if (segment.kind === 'rest')
            return true;
        const next = new Array(length + 1).fill(false);
        if (segment.kind === 'name')
            next.fill(true, first);
        else {
            for (let at = first; at < length; at++) {
                if (reached[at] && mayBe(segments[at], segment.text, at >= end - 1))
                    next[at + 1] = true;
            }
            if (segment === template.at(-1) && segment.text.startsWith('.'))
                reached.forEach((is, at) => {
                    next[at] ||= is;
                });
        }
        reached = next;
    }
    return reached[length] === true || reached[end] === true;
}
/**
 * Whether a loose segment may be a literal: the same text or, at the end of a path, one with an extension and one without. Rails
 * takes anything behind a dot for one, and Spring did.
 */
function mayBe(segment, literal, isLast) {
    if (segment === literal)
        return true;
    if (!isLast)
        return false;
    if (segment.startsWith(literal))
        return segment[literal.length] === '.';
    return literal.startsWith(segment) && EXTENSION.test(literal.slice(segment.length));
}
/**
 * Whether every server that has both templates serves a path by the first one, which the path matches byte for byte: from left to
 * right, a literal beats `{name}`, and `{name}` beats `*`.
 */
export function comesFirst(found, other, readings) {
    if (!readings.isSteady || !surelyMatches(readings, found))
        return false;
    for (const [at, { kind }] of found.entries()) {
        const otherKind = other[at]?.kind;
        if (kind === otherKind)
            continue;
        return kind === 'literal' || (kind === 'name' && otherKind === 'rest');
    }
    // They differ in what the other one has more, which stands for nothing, or in a slash or an extension at the end.
    return other.length > found.length || !readings.endsInSlash;
}
//# sourceMappingURL=spelling.js.map