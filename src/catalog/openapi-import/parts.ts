import { isObject, type JsonObject, listOf, objectOf, quoted } from './json.ts';
import type { References } from './references.ts';
import { SchemaCopier, TooLarge } from './schemas.ts';

/** The parts of an operation that are made from schemas and examples, and may be too large to be shown whole. */
export type PartName = 'input' | 'output' | 'example';
export type Made = { readonly value: JsonObject | boolean; readonly notes: readonly string[] };
/**
 * Makes a part.
 *
 * @param maxReferences  how many references within references are shown; with fewer, the part is smaller
 * @returns null if there is nothing to tell, or 'too_large'
 */
export type MakePart = (maxReferences: number) => Made | null | 'too_large';

/** Maximum characters of one part. 16 384 are about 4 000 tokens of a language model. */
const MAX_PART_LENGTH = 16_384;

/** What the parts of an operation are made from: objects of its document, with references to whole objects resolved. */
type Sources = {
  readonly references: References;
  readonly is30: boolean;
  readonly pathNames: ReadonlyMap<string, string>;
  readonly parameters: readonly JsonObject[];
  readonly body: JsonObject | null;
  /** The first 2xx response that has content. */
  readonly response: JsonObject | null;
  /** What callers must know about credentials, or null. */
  readonly credentials: string | null;
};

/** The media type of a body or a response. If there is a choice, it is `application/json`, or else another kind of JSON. */
type Media = { readonly type: string; readonly isJson: boolean; readonly media: JsonObject };

export function mediaOf(content: unknown): Media | null {
  const all = Object.entries(objectOf(content)).map(([type, media]) => ({
    type,
    isJson: /^(?:application|text)\/(?:[^;\s]+\+)?json\b/i.test(type),
    media: objectOf(media),
  }));
  return all.find(({ type }) => isPlainJson(type)) ?? all.find(({ isJson }) => isJson) ?? all[0] ?? null;
}

/**
 * The media types that a client sends and expects for JSON by default. `application/merge-patch+json`, for instance, must be
 * stated.
 */
export const isPlainJson = (type: string): boolean => /^application\/json\s*(?:;|$)/i.test(type);

export function partsOf(sources: Sources): Readonly<Record<PartName, MakePart>> {
  const making =
    (make: (copier: SchemaCopier) => JsonObject | boolean | null): MakePart =>
    (maxReferences) => {
      const { references, is30 } = sources;
      const copier = new SchemaCopier({ references, is30, maxReferences, maxLength: MAX_PART_LENGTH });
      try {
        const value = make(copier);
        return value === null ? null : { value, notes: [...copier.notes] };
      } catch (error) {
        if (error instanceof TooLarge) return 'too_large';
        throw error;
      }
    };
  return {
    input: making((copier) => inputOf(sources, copier)),
    output: making((copier) => {
      const media = mediaOf(sources.response?.content);
      const isTold = media !== null && (!media.isJson || media.media.schema !== undefined);
      return isTold ? contentSchema(media, copier) : null;
    }),
    example: making((copier) => exampleOf(sources, copier)),
  };
}

/** The groups of an operation's input, in the order in which they are listed. */
const GROUPS = [
  ['path', 'path'],
  ['query', 'query'],
  ['headers', 'header'],
] as const;

/** `{type: 'object', properties: {path?, query?, headers?, body?}, required}`: the shape that docs/api.md describes. */
function inputOf(sources: Sources, copier: SchemaCopier): JsonObject | null {
  const properties: [string, unknown][] = [];
  const required: string[] = [];
  for (const [group, location] of GROUPS) {
    const members = sources.parameters.filter((parameter) => parameter.in === location);
    const missing = location === 'path' ? undeclared(sources, members) : [];
    if (members.length + missing.length === 0) continue;
    const all = [...missing, ...members];
    const isNeeded = (parameter: JsonObject): boolean => location === 'path' || parameter.required === true;
    const nameOf = (parameter: JsonObject): string => copier.copyData(inTemplate(parameter, sources)) as string;
    const names = all.filter(isNeeded).map(nameOf);
    const schemas = all.map((parameter) => [nameOf(parameter), parameterSchema(parameter, sources, copier)]);
    if (names.length > 0) required.push(group);
    properties.push([group, objectSchema(Object.fromEntries(schemas), names)]);
  }
  const media = mediaOf(sources.body?.content);
  if (media !== null) {
    properties.push(['body', contentSchema(media, copier)]);
    if (sources.body?.required === true) required.push('body');
  }
  const { credentials } = sources;
  if (properties.length === 0 && credentials === null) return null;
  const schema = objectSchema(Object.fromEntries(properties), required);
  return credentials === null ? schema : { ...schema, description: copier.copyData(credentials) };
}

const objectSchema = (properties: JsonObject, required: readonly string[]): JsonObject => ({
  type: 'object',
  properties,
  ...(required.length === 0 ? {} : { required }),
});

/** Path parameters that the document does not describe. */
const undeclared = ({ pathNames }: Sources, declared: readonly JsonObject[]): JsonObject[] =>
  [...pathNames.keys()]
    .filter((name) => !declared.some((parameter) => parameter.name === name))
    .map((name) => ({ name, in: 'path', schema: { type: 'string' } }));

/** A parameter's name, which may be different in the template and in the document. */
function inTemplate(parameter: JsonObject, { pathNames }: Sources): string {
  const name = String(parameter.name);
  return parameter.in === 'path' ? (pathNames.get(name) ?? name) : name;
}

function parameterSchema(parameter: JsonObject, sources: Sources, copier: SchemaCopier): unknown {
  const media = mediaOf(parameter.content);
  const schema = copier.copy(parameter.schema ?? media?.media.schema ?? {});
  const told = isObject(schema) ? schema : {};
  const text = typeof parameter.description === 'string' ? parameter.description : told.description;
  const description = [text, styleOf(parameter, told, media)].filter((part) => part !== undefined).join(' ');
  // The example of an operation has a query, but neither path nor headers.
  const example = parameter.in === 'query' ? undefined : statedExample(parameter, sources);
  if (description === '' && example === undefined) return schema;
  return {
    ...told,
    ...(description === '' ? {} : { description: copier.copyData(description) }),
    ...(example === undefined ? {} : { examples: [copier.copyData(example)] }),
  };
}

/** How a list or object is written as a value, if that differs from what a client would do by default. */
function styleOf(
  { in: location, style, explode }: JsonObject,
  schema: JsonObject,
  media: Media | null,
): string | undefined {
  if (media !== null) return `Written as ${quoted(media.type)}.`;
  if (style === 'deepObject') return 'Written as name[key]=value.';
  if (location !== 'query' || schema.type !== 'array') return undefined;
  if (style === 'spaceDelimited') return 'Values are separated by spaces.';
  if (style === 'pipeDelimited') return 'Values are separated by |.';
  return explode === false ? 'Values are separated by commas.' : 'Repeated for each value.';
}

/** The schema of a body. If the body is not plain JSON, its type is added to what the document says about its fields. */
function contentSchema({ type, isJson, media }: Media, copier: SchemaCopier): JsonObject | boolean {
  const schema = media.schema === undefined ? {} : (copier.copy(media.schema) as JsonObject | boolean);
  if (isPlainJson(type)) return schema;
  const isUntold = !isObject(schema) || Object.keys(schema).length === 0;
  const told = isUntold ? (isJson ? {} : { type: 'string' }) : schema;
  return { ...told, contentMediaType: copier.copyData(type) };
}

function exampleOf(sources: Sources, copier: SchemaCopier): JsonObject | null {
  const query = sources.parameters
    .filter((parameter) => parameter.in === 'query')
    .map((parameter) => [String(parameter.name), exampleIn(parameter, sources)])
    .filter(([, value]) => value !== undefined);
  const body = exampleOfContent(sources.body, sources);
  const response = exampleOfContent(sources.response, sources);
  const example = {
    ...(query.length === 0 ? {} : { query: copier.copyData(Object.fromEntries(query)) }),
    ...(body === undefined ? {} : { body: copier.copyData(body) }),
    ...(response === undefined ? {} : { response: copier.copyData(response) }),
  };
  return Object.keys(example).length === 0 ? null : example;
}

function exampleOfContent(holder: JsonObject | null, sources: Sources): unknown {
  const media = mediaOf(holder?.content);
  return media === null ? undefined : exampleIn(media.media, sources);
}

/** The example of a media type or a parameter: its own, or that of its schema. */
function exampleIn(holder: JsonObject, sources: Sources): unknown {
  const stated = statedExample(holder, sources);
  if (stated !== undefined || holder.schema === undefined) return stated;
  const schema = sources.references.follow(holder.schema);
  return 'fault' in schema ? undefined : (schema.object.example ?? listOf(schema.object.examples)[0]);
}

/** The example beside the schema, or the first of several. */
function statedExample(holder: JsonObject, { references }: Sources): unknown {
  if (holder.example !== undefined) return holder.example;
  for (const example of Object.values(objectOf(holder.examples))) {
    const found = references.follow(example);
    if ('object' in found && found.object.value !== undefined) return found.object.value;
  }
  return undefined;
}
