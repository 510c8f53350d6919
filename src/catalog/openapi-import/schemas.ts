import { isObject, type JsonObject, listOf, memberOf, storableText } from './json.ts';
import type { References } from './references.ts';

/** Maximum depth of a copy. Together with the levels around it, it stays below the `MAX_DEPTH` of an operation. */
const MAX_COPY_DEPTH = 48;

/** How the value of a keyword is copied. Keywords that are not in this table tell a reader nothing and are left out. */
const KEYWORDS: ReadonlyMap<string, 'schema' | 'list' | 'map' | 'data'> = new Map([
  ...copiedAs(
    'schema',
    'items additionalItems additionalProperties contains propertyNames unevaluatedItems',
    'unevaluatedProperties not if then else contentSchema',
  ),
  ...copiedAs('list', 'allOf anyOf oneOf prefixItems'),
  ...copiedAs('map', 'properties patternProperties dependentSchemas'),
  ...copiedAs(
    'data',
    'type title description format enum const default examples required readOnly writeOnly deprecated',
    'minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern',
    'minItems maxItems uniqueItems minContains maxContains minProperties maxProperties',
    'dependentRequired contentEncoding contentMediaType',
  ),
]);

function copiedAs<Way extends string>(way: Way, ...keywords: readonly string[]): (readonly [string, Way])[] {
  return keywords.flatMap((line) => line.split(' ').map((name) => [name, way] as const));
}

/** The copy would exceed its maximum length. */
export class TooLarge extends Error {}

type CopyOptions = {
  readonly references: References;
  /** Whether the schemas are those of OpenAPI 3.0, which are a dialect of their own. */
  readonly is30: boolean;
  /** How many references within references are replaced by their targets. */
  readonly maxReferences: number;
  /** Maximum characters of the whole copy as JSON. A few references can multiply to gigabytes. */
  readonly maxLength: number;
};

/** A position within a schema: its depth, and the references that led to it. */
type Position = { readonly depth: number; readonly via: readonly string[] };

/**
 * Copies schemas of a document into self-contained JSON Schemas: references are replaced by their targets, and the dialect of
 * OpenAPI 3.0 by JSON Schema. A part that cannot be copied becomes a schema that says so, with a note.
 */
export class SchemaCopier {
  /** Differences from the document, for its author. */
  readonly notes = new Set<string>();
  readonly #options: CopyOptions;
  #length = 0;

  constructor(options: CopyOptions) {
    this.#options = options;
  }

  /** @throws TooLarge */
  copy(schema: unknown): unknown {
    return this.#schema(schema, { depth: 0, via: [] });
  }

  /** Copies an example or another value in which nothing is a reference. @throws TooLarge */
  copyData(value: unknown): unknown {
    return this.#data(value, 0);
  }

  #schema(schema: unknown, position: Position): unknown {
    if (typeof schema === 'boolean') return this.#spent(schema, 5);
    if (!isObject(schema)) return this.#spent({}, 2);
    if (position.depth >= MAX_COPY_DEPTH) {
      this.notes.add(`only ${MAX_COPY_DEPTH} levels of a schema are shown`);
      return this.#note('Deeper levels are not shown.');
    }
    return typeof schema.$ref === 'string'
      ? this.#reference(schema.$ref, schema, position)
      : this.#members(schema, position);
  }

  #reference(reference: string, schema: JsonObject, { depth, via }: Position): unknown {
    const found = this.#options.references.resolve(reference);
    if ('fault' in found) {
      this.notes.add(found.fault);
      return this.#note(`Not described: ${found.fault}.`);
    }
    const { value, pointer } = found;
    const name = nameOf(pointer);
    if (via.includes(pointer)) {
      this.notes.add(`${name} contains itself and is shown once`);
      return this.#cut(value, `${name} again: it contains itself.`);
    }
    if (via.length >= this.#options.maxReferences) {
      this.notes.add(`only ${this.#options.maxReferences} levels of references are followed`);
      return this.#cut(value, `${name}. What it contains is not shown here.`);
    }
    const inside = { depth, via: [...via, pointer] };
    const { $ref: _, ...beside } = schema;
    // OpenAPI 3.0 ignores keywords next to a reference; JSON Schema applies both.
    if (this.#options.is30 || Object.keys(beside).length === 0) return this.#schema(value, inside);
    if (!isObject(value)) return this.#members(beside, { depth, via });
    const conflicts = Object.keys(beside).some((keyword) => keyword in value && !ANNOTATIONS.has(keyword));
    if (conflicts) return this.#schema({ allOf: [value, beside] }, inside);
    return this.#schema({ ...value, ...beside }, inside);
  }

  #members(schema: JsonObject, position: Position): JsonObject {
    const source = this.#options.is30 ? fromOpenApi30(schema) : schema;
    const inside = { depth: position.depth + 1, via: position.via };
    const below = { depth: position.depth + 2, via: position.via };
    const members: [string, unknown][] = [];
    const add = (keyword: string, value: unknown): void => {
      this.#spent(null, keyword.length + 6);
      members.push([keyword, value]);
    };
    for (const [keyword, value] of Object.entries(source)) {
      const kind = KEYWORDS.get(keyword);
      if (kind === 'data') add(keyword, this.#data(value, inside.depth));
      else if (kind === 'schema') add(keyword, this.#schema(value, inside));
      else if (kind === 'list') add(keyword, this.#branches(source, keyword, value, below));
      else if (kind === 'map') add(keyword, this.#map(value, below));
    }
    const { discriminator } = source;
    if (isObject(discriminator) && !BRANCHING.some((keyword) => keyword in source)) {
      this.notes.add(`a discriminator is left out: ${storableText(String(discriminator.propertyName)).slice(0, 100)}`);
    }
    // Both dialects of OpenAPI have `example` in addition to the `examples` of JSON Schema.
    if (source.example !== undefined && source.examples === undefined) {
      add('examples', [this.#data(source.example, below.depth)]);
    }
    return Object.fromEntries(members);
  }

  #branches(source: JsonObject, keyword: string, value: unknown, position: Position): unknown[] {
    const discriminator = BRANCHING.includes(keyword) ? discriminatorOf(source) : null;
    return listOf(value).map((member) => {
      const copied = this.#schema(member, position);
      return discriminator === null ? copied : this.#told(discriminator, member, copied);
    });
  }

  /** A branch with the values of the discriminator that lead to it, so that it differs from the others. */
  #told({ property, valuesOf }: Discriminator, member: unknown, branch: unknown): unknown {
    const values = valuesOf(member);
    if (values.length === 0 || !isObject(branch)) {
      this.notes.add(`the discriminator ${property} has no value for a branch`);
      return branch;
    }
    this.notes.add(`the values of the discriminator ${property} are written as const`);
    const before = isObject(branch.properties) ? branch.properties : {};
    const own = memberOf(before, property);
    const name = this.#text(property);
    const told = values.map((text) => this.#text(text));
    this.#spent(null, name.length + 40);
    return {
      ...branch,
      properties: {
        ...before,
        [name]: { ...(isObject(own) ? own : {}), ...(told.length === 1 ? { const: told[0] } : { enum: told }) },
      },
      required: [...new Set([...listOf(branch.required), name])],
    };
  }

  #map(value: unknown, position: Position): JsonObject {
    const members = Object.entries(isObject(value) ? value : {}).map(([name, schema]): [string, unknown] => [
      this.#text(name),
      this.#schema(schema, position),
    ]);
    return Object.fromEntries(members);
  }

  #data(value: unknown, depth: number): unknown {
    if (typeof value === 'string') return this.#text(value);
    if (typeof value !== 'object' || value === null) return this.#spent(value, String(value).length + 1);
    if (depth >= MAX_COPY_DEPTH) {
      this.notes.add(`only ${MAX_COPY_DEPTH} levels of an example are shown`);
      return this.#spent(null, 4);
    }
    this.#spent(null, 2);
    if (Array.isArray(value)) return value.map((member) => this.#data(member, depth + 1));
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [this.#text(name), this.#data(member, depth + 1)]),
    );
  }

  #text(text: string): string {
    // Checked before the text is copied, because a long one may be copied often.
    this.#spent(null, text.length + 3);
    return storableText(text);
  }

  #note(description: string): JsonObject {
    return this.#spent({ description }, description.length + 20);
  }

  /** What can be said about a schema that is not shown: its type. */
  #cut(value: unknown, description: string): JsonObject {
    const type = isObject(value) && typeof value.type === 'string' ? { type: this.#text(value.type) } : {};
    return { ...type, ...this.#note(description) };
  }

  #spent<T>(value: T, length: number): T {
    this.#length += length;
    if (this.#length > this.#options.maxLength) throw new TooLarge();
    return value;
  }
}

/** The keywords whose schemas a discriminator chooses between. */
const BRANCHING: readonly string[] = ['oneOf', 'anyOf'];

type Discriminator = {
  readonly property: string;
  /** The values of the property that select a branch. */
  valuesOf(member: unknown): string[];
};

/** The value for a branch is the name of its schema, unless the mapping has another one for it. */
function discriminatorOf({ discriminator }: JsonObject): Discriminator | null {
  if (!isObject(discriminator) || typeof discriminator.propertyName !== 'string') return null;
  const property = discriminator.propertyName;
  if (property === '__proto__') return null;
  const mapping = Object.entries(isObject(discriminator.mapping) ? discriminator.mapping : {});
  return {
    property: storableText(property).slice(0, 100),
    valuesOf: (member) => {
      const reference = isObject(member) ? member.$ref : undefined;
      if (typeof reference !== 'string') return [];
      const name = nameOf(reference);
      const mapped = mapping.filter(([, to]) => to === reference || to === name).map(([value]) => value);
      return mapped.length > 0 ? mapped : [name];
    },
  };
}

/** Keywords that say nothing about which values are valid: next to a reference they replace those of its target. */
const ANNOTATIONS = new Set([
  'title',
  'description',
  'default',
  'example',
  'examples',
  'deprecated',
  'readOnly',
  'writeOnly',
]);

/** '/components/schemas/Pet' → 'Pet' */
const nameOf = (pointer: string): string => storableText(pointer.split('/').at(-1) ?? '').slice(0, 100) || 'document';

/**
 * A schema of OpenAPI 3.0 in the words of JSON Schema: `nullable` becomes a type, and the exclusive bounds, which are flags there,
 * become numbers. Converts only this one object; nested ones are converted when they are copied.
 */
function fromOpenApi30(schema: JsonObject): JsonObject {
  const { nullable, exclusiveMinimum, exclusiveMaximum, minimum, maximum, ...rest } = schema;
  const converted: Record<string, unknown> = { ...rest };
  if (minimum !== undefined) converted[exclusiveMinimum === true ? 'exclusiveMinimum' : 'minimum'] = minimum;
  if (maximum !== undefined) converted[exclusiveMaximum === true ? 'exclusiveMaximum' : 'maximum'] = maximum;
  if (nullable !== true) return converted;
  if (typeof schema.type === 'string') {
    converted.type = [schema.type, 'null'];
    if (Array.isArray(schema.enum) && !schema.enum.includes(null)) converted.enum = [...schema.enum, null];
    return converted;
  }
  // Without a type, `nullable` alone means nothing. Next to one of these, authors mean that null is valid too.
  const isComposed = ['allOf', 'anyOf', 'oneOf'].some((keyword) => keyword in schema);
  return isComposed ? { anyOf: [schemaWithoutNullable(schema), { type: 'null' }] } : converted;
}

function schemaWithoutNullable(schema: JsonObject): JsonObject {
  const { nullable: _, ...rest } = schema;
  return rest;
}
