import type { JsonSchema } from '../http/route.ts';

type Json = Readonly<Record<string, unknown>>;

/** Keywords whose value maps names to schemas, is a list of schemas, or is one schema. Values of other keywords are data. */
const MAPS = new Set(['properties', 'patternProperties']);
const LISTS = new Set(['allOf', 'anyOf', 'oneOf']);
const SINGLE = new Set(['items', 'additionalProperties', 'not']);

/** Collects the `components` of the OpenAPI document while its operations are written. */
export class Components {
  readonly #schemas = new Map<string, { readonly of: JsonSchema; readonly written: Json }>();
  readonly #responses = new Map<string, Json>();

  /**
   * The schema as it appears in the document. Each schema with a `title`, nested or the schema itself, becomes a reference to the
   * component of that name. Throws if two different schemas have the same title.
   */
  schema(schema: JsonSchema): Json {
    const { title } = schema;
    if (typeof title !== 'string') return this.#write(schema);
    const known = this.#schemas.get(title);
    if (known === undefined) this.#schemas.set(title, { of: schema, written: this.#write(schema) });
    else if (known.of !== schema && JSON.stringify(known.of) !== JSON.stringify(schema)) {
      throw new Error(`two different schemas have the title ${title}`);
    }
    return { $ref: `#/components/schemas/${title}` };
  }

  /** A response that several operations share. */
  response(name: string, make: () => Json): Json {
    if (!this.#responses.has(name)) this.#responses.set(name, make());
    return { $ref: `#/components/responses/${name}` };
  }

  /** In the order of their names, so that the document does not change when routes move. */
  written(): { readonly schemas: Json; readonly responses: Json } {
    const sorted = <T>(map: ReadonlyMap<string, T>): [string, T][] => [...map].sort(([a], [b]) => (a < b ? -1 : 1));
    return {
      schemas: Object.fromEntries(sorted(this.#schemas).map(([name, { written }]) => [name, written])),
      responses: Object.fromEntries(sorted(this.#responses)),
    };
  }

  #write(schema: JsonSchema): Json {
    return Object.fromEntries(
      Object.entries(schema).map(([keyword, value]) => {
        if (typeof value !== 'object' || value === null) return [keyword, value];
        if (SINGLE.has(keyword)) return [keyword, this.schema(value as JsonSchema)];
        if (LISTS.has(keyword)) return [keyword, (value as JsonSchema[]).map((each) => this.schema(each))];
        if (!MAPS.has(keyword)) return [keyword, value];
        const entries = Object.entries(value as Record<string, JsonSchema>);
        return [keyword, Object.fromEntries(entries.map(([name, each]) => [name, this.schema(each)]))];
      }),
    );
  }
}
