import { isOneSegment } from './spelling.js';
const newNode = () => ({ text: null, literal: null, literals: null, name: null, rest: null, end: null });
/**
 * Finds the template that a path matches, byte for byte. From left to right, a literal beats `{name}`, and `{name}` beats `*`. Each
 * node lies at one depth, so a search visits each node at most once: its time is bounded by the size of the tree, whatever the
 * path is.
 */
export class Matcher {
    #root = newNode();
    /** @returns what stood in this place before, or null */
    add(template, value) {
        let node = this.#root;
        for (const segment of template) {
            if (segment.kind === 'rest') {
                const before = node.rest;
                node.rest = value;
                return before;
            }
            node = segment.kind === 'literal' ? literalNode(node, segment.text) : nameNode(node);
        }
        const before = node.end;
        node.end = value;
        return before;
    }
    /** @param path '' or '/…'; '' and '/' are both the endpoint itself */
    find(path) {
        return search(this.#root, path.length === 0 ? [''] : path.slice(1).split('/'), 0);
    }
}
function literalNode(node, text) {
    const known = literalOf(node, text);
    if (known !== null)
        return known;
    const next = newNode();
    if (node.text === null) {
        node.text = text;
        node.literal = next;
    }
    else {
        node.literals ??= new Map();
        node.literals.set(text, next);
    }
    return next;
}
function literalOf(node, text) {
    return node.text === text ? node.literal : (node.literals?.get(text) ?? null);
}
function nameNode(node) {
    node.name ??= newNode();
    return node.name;
}
function search(node, segments, at) {
    if (at === segments.length)
        return node.end;
    const segment = segments[at];
    const literal = literalOf(node, segment);
    const found = literal === null ? null : search(literal, segments, at + 1);
    if (found !== null)
        return found;
    if (node.name !== null && isOneSegment(segment)) {
        const named = search(node.name, segments, at + 1);
        if (named !== null)
            return named;
    }
    return node.rest;
}
//# sourceMappingURL=matcher.js.map