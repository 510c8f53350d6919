export const MAX_TEMPLATE_LENGTH = 512;
/** Maximum segments of a template. It bounds how deep the matcher searches. */
const MAX_SEGMENTS = 32;
/**
 * The characters that a path may contain without encoding (RFC 3986 §3.3), except `;`: servers disagree on what follows it. Other
 * characters are percent-encoded. An encoded ASCII character is refused, since a server may read it as the character itself: a
 * template must have one spelling.
 */
const LITERAL = /^(?:[A-Za-z0-9\-._~!$&'()+,=:@]|%[89A-F][0-9A-F])*$/;
const NAME = /^\{([A-Za-z_][A-Za-z0-9_]{0,49})\}$/;
const DOTS = /^\.{1,2}$/;
/**
 * `/users/{id}/files/*` → its segments, or what is wrong with it. The last segment may be empty: a server may tell `/users/` from
 * `/users`.
 */
export function parseTemplate(path) {
    if (path.length > MAX_TEMPLATE_LENGTH)
        return { fault: `must be at most ${MAX_TEMPLATE_LENGTH} characters` };
    if (path[0] !== '/')
        return { fault: 'must begin with a slash' };
    const texts = path.slice(1).split('/');
    if (texts.length > MAX_SEGMENTS)
        return { fault: `must have at most ${MAX_SEGMENTS} segments` };
    const segments = [];
    for (const [index, text] of texts.entries()) {
        const isLast = index === texts.length - 1;
        const fault = segmentFault(text, isLast, segments);
        if (fault !== null)
            return { fault };
        segments.push(segmentOf(text));
    }
    return { segments };
}
function segmentOf(text) {
    if (text === '*')
        return { kind: 'rest' };
    const name = NAME.exec(text)?.[1];
    return name === undefined ? { kind: 'literal', text } : { kind: 'name', name };
}
function segmentFault(text, isLast, before) {
    if (text === '' && !isLast)
        return 'must not have two slashes in a row';
    if (text === '*')
        return isLast ? null : 'may have * only as its last segment';
    const name = NAME.exec(text)?.[1];
    if (name !== undefined) {
        const isTaken = before.some((segment) => segment.kind === 'name' && segment.name === name);
        return isTaken ? `must not have {${name}} twice` : null;
    }
    if (DOTS.test(text))
        return 'must not have dot segments';
    if (LITERAL.test(text))
        return null;
    return 'must consist of literal segments, {name} for a whole segment, and a last *; other characters must be percent-encoded, in upper case';
}
//# sourceMappingURL=template.js.map