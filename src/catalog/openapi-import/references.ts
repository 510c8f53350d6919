import { isObject, type JsonObject, memberOf, quoted } from './json.ts';

/** The target of a reference, or why it is not followed. */
type Resolved = { readonly value: unknown; readonly pointer: string } | { readonly fault: string };

/** Maximum length of a chain of references. It also ends a circle of them. */
const MAX_CHAIN = 20;

/**
 * Follows references within a document (RFC 6901), and only those: a reference to a file or to another host is never followed,
 * because the gateway would read it with its own rights.
 */
export class References {
  readonly #document: JsonObject;

  constructor(document: JsonObject) {
    this.#document = document;
  }

  /** @param reference  '#/components/schemas/Pet' */
  resolve(reference: string): Resolved {
    if (reference[0] !== '#') {
      return { fault: `the reference ${quoted(reference)} leads out of the document and is not followed` };
    }
    const pointer = decoded(reference.slice(1));
    if (pointer !== '' && pointer[0] !== '/') {
      return { fault: `the reference ${quoted(reference)} is not a JSON pointer and is not followed` };
    }
    let value: unknown = this.#document;
    for (const token of pointer.split('/').slice(1)) {
      const name = token.replaceAll('~1', '/').replaceAll('~0', '~');
      value = typeof value === 'object' && value !== null ? memberOf(value, name) : undefined;
    }
    if (value === undefined) return { fault: `the reference ${quoted(reference)} leads nowhere` };
    return { value, pointer };
  }

  /** Resolves a parameter, body, response or example that may be a reference. Members next to `$ref` win. */
  follow(value: unknown): { readonly object: JsonObject } | { readonly fault: string } {
    let found = value;
    let beside: JsonObject = {};
    for (let i = 0; i < MAX_CHAIN; i++) {
      if (!isObject(found)) return { fault: 'a reference leads to something that is not an object' };
      if (typeof found.$ref !== 'string') return { object: { ...found, ...beside } };
      const { $ref, ...others } = found;
      beside = { ...others, ...beside };
      const next = this.resolve($ref);
      if ('fault' in next) return next;
      found = next.value;
    }
    return { fault: 'references form a circle' };
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
