import { isObject, listOf, storableText } from './json.js';
/** Maximum depth of a copy. With what is around it, it stays below the `MAX_DEPTH` of an operation. */
const MAX_COPY_DEPTH = 48;
/** How the value of a keyword is copied. Keywords that are not in this table say nothing to a reader and are left out. */
const KEYWORDS = new Map([
    ...copiedAs('schema', 'items additionalItems additionalProperties contains propertyNames unevaluatedItems', 'unevaluatedProperties not if then else contentSchema'),
    ...copiedAs('list', 'allOf anyOf oneOf prefixItems'),
    ...copiedAs('map', 'properties patternProperties dependentSchemas'),
    ...copiedAs('data', 'type title description format enum const default examples required readOnly writeOnly deprecated', 'minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern', 'minItems maxItems uniqueItems minContains maxContains minProperties maxProperties', 'dependentRequired contentEncoding contentMediaType'),
]);
function copiedAs(way, ...keywords) {
    return keywords.flatMap((line) => line.split(' ').map((name) => [name, way]));
}
/** The copy would have more characters than it may. */
export class TooLarge extends Error {
}
/**
 * Copies schemas of a document into JSON Schemas that stand by themselves: references are replaced by what they lead to, and the
 * dialect of OpenAPI 3.0 by JSON Schema. What cannot be copied becomes a schema that says so, with a note.
 */
export class SchemaCopier {
    /** What differs from the document, for its author. */
    notes = new Set();
    #options;
    #length = 0;
    constructor(options) {
        this.#options = options;
    }
    /** @throws TooLarge */
    copy(schema) {
        return this.#schema(schema, { depth: 0, via: [] });
    }
    /** Copies an example or another value in which nothing is a reference. @throws TooLarge */
    copyData(value) {
        return this.#data(value, 0);
    }
    #schema(schema, place) {
        if (typeof schema === 'boolean')
            return this.#spent(schema, 5);
        if (!isObject(schema))
            return this.#spent({}, 2);
        if (place.depth >= MAX_COPY_DEPTH) {
            this.notes.add(`a schema is shown to ${MAX_COPY_DEPTH} levels only`);
            return this.#note('Deeper levels are not shown.');
        }
        return typeof schema.$ref === 'string' ? this.#reference(schema.$ref, schema, place) : this.#members(schema, place);
    }
    #reference(reference, schema, { depth, via }) {
        const found = this.#options.references.resolve(reference);
        if ('fault' in found) {
            this.notes.add(found.fault);
            return this.#note(`Not told: ${found.fault}.`);
        }
        const { value, pointer } = found;
        const name = nameOf(pointer);
        if (via.includes(pointer)) {
            this.notes.add(`${name} contains itself and is shown once`);
            return this.#cut(value, `${name} again: it contains itself.`);
        }
        if (via.length >= this.#options.maxReferences) {
            this.notes.add(`references are shown to ${this.#options.maxReferences} levels only`);
            return this.#cut(value, `${name}. What it contains is not shown here.`);
        }
        const inside = { depth, via: [...via, pointer] };
        const { $ref: _, ...beside } = schema;
        // OpenAPI 3.0 ignores what is beside a reference; JSON Schema demands both.
        if (this.#options.is30 || Object.keys(beside).length === 0)
            return this.#schema(value, inside);
        if (!isObject(value))
            return this.#members(beside, { depth, via });
        const conflicts = Object.keys(beside).some((keyword) => keyword in value && !ANNOTATIONS.has(keyword));
        if (conflicts)
            return this.#schema({ allOf: [value, beside] }, inside);
        return this.#schema({ ...value, ...beside }, inside);
    }
    #members(schema, place) {
        const source = this.#options.is30 ? fromOpenApi30(schema) : schema;
        const inside = { depth: place.depth + 1, via: place.via };
        const below = { depth: place.depth + 2, via: place.via };
        const members = [];
        const add = (keyword, value) => {
            this.#spent(null, keyword.length + 6);
            members.push([keyword, value]);
        };
        for (const [keyword, value] of Object.entries(source)) {
            const kind = KEYWORDS.get(keyword);
            if (kind === 'data')
                add(keyword, this.#data(value, inside.depth));
            else if (kind === 'schema')
                add(keyword, this.#schema(value, inside));
            else if (kind === 'list')
                add(keyword, listOf(value).map((member) => this.#schema(member, below)));
            else if (kind === 'map')
                add(keyword, this.#map(value, below));
        }
        // Both dialects of OpenAPI have `example` beside the `examples` of JSON Schema.
        if (source.example !== undefined && source.examples === undefined) {
            add('examples', [this.#data(source.example, below.depth)]);
        }
        return Object.fromEntries(members);
    }
    #map(value, place) {
        const members = Object.entries(isObject(value) ? value : {}).map(([name, schema]) => [
            this.#text(name),
            this.#schema(schema, place),
        ]);
        return Object.fromEntries(members);
    }
    #data(value, depth) {
        if (typeof value === 'string')
            return this.#text(value);
        if (typeof value !== 'object' || value === null)
            return this.#spent(value, String(value).length + 1);
        if (depth >= MAX_COPY_DEPTH) {
            this.notes.add(`an example is shown to ${MAX_COPY_DEPTH} levels only`);
            return this.#spent(null, 4);
        }
        this.#spent(null, 2);
        if (Array.isArray(value))
            return value.map((member) => this.#data(member, depth + 1));
        return Object.fromEntries(Object.entries(value).map(([name, member]) => [this.#text(name), this.#data(member, depth + 1)]));
    }
    #text(text) {
        // Checked before the text is copied: a long one may be copied often.
        this.#spent(null, text.length + 3);
        return storableText(text);
    }
    #note(description) {
        return this.#spent({ description }, description.length + 20);
    }
    /** What can be said of a schema that is not shown: its type. */
    #cut(value, description) {
        const type = isObject(value) && typeof value.type === 'string' ? { type: this.#text(value.type) } : {};
        return { ...type, ...this.#note(description) };
    }
    #spent(value, length) {
        this.#length += length;
        if (this.#length > this.#options.maxLength)
            throw new TooLarge();
        return value;
    }
}
/** Keywords that say nothing about which values are valid: beside a reference they replace those of what it leads to. */
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
const nameOf = (pointer) => storableText(pointer.split('/').at(-1) ?? '').slice(0, 100) || 'document';
/**
 * A schema of OpenAPI 3.0 in the words of JSON Schema: `nullable` becomes a type, and the exclusive bounds, which are flags there,
 * become numbers. Only this one object; what it contains is converted when it is copied.
 */
function fromOpenApi30(schema) {
    const { nullable, exclusiveMinimum, exclusiveMaximum, minimum, maximum, ...rest } = schema;
    const converted = { ...rest };
    if (minimum !== undefined)
        converted[exclusiveMinimum === true ? 'exclusiveMinimum' : 'minimum'] = minimum;
    if (maximum !== undefined)
        converted[exclusiveMaximum === true ? 'exclusiveMaximum' : 'maximum'] = maximum;
    if (nullable !== true)
        return converted;
    if (typeof schema.type === 'string') {
        converted.type = [schema.type, 'null'];
        if (Array.isArray(schema.enum) && !schema.enum.includes(null))
            converted.enum = [...schema.enum, null];
        return converted;
    }
    // Without a type, `nullable` alone means nothing. Beside one of these, authors mean that null is valid too.
    const isComposed = ['allOf', 'anyOf', 'oneOf'].some((keyword) => keyword in schema);
    return isComposed ? { anyOf: [schemaWithoutNullable(schema), { type: 'null' }] } : converted;
}
function schemaWithoutNullable(schema) {
    const { nullable: _, ...rest } = schema;
    return rest;
}
//# sourceMappingURL=schemas.js.map