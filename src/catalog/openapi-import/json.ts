/** A JSON object of an untrusted document. Members are read by fixed names, or with `memberOf`. */
export type JsonObject = Readonly<Record<string, unknown>>;

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The object, or an empty one if the value is anything else. */
export const objectOf = (value: unknown): JsonObject => (isObject(value) ? value : {});

export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** A member by a name that the document chose. `constructor` would otherwise be found on every object. */
export const memberOf = (value: object, name: string): unknown =>
  Object.hasOwn(value, name) ? (value as JsonObject)[name] : undefined;

/** Text that can be stored. JSON can spell a lone surrogate and U+0000, and Postgres accepts neither. */
export const storableText = (text: string): string => text.toWellFormed().replaceAll('\0', '');

/** Maximum characters of a path or a reference in a message; longer ones end with an ellipsis. */
const MAX_QUOTED = 200;

/** A piece of the document for a message. The document chooses its length, so it is cut. */
export function quoted(text: string): string {
  const clean = storableText(text);
  return clean.length <= MAX_QUOTED ? clean : `${clean.slice(0, MAX_QUOTED).toWellFormed()}…`;
}
