import { isOneSegment } from './spelling.ts';
import type { TemplateSegment } from './template.ts';

/** A tree of template segments. Templates that begin with the same segments share their nodes, whatever the names in braces are. */
type Node<T> = {
  /** The first literal. Most nodes have only one, and maps for all literals were most of the memory of a compiled listing. */
  text: string | null;
  literal: Node<T> | null;
  literals: Map<string, Node<T>> | null;
  name: Node<T> | null;
  /** The value for a `*` at this node. */
  rest: T | null;
  /** The value for a path that ends at this node. */
  end: T | null;
};

const newNode = <T>(): Node<T> => ({ text: null, literal: null, literals: null, name: null, rest: null, end: null });

/**
 * Finds the template that a path matches, byte for byte. From left to right, a literal beats `{name}`, and `{name}` beats `*`. Each
 * node lies at one depth, so a search visits each node at most once: its time is bounded by the size of the tree, whatever the
 * path is.
 */
export class Matcher<T> {
  readonly #root = newNode<T>();

  /** @returns the previous value, or null */
  add(template: readonly TemplateSegment[], value: T): T | null {
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
  find(path: string): T | null {
    return search(this.#root, path.length === 0 ? [''] : path.slice(1).split('/'), 0);
  }
}

function literalNode<T>(node: Node<T>, text: string): Node<T> {
  const known = literalOf(node, text);
  if (known !== null) return known;
  const next = newNode<T>();
  if (node.text === null) {
    node.text = text;
    node.literal = next;
  } else {
    node.literals ??= new Map();
    node.literals.set(text, next);
  }
  return next;
}

function literalOf<T>(node: Node<T>, text: string): Node<T> | null {
  return node.text === text ? node.literal : (node.literals?.get(text) ?? null);
}

function nameNode<T>(node: Node<T>): Node<T> {
  node.name ??= newNode();
  return node.name;
}

function search<T>(node: Node<T>, segments: readonly string[], at: number): T | null {
  if (at === segments.length) return node.end;
  const segment = segments[at] as string;
  const literal = literalOf(node, segment);
  const found = literal === null ? null : search(literal, segments, at + 1);
  if (found !== null) return found;
  if (node.name !== null && isOneSegment(segment)) {
    const named = search(node.name, segments, at + 1);
    if (named !== null) return named;
  }
  return node.rest;
}
